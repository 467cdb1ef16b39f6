"""Comparisons of results: pairs by trace id, intervals and corrected decisions, equal to those of stored runs."""

from typing import Any

import pytest

from ragtide.drift.compare import CompareQuery, compare
from ragtide.drift.windows import metrics_by_name
from ragtide.evaluators import registry
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.stream.api.inputs import open_source
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.loader import Settings
from tests.stream.api.results import EVALUATORS, evaluated, trace, traces


def slower(n: int) -> dict[str, Any]:
    return trace(n, latency={"total_s": 2 + n / 10 + n % 3 / 100}, answer="No.")


def test_pairs_are_compared_by_their_differences() -> None:
    found = evaluated(traces(30)).compare(evaluated([slower(n) for n in range(30)]))
    changes = {one.metric: one for one in found.metrics}
    latency = changes["operations.latency_seconds"]
    assert (latency.method, latency.paired, latency.verdict) == ("paired", 30, "worse")
    assert latency.difference == pytest.approx(1.01)
    assert latency.low is not None
    assert latency.high is not None
    assert latency.low < 1.01 < latency.high
    assert latency.p_adjusted is not None
    assert latency.p is not None
    assert latency.p <= latency.p_adjusted < 0.05
    exact = changes["exact_match.exact_match"]
    assert exact.mean_a == pytest.approx(1 / 3)
    assert (exact.mean_b, exact.verdict) == (0.0, "worse")
    assert [one.trace_id for one in exact.moved] == ["t-0", "t-12", "t-15"], "of equal changes the first by id"
    assert {"exact_match.exact_match", "operations.latency_seconds"} <= {*found.worse}
    assert found.better == ()
    back = evaluated([slower(n) for n in range(30)]).compare(evaluated(traces(30)))
    assert (back.better, back.worse) == (found.worse, ())
    one = evaluated(traces(30)).compare(evaluated([slower(n) for n in range(30)]), metrics="exact_match")
    assert {change.metric for change in one.metrics} == {"exact_match.exact_match"}
    assert changes["operations.cost_usd"].verdict == "same"


def test_without_pairs_all_values_are_compared() -> None:
    other = [slower(n) | {"trace_id": f"other-{n}"} for n in range(30)]
    found = {one.metric: one for one in evaluated(traces(30)).compare(evaluated(other)).metrics}
    latency = found["operations.latency_seconds"]
    assert (latency.method, latency.paired, latency.only_a, latency.only_b) == ("welch", 0, 30, 30)
    assert latency.difference == pytest.approx(1.01)


def test_a_result_compared_with_itself_is_the_same() -> None:
    result = evaluated(traces(10))
    found = result.compare(result)
    assert {one.verdict for one in found.metrics} == {"same"}
    assert found.worse == ()


def test_the_smallest_change_and_the_metrics_can_be_chosen() -> None:
    a, b = evaluated(traces(30)), evaluated([slower(n) for n in range(30)])
    found = a.compare(b, metrics=["operations.latency_seconds"], min_change=2.0)
    assert [(one.metric, one.verdict) for one in found.metrics] == [("operations.latency_seconds", "same")]
    with pytest.raises(ConfigError, match=r"both runs lack rouge\.rouge_9, bleu; they share: exact_match, inputs"):
        a.compare(b, metrics=["rouge.rouge_9", "bleu"])
    with pytest.raises(ConfigError, match="alpha 2 must lie between 0 and 1"):
        a.compare(b, alpha=2)


def test_evaluators_and_versions_of_one_side_are_named() -> None:
    stems = {"evaluators": {"params": {"rouge": {"use_stemmer": True}}}}
    found = evaluated(traces(3), "rouge", "inputs").compare(evaluated(traces(3), "rouge", "bleu", **stems))
    assert (found.comparison.only_a, found.comparison.only_b) == (("inputs",), ("bleu",))
    assert "rouge scored A and B in different ways" in repr(found)
    assert "only B has: bleu" in found._repr_html_()


def test_its_tables_show_the_worst_first_and_escape() -> None:
    a = evaluated([trace(n, trace_id=f"<i>{n}") for n in range(12)])
    b = evaluated([slower(n) | {"trace_id": f"<i>{n}"} for n in range(12)])
    found = a.compare(b)
    lines = repr(found).splitlines()
    assert lines[0].split()[:4] == ["metric", "verdict", "A", "B"]
    assert [line.split()[1] for line in lines[1 : 1 + len(found.worse)]] == ["worse"] * len(found.worse)
    assert "moved most in" in repr(found)
    html = found._repr_html_()
    assert "<i>" not in html
    assert "&lt;i&gt;" in html
    frame = pytest.importorskip("pandas") and found.to_pandas()
    assert frame.set_index("metric").loc["operations.latency_seconds", "verdict"] == "worse"


@pytest.mark.clickhouse
def test_results_compare_as_stored_runs_do(database: Database) -> None:
    """The same records as two runs in ClickHouse: every figure is that of `ragtide compare`."""
    settings = Settings.model_validate({"evaluators": {"enabled": EVALUATORS}})
    sides = {"a": traces(40), "b": [slower(n) for n in range(10, 45)]}
    for run, records in sides.items():
        pipeline = assemble(settings, None, run_id=run, timely=False).pipeline
        messages = [item.record for item in open_source(records, 1 << 20).items]
        block = pipeline.process([one for one in messages if isinstance(one, StoredRecord)]).block
        ClickHouseSink(database).write(block)
    stored = compare(database, metrics_by_name(registry.load()), CompareQuery("a", "b"))
    found = evaluated(sides["a"]).compare(evaluated(sides["b"]))
    assert len(stored.metrics) > 10
    for wanted, got in zip(stored.metrics, found.metrics, strict=True):
        assert (got.metric, got.verdict, got.method, got.moved) == (
            wanted.metric,
            wanted.verdict,
            wanted.method,
            wanted.moved,
        )
        assert (got.paired, got.only_a, got.only_b) == (wanted.paired, wanted.only_a, wanted.only_b)
        for name in ("mean_a", "mean_b", "difference", "low", "high", "p", "p_adjusted", "coverage_a", "coverage_b"):
            figure = getattr(wanted, name)
            expected = None if figure is None else pytest.approx(figure, rel=1e-9, abs=1e-12)
            assert getattr(got, name) == expected, (got.metric, name)
