"""A model that takes over from another one is judged by that one's days: what became worse with it is a problem."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pytest

from ragtide.drift.anomalies.change_points import ChangePointReporter
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.operator_actions import accept
from ragtide.drift.problems.store import load_problems
from ragtide.drift.rootcause_job import RootCauseJob
from ragtide.drift.settings import JobSettings, RuleSettings
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, START, WindowFixture, WindowRow, window
from tests.infra.fresh_database import fresh_database

HOUR = 3600
RULES = RuleSettings(update_every_s=0, stale_after_s=HOUR)
FIRST = START + 2 * DAY + 2 * HOUR
SWITCH = FIRST + HOUR
LATER = SWITCH + HOUR
SCORE, RATE, LATENCY, WORDS = "quality.good", "operations.error", "operations.latency_seconds", "inputs.answer_words"
OF_M2 = {"same": 0.8, "worse": 0.7, "better": 0.9, "canary": 0.7, "rejudged": 0.5}  # mean scores; 0.8 with m1


def windows(first: int, end: int) -> Iterator[WindowRow]:
    """Apps whose model m2 takes over from m1 at `SWITCH`, in `canary` beside it; in `worse` all becomes worse.

    In `rejudged` the evaluator has another version since then.
    """
    for at in range(first, end, BASE):
        rng = np.random.default_rng(at - START)
        for app, mean in OF_M2.items():
            for model in ["m1"] if at < SWITCH else ["m1", "m2"] if app == "canary" else ["m2"]:
                values = np.clip(rng.normal(mean if model == "m2" else 0.8, 0.1, 40), 0, 1)
                fingerprint = "f2" if app == "rejudged" and model == "m2" else "f1"
                yield window(SCORE, at, values, version=0, app=app, fingerprint=fingerprint)._replace(model=model)
        model, slow, failing = ("m2", 1.6, 0.12) if at >= SWITCH else ("m1", 1.0, 0.02)
        for metric, values in {
            LATENCY: slow * rng.lognormal(0, 0.4, 40),
            RATE: (rng.random(40) < failing).astype(float),
            WORDS: slow * rng.lognormal(4, 0.4, 40),
        }.items():
            yield window(metric, at, values, version=0, app="worse")._replace(model=model)


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[WindowFixture]:
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database)
        planted.store(windows(START + DAY // 2, FIRST))
        planted.scan(FIRST)
        yield planted


@pytest.fixture(scope="module")
def switched(planted: WindowFixture) -> ScanResult:
    """An hour after the models took over."""
    planted.store(windows(FIRST, LATER))
    return planted.scan(LATER)


def told(planted: WindowFixture, looked: ScanResult) -> list[EventRow]:
    term = Term(1, datetime.now(UTC))
    teller = ChangePointReporter(
        planted.database, RULES, monitored_metrics(EVALUATORS.values()), SegmentValues({}), term, planted.settings
    )
    return teller.report(looked, datetime.now(UTC))


def problems(planted: WindowFixture) -> dict[tuple[str, str], Problem]:
    return {(one.app, one.metric): one for one in load_problems(planted.database)}


def test_a_regression_that_came_with_a_model_is_told_under_it(planted: WindowFixture, switched: ScanResult) -> None:
    opened = told(planted, switched)
    assert {(event.app, event.metric, event.event) for event in opened} == {
        ("worse", SCORE, "opened"),
        ("worse", LATENCY, "opened"),
        ("worse", RATE, "opened"),
        ("canary", SCORE, "opened"),
    }
    assert {event.model for event in opened} == {"m2"}
    assert told(planted, switched) == []
    fall = problems(planted)["worse", SCORE]
    said = fall.attributes
    assert (fall.kinds, fall.code, said["model_before"]) == (("change_point",), "P0102 Concept drift", "m1")
    assert said["model_since"] == said["since"] == datetime.fromtimestamp(SWITCH, UTC).isoformat()
    assert (said["baseline"], said["value"]) == (pytest.approx(0.8, abs=0.01), pytest.approx(0.7, abs=0.01))
    at = f"{datetime.fromtimestamp(SWITCH, UTC):%Y-%m-%d %H:%M} UTC"
    assert fall.description == (
        f"worse (prod, model m2): the mean of {SCORE} fell from {said['baseline']:.3g} to {said['value']:.3g} "
        f"when m2 took over from m1. That was at {at}. "
        f"Measured on 480 traces; {said['baseline']:.3g} is usual with m1 at this hour."
    )
    assert f"when m2 started beside m1. That was at {at}." in problems(planted)["canary", SCORE].description


def test_its_cause_is_the_model_that_came(planted: WindowFixture, switched: ScanResult) -> None:
    told(planted, switched)
    jobs = JobContext(planted.database, EVALUATORS, planted.windows, RULES, JobSettings(), Term(1, datetime.now(UTC)))
    RootCauseJob().run(jobs, datetime.now(UTC))
    of_worse, of_canary = (problems(planted)[app, SCORE].explanation for app in ("worse", "canary"))
    assert of_worse.startswith("Model changed from m1 to m2 at 03:00 UTC (0 % → 100 % of the traffic)")
    told_of = re.search(r"Model m2 explains .* \(from 0 % to 50 % of the traffic, mean (.*?)\)", of_canary)
    assert told_of
    assert float(told_of[1]) == pytest.approx(0.7, abs=0.01)


def test_what_is_accepted_or_taken_back_is_compared_no_more(planted: WindowFixture, switched: ScanResult) -> None:
    told(planted, switched)
    now = datetime.now(UTC)
    accept(planted.database, problems(planted)["canary", SCORE], "ann", now, "cheaper, and good enough")
    planted.store(row for row in windows(LATER, LATER + 2 * HOUR) if row.app == "canary")
    back = LATER + 2 * HOUR - BASE
    usual = {SCORE: np.full(40, 0.8), LATENCY: np.repeat([0.6, 1.5], 20), RATE: np.zeros(40)}
    planted.store(window(metric, back, values, version=0, app="worse") for metric, values in usual.items())
    looked = planted.scan(LATER + 2 * HOUR)
    assert "canary" not in {series.app for one in looked.rollouts for series in one.batch.series}
    assert {(event.app, event.event) for event in told(planted, looked)} == {("worse", "resolved")}
    assert {one.state for one in problems(planted).values()} == {"resolved"}


def test_a_first_look_compares_too_and_late_windows_are_looked_at_again(
    clickhouse_server: EmbeddedClickHouse, switched: ScanResult
) -> None:
    with fresh_database(clickhouse_server) as database:
        again = WindowFixture(database)
        again.store(windows(START + DAY // 2, LATER))
        again.scan(LATER + BASE)
        again.store(windows(LATER, LATER + BASE))
        looked = again.scan(LATER + 2 * BASE)
        assert looked.reprocessed == 9
        assert {alarm.series for one in looked.rollouts for alarm in one.alarms()} == {
            alarm.series for one in switched.rollouts for alarm in one.alarms()
        }
        before = {one.batch.rollout_of(int(id_)) for one in looked.rollouts for id_ in one.batch.rows.ids}
        assert {(one.model, one.since) for one in before if one} == {("m1", SWITCH)}


def test_a_week_later_its_own_days_alone_count(
    planted: WindowFixture, switched: ScanResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(planted, switched)
    monkeypatch.setattr("ragtide.drift.anomalies.rollouts.COMPARED_S", HOUR)
    looked = planted.scan(LATER + 3 * HOUR)
    assert looked.rollouts == ()
    told(planted, looked)
    assert not [one for one in problems(planted).values() if one.state == "open"]
