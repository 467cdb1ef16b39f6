"""Two runs in the real engine, against SciPy on the same values."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ragtide.drift.compare.model import CompareQuery, Comparison, MetricChange
from ragtide.drift.compare.runs import compare
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import EVALUATORS, score_row

pytestmark = pytest.mark.clickhouse

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DECLARED = metrics_by_name(EVALUATORS)


def rows(
    run: str, values: Mapping[str, float], evaluator: str = "quality", key: str = "good", **more: Any
) -> list[Any]:
    return [
        score_row(NOON + timedelta(seconds=n), trace, {key: value}, run_id=run, evaluator=evaluator, **more)
        for n, (trace, value) in enumerate(values.items())
    ]


def failed(run: str, traces: range) -> list[ScoreRow]:
    return [score_row(NOON, f"t{n}", run_id=run, status="failed", reason="crashed") for n in traces]


def values(n: int, seed: int, first: int = 0, mean: float = 0.5) -> dict[str, float]:
    drawn = np.random.default_rng(seed).normal(mean, 0.1, n)
    return {f"t{first + number}": float(value) for number, value in enumerate(drawn)}


def compare_runs(database: Database, a: str = "a", b: str = "b", **more: Any) -> Comparison:
    return compare(database, DECLARED, CompareQuery(a, b, **more))


def only(found: Comparison) -> MetricChange:
    (change,) = found.metrics
    return change


def test_pairs_are_judged_by_how_each_trace_changed(database: Database) -> None:
    a = values(200, seed=1)
    b = {trace: value - 0.02 + 0.01 * (n % 5) / 5 for n, (trace, value) in enumerate(a.items())}
    b["t7"], b["t9"] = a["t7"] + 0.3, a["t9"] - 0.4
    database.insert("scores", rows("a", a) + rows("b", b))
    found = only(compare_runs(database, top=2))
    known = stats.ttest_rel(list(b.values()), list(a.values()))
    low, high = known.confidence_interval(0.95)
    assert (found.metric, found.method) == ("quality.good", "paired")
    assert (found.paired, found.only_a, found.only_b) == (200, 0, 0)
    assert (found.mean_a, found.mean_b) == pytest.approx((np.mean(list(a.values())), np.mean(list(b.values()))))
    assert (found.low, found.high, found.p) == pytest.approx((low, high, known.pvalue))
    assert found.verdict == "worse"
    assert [tuple(moved) for moved in found.moved] == [("t9", a["t9"], b["t9"]), ("t7", a["t7"], b["t7"])]
    independent = stats.ttest_ind(list(b.values()), list(a.values()), equal_var=False)
    assert independent.pvalue > 0.05  # what pairing is for


def test_without_a_trace_in_common_the_runs_are_independent(database: Database) -> None:
    a, b = values(80, seed=2), values(60, seed=3, first=1000, mean=0.6)
    database.insert("scores", rows("a", a) + rows("b", b))
    found = only(compare_runs(database, alpha=0.1))
    known = stats.ttest_ind(list(b.values()), list(a.values()), equal_var=False)
    low, high = known.confidence_interval(0.9)
    assert (found.method, found.paired, found.only_a, found.only_b) == ("welch", 0, 80, 60)
    assert (found.low, found.high, found.p) == pytest.approx((low, high, known.pvalue))
    assert (found.verdict, found.moved) == ("better", ())


@pytest.mark.parametrize(("first", "method", "pairs"), [(20, "paired", 20), (30, "welch", 10)])
def test_half_of_the_smaller_run_must_match(database: Database, first: int, method: str, pairs: int) -> None:
    a, b = values(40, seed=4), values(80, seed=5, first=first)
    database.insert("scores", rows("a", a) + rows("b", b))
    found = only(compare_runs(database))
    assert (found.method, found.paired, found.only_a, found.only_b) == (method, pairs, 40 - pairs, 80 - pairs)
    shared = [trace for trace in a if trace in b] if method == "paired" else None
    expected = np.mean([b[trace] for trace in shared or b]) - np.mean([a[trace] for trace in shared or a])
    assert found.difference == pytest.approx(expected)
    assert found.mean_b == pytest.approx(found.mean_a + expected if found.mean_a is not None else math.nan)


def test_of_many_metrics_none_is_worse_by_chance(database: Database) -> None:
    for number in range(40):
        key = f"m{number:02}"
        database.insert(
            "scores",
            rows("a", values(50, seed=500 + number), evaluator=f"e{key}", key=key)
            + rows("b", values(50, seed=600 + number), evaluator=f"e{key}", key=key),
        )
    found = compare_runs(database)
    p = [change.p for change in found.metrics if change.p is not None]
    assert len(p) == 40
    assert min(p) < 0.05
    assert [change.p_adjusted for change in found.metrics] == pytest.approx(stats.false_discovery_control(p))
    assert {change.verdict for change in found.metrics} == {"same"}


def test_lower_may_be_better_and_what_nobody_declares_only_differs(database: Database) -> None:
    a = values(30, seed=6)
    more = {trace: value + 0.1 + 0.001 * (n % 3) for n, (trace, value) in enumerate(a.items())}
    for evaluator, key in (("quality", "good"), ("speed", "seconds"), ("unknown", "thing")):
        database.insert("scores", rows("a", a, evaluator, key) + rows("b", more, evaluator, key))
    verdicts = {change.metric: change.verdict for change in compare_runs(database).metrics}
    assert verdicts == {"quality.good": "better", "speed.seconds": "worse", "unknown.thing": "differs"}
    assert {change.verdict for change in compare_runs(database, min_change=0.2).metrics} == {"same"}
    assert compare_runs(database, metrics=("speed",)).worse == ("speed.seconds",)
    assert [change.metric for change in compare_runs(database, metrics=("quality.good",)).metrics] == ["quality.good"]
    with pytest.raises(ConfigError, match=r"lack quality\.goood; they share: quality, speed, unknown"):
        compare_runs(database, metrics=("quality.goood",))


def test_to_fail_more_often_is_worse(database: Database) -> None:
    database.insert("scores", rows("a", dict.fromkeys((f"t{n}" for n in range(20)), 0.5)))
    database.insert("scores", rows("b", dict.fromkeys((f"t{n}" for n in range(8)), 0.5)) + failed("b", range(8, 20)))
    found = {change.metric: change for change in compare_runs(database).metrics}
    assert set(found) == {"quality.good", "quality.(failed)"}
    scored, broken = found["quality.good"], found["quality.(failed)"]
    assert (scored.coverage_a, scored.coverage_b) == (1.0, 0.4)
    assert (scored.paired, scored.only_a, scored.verdict) == (8, 12, "same")
    assert (broken.mean_a, broken.mean_b, broken.verdict) == (0.0, 0.6, "worse")
    known = stats.ttest_rel([0.0] * 8 + [1.0] * 12, [0.0] * 20)
    assert broken.p == pytest.approx(known.pvalue)


def test_a_run_that_failed_throughout_is_worse_and_has_no_mean(database: Database) -> None:
    database.insert("scores", rows("a", values(20, seed=7)) + failed("b", range(20)))
    found = {change.metric: change for change in compare_runs(database).metrics}
    scored = found["quality.good"]
    assert (scored.verdict, scored.mean_b, scored.difference, scored.p) == ("unknown", None, None, None)
    assert scored.coverage_b == 0.0
    assert found["quality.(failed)"].verdict == "worse"


def test_the_same_run_again_is_the_same(database: Database) -> None:
    database.insert("scores", rows("a", values(50, seed=8)) + rows("b", values(50, seed=8)))
    found = only(compare_runs(database))
    assert (found.verdict, found.difference, found.p, found.moved) == ("same", 0.0, 1.0, ())


def test_a_trace_counts_once_in_its_newest_version(database: Database) -> None:
    """Re-sent at the same time, and with another minute, as long as nobody has put that right."""
    moved = score_row(NOON + timedelta(minutes=5), "t2", {"good": 0.4}, run_id="a", version=10**9)
    database.insert("scores", rows("a", {"t1": 0.1, "t2": 0.1}, version=1))
    database.insert("scores", [*rows("a", {"t1": 0.3}, version=2), moved])
    database.insert("scores", rows("b", {"t1": 0.5, "t2": 0.5}))
    found = only(compare_runs(database))
    assert (found.paired, found.only_a) == (2, 0)
    assert found.mean_a == pytest.approx(0.35)


def test_only_the_application_and_the_time_that_were_asked_for(database: Database) -> None:
    database.insert("scores", rows("a", {f"t{n}": 0.1 for n in range(100)}))
    database.insert("scores", rows("a", {f"o{n}": 0.9 for n in range(100)}, app="other"))
    database.insert("scores", rows("b", {f"t{n}": 0.2 for n in range(100)}))
    period: dict[str, Any] = {"start": NOON + timedelta(seconds=10), "end": NOON + timedelta(seconds=30)}
    found = only(compare_runs(database, app="shop", **period))
    assert (found.paired, found.only_a, found.only_b) == (20, 0, 0)
    assert found.mean_a == pytest.approx(0.1)
    assert {moved.trace_id for moved in found.moved} <= {f"t{n}" for n in range(10, 30)}
    with pytest.raises(ConfigError, match="run 'b' has no scores of this application and interval"):
        compare_runs(database, app="other")


def test_a_run_that_is_not_there_is_an_error_that_names_those_near(database: Database) -> None:
    with pytest.raises(ConfigError, match="unknown run 'monday'; runs with scores: none"):
        compare_runs(database, "monday")
    database.insert("scores", rows("monday-1", {"t": 0.5}) + rows("other", {"t": 0.5}))
    with pytest.raises(ConfigError, match=r"unknown run 'monday'; runs with scores: monday-1$"):
        compare_runs(database, "monday", "other")
    with pytest.raises(ConfigError, match=r"unknown run 'x'; runs with scores: monday-1, other$"):
        compare_runs(database, "other", "x")


def test_what_else_differs_is_told(database: Database) -> None:
    database.insert("scores", rows("a", {"t": 0.5}, fingerprint="f1") + rows("b", {"t": 0.6}, fingerprint="f2"))
    database.insert("scores", rows("a", {"t": 0.5}, "leak", "passes") + rows("b", {"t": 1.0}, "speed", "seconds"))
    found = compare_runs(database)
    assert (found.only_a, found.only_b) == (("leak",), ("speed",))
    assert found.fingerprints == {"quality": (("f1",), ("f2",))}
    assert (only(found).verdict, only(found).p) == ("unknown", None)
    assert only(found).difference == pytest.approx(0.1)


def test_values_near_the_end_of_what_a_double_holds_are_no_error(database: Database) -> None:
    for evaluator, greatest in (("quality", 1e308), ("speed", 1e200)):
        for run, sign in (("a", 1), ("b", -1)):
            huge = {f"t{n}": sign * greatest * (1 - n / 10) for n in range(5)}
            database.insert(
                "scores", rows(run, huge, evaluator) + rows(run, {f"{run}{n}": 1.0 for n in range(5)}, "leak")
            )
    found = compare_runs(database)
    assert [change.metric for change in found.metrics] == ["leak.good", "quality.good", "speed.good"]
    assert [change.verdict for change in found.metrics] == ["same", "unknown", "unknown"]
    assert (found.metrics[1].mean_a, found.metrics[1].difference) == (None, None)
    assert found.metrics[2].difference == pytest.approx(-1.6e200)
