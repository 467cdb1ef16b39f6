"""Samples for labelling in the tables: who is drawn, whose verdicts count, and the estimate in SQL."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from ragtide.drift.label_sample import (
    SCORES,
    THUMBS,
    JudgedTraces,
    draw_traces,
    estimate_people,
    label_sums,
    labelled_interval,
    people_estimates,
)
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.label_estimates import FEWEST, estimate
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from ragtide.sinks.sample import score
from tests.label_rows import label_row

pytestmark = pytest.mark.clickhouse

NOW = datetime.now(UTC) - timedelta(hours=1)
NOW_MS = NOW.replace(microsecond=NOW.microsecond // 1000 * 1000)
FAITHFULNESS = load()["faithfulness"]
METRIC = MetricRef(FAITHFULNESS, FAITHFULNESS.metrics[0])
SINCE = NOW - timedelta(days=3)
SHOP = JudgedTraces(METRIC, "live", "shop", SINCE)


def judged(name: str, value: float, weight: float = 20.0, **changes: Any) -> ScoreRow:
    how = {"evaluator": "faithfulness", "run_id": "live", "app": "shop", "time": NOW} | changes
    return score(name, metrics={METRIC.metric.key: value}, weight=weight, **how)


def fill(database: Database, number: int, rate: float = 0.25) -> None:
    """Judged answers, of which those that are drawn have a thumb that mostly agrees with the judge."""
    rng = np.random.default_rng(1)
    rows = [judged(f"t{at}", float(rng.random()), float(rng.choice([5.0, 20.0]))) for at in range(number)]
    database.insert("scores", rows)
    values = {row.trace_id: row.metrics[METRIC.metric.key] for row in rows}
    drawn = draw_traces(database, SHOP, rate, 10_000)
    database.insert(
        "labels",
        [
            label_row(name, at, thumbs="up" if rng.random() < values[name] else "down", score=4.0, sample_rate=rate)
            for at, name in enumerate(drawn)
        ],
    )


def test_a_draw_is_repeatable_nested_and_of_about_the_rate(database: Database) -> None:
    database.insert("scores", [judged(f"t{at}", 0.5) for at in range(2_000)])
    some, more = (draw_traces(database, SHOP, rate, 10_000) for rate in (0.1, 0.3))
    assert set(some) < set(more)
    assert draw_traces(database, SHOP, 0.1, 10_000) == some
    assert abs(len(some) - 200) < 5 * (2_000 * 0.1 * 0.9) ** 0.5
    assert len(draw_traces(database, SHOP, 1.0, 10_000)) == 2_000
    assert len(draw_traces(database, SHOP, 0.3, 7)) == 7


def test_only_judged_traces_without_a_label_of_a_sample_are_drawn(database: Database) -> None:
    rows = [judged("kept", 0.5), judged("complained", 0.5), judged("labelled", 0.5), judged("commented", 0.5)]
    others = [
        judged("never", 0.5, weight=0.0),
        judged("replayed", 0.5, run_id="other"),
        judged("elsewhere", 0.5, app="docs"),
        judged("old", 0.5, time=SINCE - timedelta(hours=1)),
        judged("failed", 0.5, status="failed"),
    ]
    database.insert("scores", rows + others)
    labels = [
        label_row("complained", 1, thumbs="down"),
        label_row("labelled", 2, thumbs="up", sample_rate=0.5),
        label_row("commented", 3, comment="unclear", sample_rate=0.5),
    ]
    database.insert("labels", labels)
    assert sorted(draw_traces(database, SHOP, 1.0, 100)) == ["commented", "complained", "kept"]
    everywhere = draw_traces(database, SHOP._replace(app=None), 1.0, 100)
    assert sorted(everywhere) == ["commented", "complained", "elsewhere", "kept"]


def test_verdicts_that_nobody_asked_for_change_no_estimate(database: Database) -> None:
    fill(database, 2_000)
    made = estimate_people(database, SHOP, None)
    assert made is not None
    assert made.mean.low is not None
    assert made.mean.high is not None
    assert made.mean.low < 0.5 < made.mean.high
    assert made.labelled > FEWEST
    assert made.judged == 2_000
    assert made.saved > 0
    complaints = [label_row(f"t{at}", at, version=9, thumbs="down") for at in range(2_000)]
    database.insert("labels", complaints)
    assert estimate_people(database, SHOP, None) == made


def test_labels_of_another_evaluators_sample_change_nothing(database: Database) -> None:
    """It was drawn among traces that the other one judged, so its rate is not that of these traces."""
    fill(database, 1_000)
    before, undrawn = estimate_people(database, SHOP, None), draw_traces(database, SHOP, 1.0, 10_000)
    other: dict[str, Any] = {"sample_rate": 0.5, "sample_evaluator": "support"}
    database.insert("labels", [label_row(f"t{at}", at, version=9, thumbs="down", **other) for at in range(1_000)])
    assert before is not None
    assert estimate_people(database, SHOP, None) == before
    assert labelled_interval(database, SHOP, None) == SHOP._replace(since=NOW_MS, until=NOW_MS)
    assert draw_traces(database, SHOP, 1.0, 10_000) == undrawn, "and leave them to be drawn for this one"


def test_the_draw_serves_all_metrics_of_the_evaluator(database: Database) -> None:
    database.insert("scores", [judged("t1", 0.5)._replace(metrics={"another": 0.1})])
    assert draw_traces(database, SHOP, 1.0, 10) == ["t1"]


def test_only_traces_between_the_first_and_the_last_label_of_a_sample_are_estimated(database: Database) -> None:
    times = [NOW - timedelta(hours=hours) for hours in range(10)]
    database.insert("scores", [judged(f"t{at}", 0.5, time=time) for at, time in enumerate(times)])
    database.insert("labels", [label_row(f"t{at}", at, thumbs="up", sample_rate=1.0) for at in (3, 4, 6)])
    between = labelled_interval(database, SHOP, None)
    assert (between.since, between.until) == (NOW_MS - timedelta(hours=6), NOW_MS - timedelta(hours=3))
    made = estimate_people(database, between, None)
    assert made is not None
    assert (made.judged, made.coverage) == (4, 0.75)
    assert labelled_interval(database, SHOP._replace(app="docs"), None).since == SINCE


def test_the_newest_label_of_the_sample_counts(database: Database) -> None:
    fill(database, 1_000)
    before = estimate_people(database, SHOP, None)
    drawn = database.rows("SELECT trace_id FROM labels WHERE sample_rate > 0")
    again = [label_row(row["trace_id"], at, version=5, thumbs="up", sample_rate=0.25) for at, row in enumerate(drawn)]
    database.insert("labels", again)
    after = estimate_people(database, SHOP, None)
    assert before is not None
    assert after is not None
    assert (before.labelled, before.mean.value < 0.7) == (after.labelled, True)
    assert (after.mean.value, after.mean.low) == (1.0, None), "all agree, so there is no interval"


def test_scores_of_people_are_good_from_a_number_on(database: Database) -> None:
    fill(database, 400)
    liked, disliked = (estimate_people(database, SHOP, good_from) for good_from in (4.0, 4.5))
    assert liked is not None
    assert disliked is not None
    assert (liked.mean.value, disliked.mean.value) == (1.0, 0.0)


def test_without_a_label_of_a_sample_there_is_no_estimate(database: Database) -> None:
    assert estimate_people(database, SHOP, None) is None, "nothing was judged"
    database.insert("scores", [judged("t1", 0.5)])
    database.insert("labels", [label_row("t1", 1, thumbs="up")])
    assert estimate_people(database, SHOP, None) is None


def test_sql_gives_what_python_gives(database: Database) -> None:
    """By application: one with an interval, one near the end of the range, others without an interval or a label."""
    fill(database, 2_000)
    heavy = [judged(f"heavy{at}", at / 80, 1.0 if at else 500.0, app="heavy") for at in range(80)]
    near = [judged(f"near{at}", at % 7 / 7, app="near") for at in range(80)]
    database.insert("scores", heavy + near)
    everything: dict[str, Any] = {"sample_rate": 1.0}
    of_heavy = [label_row(f"heavy{at}", at, thumbs="up" if at % 3 else "down", **everything) for at in range(80)]
    of_near = [
        label_row(f"near{at}", at, thumbs="up" if at % 60 else "down", sample_rate=0.5 if at % 2 else 1.0)
        for at in range(80)
    ]
    database.insert("labels", of_heavy + of_near)
    more = [judged(f"{app}{at}", at / 80, app=app) for app in ("few", "alike", "none") for at in range(80)]
    database.insert("scores", more)
    labels = [label_row(f"few{at}", at, thumbs="up" if at % 3 else "down", sample_rate=0.5) for at in range(12)]
    labels += [label_row(f"alike{at}", at, thumbs="up", sample_rate=1.0) for at in range(80)]
    database.insert("labels", labels)
    scores = (
        f"SELECT app, trace_id, evaluator, metrics['{METRIC.metric.key}'] AS score_of_judge, weight FROM scores FINAL"
    )
    sums = label_sums(scores, "labels", THUMBS, by=["app"])
    expected = {row["app"]: estimate(row) for row in database.rows(sums)}
    found = {row["app"]: row for row in database.rows(people_estimates(sums, THUMBS, ["app"]))}
    assert sorted(found) == ["alike", "few", "heavy", "near", "shop"]
    assert expected["none"] is None
    for app, row in found.items():
        made = expected[app]
        assert made is not None
        if app == "near":
            assert (made.mean.high or 0.0) > 1.0, "before it is brought into the range of a share"
            assert (row["estimate_high"], row["coverage"]) == (1.0, None)
        made = made.within(0.0, 1.0)
        numbers = (row["estimate"], row["estimate_low"], row["estimate_high"], row["labels_mean"], row["coverage"])
        assert numbers == pytest.approx(
            (made.mean.value, made.mean.low, made.mean.high, made.plain.value, made.coverage), abs=1e-4
        )
        assert (row["labels"], row["judged"]) == (made.labelled, made.judged)
    assert found["shop"]["estimate_low"] is not None
    assert [found[app]["estimate_low"] for app in ("few", "alike", "heavy")] == [None] * 3
    by_score = people_estimates(label_sums(scores, "labels", SCORES), SCORES)
    assert [row["estimate"] for row in database.rows(by_score)] == pytest.approx([4.0])
