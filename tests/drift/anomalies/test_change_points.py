"""What detectors find becomes problems that say what moved; what warms up, turns or comes too late stays quiet."""

import itertools
import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from ragtide.drift.anomalies.change_points import ChangePointReporter
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.scanner import Scanner, ScanResult
from ragtide.drift.anomalies.state_store import ClickHouseStateStore
from ragtide.drift.job_history import StopRequested
from ragtide.drift.leadership import Term
from ragtide.drift.problems.chart import chart_points, chart_series
from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.report import Detection, ProblemKey, build_details, report_detections
from ragtide.drift.problems.store import load_problems
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, START, WindowFixture, WindowRow, window
from tests.infra.fresh_database import fresh_database

FIRST = START + 2 * DAY + 2 * 3600
ONSET = FIRST + 2 * 3600
BACK = ONSET + 2 * 3600
OVER = BACK + 4 * 3600
METRIC = "quality.good"


def windows(first: int, end: int) -> Iterator[WindowRow]:
    """Scores of apps that stay, fall for two hours, get another fingerprint, or are young; languages of questions."""
    for at in range(first, end, BASE):
        rng = np.random.default_rng(at - START)
        bad = ONSET <= at < BACK
        means = {"stays": 0.8, "falls": 0.65 if bad else 0.8, "renewed": 0.6 if at >= ONSET else 0.8}
        means |= {"young": 0.5 if bad else 0.8} if at >= FIRST - 6 * 3600 else {}
        for app, mean in means.items():
            fingerprint = "f2" if app == "renewed" and at >= ONSET else "f1"
            values = np.clip(rng.normal(mean, 0.1, 40), 0, 1)
            yield window(METRIC, at, values, version=0, app=app, fingerprint=fingerprint)
        german = 0.4 if bad else 0.1
        counts = {"en": int(60 * (1 - german)), "de": int(60 * german)}
        yield window("inputs.question_language", at, counts, version=0, app="falls")


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[WindowFixture]:
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database)
        planted.store(windows(START + DAY // 2, FIRST))
        planted.scan(FIRST)
        yield planted


@pytest.fixture(scope="module")
def bad(planted: WindowFixture) -> ScanResult:
    """An hour after things went wrong."""
    planted.store(windows(FIRST, ONSET + 3600))
    return planted.scan(ONSET + 3600)


def told(planted: WindowFixture, looked: ScanResult) -> list[EventRow]:
    rules = RuleSettings(update_every_s=0)
    term = Term(1, datetime.now(UTC))
    teller = ChangePointReporter(
        planted.database, rules, monitored_metrics(EVALUATORS.values()), SegmentValues({}), term, planted.settings
    )
    return teller.report(looked, datetime.now(UTC))


def problems(planted: WindowFixture) -> dict[tuple[str, str], Problem]:
    return {(one.app, one.metric): one for one in load_problems(planted.database)}


def warming(looked: ScanResult) -> set[Series]:
    return {
        series
        for one in looked.snapshots
        for series, why in zip(one.batch.series, one.baseline.warm_up_reasons(), strict=True)
        if why
    }


def test_a_fall_is_a_problem_that_says_what_moved(planted: WindowFixture, bad: ScanResult) -> None:
    opened = told(planted, bad)
    assert {(event.app, event.metric, event.event) for event in opened} == {
        ("falls", METRIC, "opened"),
        ("falls", "inputs.question_language", "opened"),
    }
    assert told(planted, bad) == []
    fall = problems(planted)["falls", METRIC]
    assert (fall.kinds, fall.aspect, fall.code) == (("change_point",), "level", "P0102 Concept drift")
    said = fall.attributes
    assert said["baseline"] == pytest.approx(0.8, abs=0.01)
    assert said["value"] == pytest.approx(0.65, abs=0.03)
    assert said["since"] == datetime.fromtimestamp(ONSET, UTC).isoformat()
    assert said["log10_e_value"] >= np.log10(288 / 0.001)
    assert said["effect_size"] == pytest.approx(-1.5, abs=0.3)
    assert fall.severity == "critical"  # a shift by 1.5 deviations moves 55 % of the records
    usual, now = f"{said['baseline']:.3g}", f"{said['value']:.3g}"
    at = f"{datetime.fromtimestamp(ONSET, UTC):%Y-%m-%d %H:%M} UTC"
    assert fall.description == (
        f"falls (prod, model m1): the mean of {METRIC} fell from {usual} to {now} at {at}. "
        f"Measured on {said['sample_size']} traces; {usual} is usual at this hour."
    )


def test_a_shift_in_languages_is_drift_of_inputs(planted: WindowFixture, bad: ScanResult) -> None:
    told(planted, bad)
    shift = problems(planted)["falls", "inputs.question_language"]
    assert (shift.kinds, shift.aspect, shift.code) == (("input_drift",), "inputs", "P0101 Data drift")
    assert shift.attributes["channel"] in ("en", "de")
    assert shift.attributes["value"] == pytest.approx(0.6 if shift.attributes["channel"] == "en" else 0.4, abs=0.02)


def test_the_chart_of_a_shift_draws_the_share_that_moved(planted: WindowFixture, bad: ScanResult) -> None:
    told(planted, bad)
    shift = problems(planted)["falls", "inputs.question_language"]
    figure = chart_series(shift, None)
    assert figure is not None
    shift = replace(shift, last_seen_at=datetime.fromtimestamp(ONSET + 3600, UTC))  # told days later
    points = chart_points(planted.database, shift, figure, BASE)
    expected = (0.9, 0.6) if shift.attributes["channel"] == "en" else (0.1, 0.4)
    assert (points[0].value, points[-1].value) == pytest.approx(expected)


def test_young_series_and_new_fingerprints_warm_up(bad: ScanResult) -> None:
    assert {series.app for series in warming(bad)} == {"young", "renewed"}


def test_what_is_well_again_is_resolved(planted: WindowFixture, bad: ScanResult) -> None:
    told(planted, bad)
    planted.store(windows(ONSET + 3600, OVER))
    looked = planted.scan(OVER)
    assert {event.event for event in told(planted, looked)} == {"resolved"}
    assert not [one for one in problems(planted).values() if one.state == "open"]
    assert [(one.since, one.until > BACK) for seen in looked.snapshots for one in seen.batch.alarm_intervals] == [
        (ONSET, True)
    ] * 2


def test_what_comes_too_late_is_counted_and_left(planted: WindowFixture, bad: ScanResult) -> None:
    looked = planted.scan(OVER)
    state = planted.database.rows("SELECT state FROM detector_states FINAL WHERE slot = 0 ORDER BY ALL")
    planted.store([window(METRIC, START + DAY, np.zeros(40), version=0, app="stays")])
    planted.store([window(METRIC, OVER - BASE, np.zeros(40), version=0, app="stays", state="frozen")])
    again = planted.scan(OVER)
    assert (looked.too_late, again.reprocessed, again.too_late) == (0, 0, 2)
    assert state == planted.database.rows("SELECT state FROM detector_states FINAL WHERE slot = 0 ORDER BY ALL")


def test_a_first_look_that_was_cut_short_goes_on(
    clickhouse_server: EmbeddedClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragtide.drift.anomalies.scanner.MAX_SERIES", 1)
    with fresh_database(clickhouse_server) as database:
        again = WindowFixture(database)
        again.store(windows(START + DAY // 2, FIRST + BASE))
        remaining = itertools.count()

        def dies(*told: int) -> None:
            if next(remaining) == 1:
                raise KeyboardInterrupt

        again.close(FIRST)
        look = Scanner(database, EVALUATORS, again.windows, again.settings, again.context)
        with pytest.raises(KeyboardInterrupt):
            look.run(datetime.now(UTC), dies)
        looked = again.scan(FIRST + BASE)
    assert looked.series == 5
    assert {series.app for series in warming(looked)} == {"young"}


def test_a_first_look_that_is_asked_to_stop_keeps_what_it_has_and_the_next_one_goes_on(
    clickhouse_server: EmbeddedClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked as it is between the two hours of the first of three batches."""
    monkeypatch.setattr("ragtide.drift.anomalies.scanner.MAX_SERIES", 2)
    with fresh_database(clickhouse_server) as database:
        again, asked = WindowFixture(database), itertools.count(1)
        again.windows = again.windows.model_copy(update={"allowed_lateness_s": 7200})
        again.store(windows(START + DAY // 2, FIRST + BASE))
        again.close(FIRST)
        look = Scanner(database, EVALUATORS, again.windows, again.settings, again.context)
        with pytest.raises(StopRequested, match="1 of 3 batches"):
            look.run(datetime.now(UTC), stopped=lambda: next(asked) >= 2)
        stored = ClickHouseStateStore(database)
        (batch,) = stored.load_batches(monitored_metrics(EVALUATORS.values()))
        assert batch.processed_until == FIRST - 3600
        learnt = [held.effective_from for held in stored.load_baselines(batch.key, batch.processed_until)]
        assert learnt == [FIRST - 7200]
        looked = again.scan(FIRST + BASE)
        assert [held.effective_from for held in stored.load_baselines(batch.key, batch.processed_until)] == learnt
    assert {one.batch.processed_until for one in looked.snapshots} == {FIRST + BASE}
    assert looked.series == 5
    assert {series.app for series in warming(looked)} == {"young"}


def test_series_too_new_for_the_baselines_of_midnight_begin_once_more(database: Database) -> None:
    """Those of the first batch are learnt then, and the last hour, which may change yet, is no history."""
    planted, midnight = WindowFixture(database), START + DAY
    times = range(midnight - 1800, midnight + 7200, BASE)
    planted.store(window(METRIC, at, np.full(9, 0.8), version=0) for at in times)
    assert planted.scan(midnight).snapshots == ()
    later = planted.scan(midnight + 7200)
    assert [one.batch.series[0].app for one in later.snapshots] == ["shop"]
    assert later.warming_up == 1


def test_what_another_job_tells_of_inputs_stays_open(planted: WindowFixture, bad: ScanResult) -> None:
    place = ProblemKey("falls", "", "", "inputs", "inputs.question_meaning")
    account = build_details("input_drift", place, None, "they ask otherwise", {}, RuleSettings(), rule_id="questions")
    at, now = calendar.utc(ONSET), datetime.now(UTC)
    report_detections(planted.database, [Detection(place, account, at, at)], RuleSettings(), Term(1, now), now)
    told(planted, bad)
    assert problems(planted)["falls", "inputs.question_meaning"].state == "open"


def test_a_leader_of_before_overwrites_nothing(planted: WindowFixture, bad: ScanResult) -> None:
    planted.scan(OVER)
    state = planted.database.rows("SELECT * FROM detector_states FINAL WHERE slot = 0 ORDER BY ALL")
    zombie = WindowFixture(planted.database, epoch=0)
    zombie.scan(OVER)
    assert state == planted.database.rows("SELECT * FROM detector_states FINAL WHERE slot = 0 ORDER BY ALL")


def test_what_another_release_wrote_begins_anew(
    planted: WindowFixture, bad: ScanResult, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("ragtide.drift.anomalies.batch._ROWS", 999)
        patched.setattr("ragtide.drift.anomalies.batch._BASELINES", 999)
        with caplog.at_level(logging.WARNING):
            looked = planted.scan(OVER)
    assert looked.series == bad.series
    assert "this release reads Rows/999" in caplog.text
