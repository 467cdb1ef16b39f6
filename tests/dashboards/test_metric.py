"""One metric, against figures worked by hand."""

import math
from datetime import timedelta
from typing import Any

import pytest

from ragtide.drift.windows.histogram import FAR_BIN, Scale
from ragtide.evaluators.registry import load
from tests.dashboards.macros import Choice
from tests.dashboards.sample_details import METRIC, expected, score
from tests.dashboards.sample_rows import NOON, event, window
from tests.dashboards.shown_application import Shown
from tests.label_rows import label_row

pytestmark = pytest.mark.clickhouse
LATENCY: dict[str, Choice] = {"metric": "operations.latency_seconds"}


def rows(shown: Shown, where: str, **chosen: Choice) -> list[dict[str, Any]]:
    return shown.rows(f"{where} A", chosen, board="metric")


def test_figures_of_the_range(shown: Shown) -> None:
    (row,) = rows(shown, "table In figures")
    # per minute 0.25 and 0.75 in prod, 1.0 in staging
    assert (row["mean"], row["scored"], row["line"]) == (pytest.approx(2 / 3), 30, 0.75)
    variance = (10 * (0.25**2 + 0.75**2 + 1) - 30 * (2 / 3) ** 2) / 29
    reach = 2.0452 * math.sqrt(variance / 30)  # Student's quantile of 29 degrees of freedom
    assert row["at least"] == pytest.approx(2 / 3 - reach, abs=1e-4)
    assert row["at most"] == pytest.approx(2 / 3 + reach, abs=1e-4)
    assert row["bad records"] == pytest.approx(1 / 3)
    assert row["of applicable"] == pytest.approx(30 / 70)
    assert row["of all"] == pytest.approx(30 / 230)
    assert [row["p5"], row["median"], row["p95"]] == pytest.approx([0.255, 0.755, 1.0])  # middles of bins
    assert row["good side"] == "higher is better"


def test_numbers_on_top_agree_with_the_figures(shown: Shown) -> None:
    titles = ("Mean", "Scored traces", "Coverage", "Bad traces")
    found = [next(iter(rows(shown, f"stat {title}")[0].values())) for title in titles]
    assert found == pytest.approx([2 / 3, 30, 30 / 70, 1 / 3])


def test_the_limit_is_drawn_where_the_rule_judges(shown: Shown) -> None:
    """Groundedness by its mean, leaks by their records, and latency not at all."""
    mean, bad = rows(shown, "timeseries Mean and interval")[0], rows(shown, "timeseries Bad traces")[0]
    assert (mean["mean"], mean["limit"]) == (pytest.approx(2 / 3), 0.75)
    assert (bad["bad records"], bad["limit"]) == (pytest.approx(1 / 3), None)
    leaks: dict[str, Choice] = {"metric": "pii_leakage.passes"}
    mean, bad = (
        rows(shown, "timeseries Mean and interval", **leaks)[0],
        rows(shown, "timeseries Bad traces", **leaks)[0],
    )
    assert (mean["limit"], bad["limit"]) == (None, 0.0)
    mean, bad = (
        rows(shown, "timeseries Mean and interval", **LATENCY)[0],
        rows(shown, "timeseries Bad traces", **LATENCY)[0],
    )
    assert (mean["limit"], bad["bad records"], bad["limit"]) == (None, None, None)


def test_quantiles_of_a_metric_without_bounds(own: Shown) -> None:
    values = [0.01 * i for i in range(1, 101)]
    own.database.insert("windows", [window("operations.latency_seconds", NOON, values, app="slow")])
    (row,) = rows(own, "timeseries Quantiles", app="slow", **LATENCY)
    assert row["median"] == pytest.approx(0.5, rel=0.02)
    assert row["p95"] == pytest.approx(0.95, rel=0.02)


def test_buckets_hold_what_lies_in_them(own: Shown) -> None:
    """Bounded ones are a twentieth of the range, with the edges on the good side; others grow by 28 %."""
    metric = next(one for one in load()["toxicity"].metrics if one.primary)
    assert (metric.better, Scale.of(metric).bin(0.05), Scale.of(metric).bin(0.051)) == ("lower", 5, 6)
    own.database.insert(
        "windows",
        [
            window("toxicity.toxicity", NOON, [0.0, 0.05, 0.051, 1.0], app="heat"),
            window("operations.latency_seconds", NOON, [0.0, 1.0, 1.2, 1.3, 10.0], app="heat"),
        ],
    )
    heat: dict[str, Choice] = {"app": "heat", "metric": "toxicity.toxicity"}
    found = [(str(row["label"]).strip(), row["traces"]) for row in rows(own, "heatmap Scores", **heat)]
    assert found == [("0.000", 2), ("0.050", 1), ("0.950", 1)]
    found = [(str(row["label"]).strip(), row["traces"]) for row in rows(own, "heatmap Scores", **(heat | LATENCY))]
    assert [traces for _, traces in found] == [1, 2, 1, 1]
    assert [float(label) for label, _ in found] == pytest.approx([0, 1, 1.282, 9.3], abs=0.5)
    labels = [str(row["label"]) for row in rows(own, "heatmap Scores", **(heat | LATENCY))]
    assert labels == sorted(labels)  # as Grafana orders the rows


def test_the_distribution_stands_beside_that_of_the_week_before(shown: Shown) -> None:
    found = {row["value"]: row for row in rows(shown, "barchart Distribution")}
    assert len(found) == 20
    assert found["0.250"]["time range"] == pytest.approx(1 / 3)
    assert (found["0.300"]["time range"], found["0.300"]["7 days before"]) == (0.0, 1.0)
    assert (found["0.300"]["traces before"], found["0.250"]["traces"]) == (4, 10)


def test_segments_and_versions_side_by_side(own: Shown) -> None:
    own.database.insert(
        "windows", [window(METRIC, NOON, [1.0] * 3, segment="tenant", segment_value="globex", environment="prod")]
    )
    assert [(row["value"], row["mean"], row["traces"]) for row in rows(own, "table Segments in figures")] == [
        ("acme", 0.0, 1000),
        ("globex", 1.0, 3),
    ]
    assert {row["name"] for row in rows(own, "timeseries By segment")} == {"acme", "globex"}
    versions = rows(own, "table Versions in figures")
    assert [(row["model"], row["mean"], row["traces"], row["bad records"]) for row in versions] == [
        ("m1", 0.5, 20, 0.5),
        ("m2", 1.0, 10, 0.0),
    ]
    assert rows(own, "table Segments in figures", segment="language") == []


def test_the_expected_band_is_that_of_the_baseline_that_holds(shown: Shown) -> None:
    """At 12:00:30 on a Sunday: between the middle of the hour before (0.5) and of this one (0.6)."""
    first = rows(shown, "timeseries Expected against now")[0]
    middle = 0.5 + 0.1 * (0.5 + 30 / 3600)
    deviation = math.sqrt(0.02 / 2 + 0.01)  # two records, one tick
    assert first["time"] == NOON
    assert first["expected"] == pytest.approx(middle, abs=1e-6)
    assert first["expected from"] == pytest.approx(middle - 1.959964 * deviation, abs=1e-5)
    assert first["expected to"] == pytest.approx(middle + 1.959964 * deviation, abs=1e-5)
    assert first["now"] == pytest.approx(0.5)  # of prod: staging has no baseline
    (row,) = rows(shown, "table Baselines")
    assert (row["quantity"], row["baseline of"]) == ("mean", NOON - timedelta(hours=12))
    assert [row["lowest hour"], row["highest hour"]] == pytest.approx([0.5, 0.8])


def test_a_share_is_watched_by_its_bins(own: Shown) -> None:
    """Of latencies 1, 1, 1 and 100 one is above the usual median of 2, of staging none of 2: one of six in all."""
    name, edge = "operations.latency_seconds", Scale(0, math.inf, "lower").bin(2.0)
    windows = [
        window(name, NOON, [1.0, 1.0, 1.0, 100.0], app="w"),
        window(name, NOON, [1.0] * 2, app="w", environment="s"),
    ]
    own.database.insert("windows", windows)
    base = expected(
        app="w", metric=name, quantity="share above the usual median, 2 s", of_records=1, min_bin=-FAR_BIN,
        max_bin=edge, levels=[0.5] * 168, variance_per_record=1.0, variance_floor=0.0,
    )  # fmt: skip
    own.database.insert("expected_levels", [base, base._replace(environment="s")])
    (row,) = rows(own, "timeseries Expected against now", app="w", **LATENCY)
    assert (row["now"], row["expected"]) == (pytest.approx(1 / 6), pytest.approx(0.5))
    deviation = math.sqrt(0.25 / 4 * 16 + 0.25 / 2 * 4) / 6
    assert row["expected to"] == pytest.approx(0.5 + 1.959964 * deviation)


def test_verdicts_over_time(shown: Shown) -> None:
    found = [(row["time"] - NOON, row["rule"], row["verdict"]) for row in rows(shown, "state-timeline Verdicts")]
    assert found == [
        (timedelta(minutes=1), "mean prod m1", 1),
        (timedelta(minutes=2), "mean prod m1", 2),
        (timedelta(minutes=2), "mean prod m1 tenant=acme", 1),
        (timedelta(minutes=3), "mean prod m1", 0),
    ]
    assert rows(shown, "state-timeline Verdicts", model=["m2"]) == []


GROUNDED: dict[str, Any] = {"sample_rate": 0.5, "sample_evaluator": "groundedness"}


def test_what_people_would_say(shown: Shown, own: Shown) -> None:
    """Four of eleven answers are labelled at a rate of a half: too few for an interval."""
    thumbs, people_score = rows(shown, "table What people would say")
    assert (thumbs["verdict"], thumbs["labels"], thumbs["judged answers"]) == ("thumbs up", 4, 11)
    assert (thumbs["people would say"], thumbs["at least"]) == (pytest.approx(0.75), None)
    assert thumbs["labelled of the sample"] == pytest.approx(8 / 11)
    assert (people_score["verdict"], people_score["people would say"]) == ("score", 3.0)

    many = [score(at, "groundedness", {"groundedness": at % 10 / 10}) for at in range(100, 500)]
    own.database.insert("scores", [one._replace(time=NOON + timedelta(minutes=1)) for one in many])
    drawn = [(name, at) for at in range(100, 500) if (name := f"t{at}") and at // 10 % 2]
    labels = [label_row(name, at, thumbs="up" if at % 10 > 2 else "down", **GROUNDED) for name, at in drawn]
    own.database.insert("labels", labels)
    for panel in ("table What people would say", "timeseries What people would say, by day"):
        (row, *_) = rows(own, panel)
        assert row["at least"] < row["people would say"] < row["at most"]
        assert row["people would say"] == pytest.approx(0.7, abs=0.02)


def test_the_worst_traces(own: Shown) -> None:
    found = rows(own, "table Worst traces")
    assert [(row["trace"], row["score"]) for row in found[:2]] == [("t0", 0.0), ("t1", pytest.approx(0.1))]
    assert found[0]["findings"] == "odd"
    assert len(found) == 11  # not that of another application, of another hour, or without a score
    slow = [score(100 + i, "operations", {"latency_seconds": float(i)}) for i in range(30)]
    own.database.insert("scores", slow)
    found = rows(own, "table Worst traces", **LATENCY)
    assert [row["trace"] for row in found] == [f"t{100 + i}" for i in range(29, 9, -1)]


def test_onsets_begin_where_the_evidence_does(own: Shown) -> None:
    since = NOON + timedelta(minutes=6)
    late = event("o", "o1", "opened", 1, NOON + timedelta(minutes=9), attributes=f'{{"since": "{since.isoformat()}"}}')
    own.database.insert("problem_events", [late])
    found = own.rows("annotation Problems", board="metric")
    assert since in [row["time"] for row in found]
    assert own.rows("annotation Problems", {"metric": "rouge.rouge_l"}, board="metric") == []
    assert [row["problem_id"] for row in rows(own, "table Problems of the metric")] == ["o", "a", "b", "a"]


def test_metrics_that_can_be_chosen(shown: Shown) -> None:
    """Primary ones first, and none of another application."""
    found = [row["metric"] for row in shown.rows("variable metric", board="metric")]
    primary = {f"{one.id}.{metric.key}" for one in load().values() for metric in one.metrics if metric.primary}
    assert set(found[: len(primary)]) == primary
    assert [row["segment"] for row in shown.rows("variable segment", board="metric")] == ["tenant"]
    assert shown.rows("variable metric", {"app": "nobody"}, board="metric") == []
