"""Summaries against hand-worked figures: means, shares, intervals, quantiles, coverage and reasons."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from ragtide import MetricSummary, Result, evaluate
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Shared, evaluator
from tests.stream.api.results import evaluated, trace, traces


@dataclass(frozen=True)
class Answer:
    answer: str


METRICS = [
    Metric("value", low=0, high=100, better="higher", threshold=2.0, primary=True),
    Metric("flag", threshold=1.0, binary=True),
    Metric("above"),
    Metric("half", optional=True),
]


@evaluator("said", version=1, domain="generation", method="rule", inputs=Answer, metrics=METRICS)
def said(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
    """The number that the answer is; fails at another text, and does not apply to an empty one."""
    for row in rows:
        if not row.answer:
            yield NotApplicable("empty")
            continue
        value = float(row.answer)
        yield Scored(
            {
                "value": value,
                "flag": float(value > 2),
                "above": max(0.0, min(1.0, value - 2)),
                **({"half": 0.5} if value > 3 else {}),
            }
        )


def said_of(*answers: str) -> Result:
    return evaluate([trace(n, answer=answer) for n, answer in enumerate(answers)], [said], progress=False)


def by_name(result: Result, confidence: float = 0.95) -> dict[str, MetricSummary]:
    return {one.name: one for one in result.summary(confidence)}


def test_a_mean_has_the_interval_of_student_and_linear_quantiles() -> None:
    found = by_name(said_of("1", "2", "3", "4", "5", "", "boom", ""))["said.value"]
    assert (found.figure, found.value, found.bad) == ("mean", 3.0, 1)
    # sd = sqrt(2.5), standard error sqrt(0.5), t(4) at 97.5 % = 2.776445105
    half = 2.776445105 * math.sqrt(0.5)
    assert [found.low, found.high] == pytest.approx([3 - half, 3 + half])
    assert found.quantiles == pytest.approx((1.2, 2.0, 3.0, 4.0, 4.8))
    assert (found.seen, found.sampled, found.applicable, found.scored, found.failed) == (8, 8, 6, 5, 1)
    assert (found.skipped, found.failures, found.coverage) == ({"empty": 2}, {"crashed": 1}, 5 / 6)


def test_a_share_has_the_interval_of_wilson_and_no_quantiles() -> None:
    found = by_name(said_of(*("3" * 8), *("1" * 2)))["said.flag"]
    assert (found.figure, found.value, found.bad) == ("share", 0.8, 2)
    # Wilson, 8 of 10: (0.8 + 0.192073) / 1.384146 -+ 1.959964 / 1.384146 * sqrt(0.016 + 0.00960365)
    assert [found.low, found.high] == pytest.approx([0.490162, 0.943318], abs=1e-6)
    assert set(found.quantiles) == {None}
    certain = by_name(said_of("3", "3"))["said.flag"]
    assert certain.high == 1.0


def test_the_declaration_of_a_metric_and_not_its_values_makes_it_a_share() -> None:
    found = by_name(said_of("1", "3", "3"))["said.above"]  # 0, 1, 1
    assert found.figure == "mean"
    assert found.value == pytest.approx(2 / 3)
    # sd = sqrt(1/3), standard error 1/3, t(2) at 97.5 % = 4.303: beyond the range on both sides
    assert [found.low, found.high] == [0.0, 1.0]
    assert found.quantiles == pytest.approx((0.1, 0.5, 1.0, 1.0, 1.0))
    assert by_name(said_of("1", "2.5", "3"))["said.above"].figure == "mean"
    assert by_name(said_of(""))["said.flag"].figure == "share"


def test_an_optional_metric_counts_what_was_not_recorded() -> None:
    found = by_name(said_of("1", "4", "5", ""))["said.half"]
    assert (found.scored, found.applicable, found.skipped) == (2, 2, {"empty": 1, "not_recorded": 1})
    assert (found.value, found.low, found.high) == (0.5, None, None), "equal values have no interval of a mean"


def test_one_value_has_no_interval_and_none_has_no_figure() -> None:
    one, none = by_name(said_of("3"))["said.value"], by_name(said_of(""))["said.value"]
    assert (one.value, one.low, one.high) == (3.0, None, None)
    assert (none.value, none.low, none.coverage, none.bad, none.quantiles) == (None, None, None, 0, (None,) * 5)


def test_an_interval_ends_where_the_range_of_the_metric_does() -> None:
    found = by_name(said_of("0", "1", "90"))["said.value"]
    assert (found.low, found.high) == (0.0, 100.0)


def test_another_confidence_changes_the_interval_only() -> None:
    result = said_of("1", "2", "3", "4", "5")
    wide, narrow = by_name(result, 0.99)["said.value"], by_name(result, 0.8)["said.value"]
    assert wide.value == narrow.value
    assert (wide.low or 0) < (narrow.low or 0)


def test_window_metrics_are_combined_from_counts_and_not_averaged() -> None:
    def labelled(n: int, expected: str, predicted: str) -> dict[str, Any]:
        return trace(n, task="classification", labels={"expected": expected, "predicted": predicted})

    # Class a: 3 found of 4, 1 wrong; class b: 1 of 2 found, 1 wrong.
    pairs = [*["aa"] * 3, "ab", "bb", "ba"]
    found = by_name(evaluated([labelled(n, *pair) for n, pair in enumerate(pairs)], "classification"))
    assert found["classification.accuracy"].figure == "combined"
    assert found["classification.accuracy"].value == pytest.approx(4 / 6)
    assert found["classification.class_recall [a]"].value == pytest.approx(3 / 4)
    assert found["classification.class_recall [b]"].value == pytest.approx(1 / 2)
    assert found["classification.class_recall [a]"].labels == ("a",)
    assert found["classification.accuracy"].low is None


def test_tables_for_people_escape_what_records_say() -> None:
    result = evaluate([trace(0), trace(1, app="<b>x</b>", latency={"total_ms": 1}), {"app": "x"}], progress=False)
    html, text = result._repr_html_(), repr(result)
    assert "<b>" not in html
    assert "app &lt;b&gt;x&lt;/b&gt;: no trace has a field latency.total_ms" in html
    assert "<td" in html
    assert "3 records: 2 evaluated, 1 rejected" in text.splitlines()[0]
    (line,) = [line for line in text.splitlines() if line.startswith("exact_match.exact_match")]
    assert line.split()[0] == "exact_match.exact_match"
    assert line.split()[2] == "0.5"
    assert "no score: sari: 2 other_task" in text
    assert "operations.cost_usd" in html


def test_a_frame_is_wide_or_long_and_has_no_number_where_there_is_no_score() -> None:
    pandas = pytest.importorskip("pandas")
    result = evaluate([*traces(3), trace(3, expected=..., cost_usd=...)], ["exact_match", "operations", "sari"])
    wide = result.to_pandas()
    assert list(wide.columns[:7]) == ["record", "trace_id", "app", "environment", "time", "model", "prompt_version"]
    assert wide["exact_match.exact_match"].tolist()[:3] == [1.0, 0.0, 0.0]
    assert wide["exact_match.exact_match"].isna().tolist() == [False, False, False, True]
    assert wide["sari.sari"].isna().all()
    assert wide["time"].dt.tz is not None
    long = result.to_pandas("long")
    assert len(long[long.metric == "sari.sari"]) == 0, "no row of an evaluator of another task"
    of_last = long[long.trace_id == "t-3"].set_index("metric")
    assert of_last.loc["exact_match.exact_match", ["status", "reason"]].tolist() == [
        "not_applicable",
        "missing_expected",
    ]
    assert of_last.loc["operations.cost_usd", ["status", "reason"]].tolist() == ["scored", "not_recorded"]
    assert pandas.isna(of_last.loc["operations.cost_usd", "value"])
    mean = by_name(result)["exact_match.exact_match"].value
    assert long.groupby("metric")["value"].mean()["exact_match.exact_match"] == mean


def test_an_arrow_table_has_nulls() -> None:
    pytest.importorskip("pyarrow")
    result = evaluate([trace(0), trace(1, expected=...)], ["exact_match"])
    assert result.to_arrow().column("exact_match.exact_match").to_pylist() == [1.0, None]
    assert result.to_arrow("long").column("value").to_pylist() == [1.0, None]
    assert evaluate([], ["sari"]).to_arrow("long").num_rows == 0


@pytest.mark.parametrize("form", ["wide", "long"])
def test_columns_have_the_same_types_with_and_without_rows(form: Literal["wide", "long"]) -> None:
    pyarrow, _ = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    none, one = evaluate([], ["exact_match"], progress=False), evaluate([trace(0)], ["exact_match"], progress=False)
    schema = none.to_arrow(form).schema
    assert schema == one.to_arrow(form).schema
    assert pyarrow.null() not in schema.types
    assert pyarrow.concat_tables([none.to_arrow(form), one.to_arrow(form)]).num_rows == 1
    frame = one.to_pandas(form)
    assert none.to_pandas(form).dtypes.to_dict() == frame.dtypes.to_dict()
    assert (str(frame["time"].dtype.tz), str(frame["record"].dtype)) == ("UTC", "int64")


def test_without_pandas_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from ragtide.evaluators.errors import ConfigError
    from ragtide.stream.api import frames

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(frames, "import_module", absent)
    with pytest.raises(ConfigError, match="pandas is not installed: pip install pandas"):
        said_of("1").to_pandas()
