"""A day is compared with the days of its kind before as these differ, and over all series together."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from ragtide.drift.anomalies.daily_drift import DailyDriftReporter, DailyDriftTest, DriftResult
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.references import BaselinePin, ReferenceOverrides
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.leadership import Term
from ragtide.drift.problems.store import load_problems
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats.calendar import SATURDAY, weekday_of
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, START, WindowFixture, WindowRow, window
from tests.infra.fresh_database import fresh_database

METRIC = "quality.good"
LAST = START + DAY  # the day that is asked about, a weekday
while weekday_of(LAST // DAY) >= SATURDAY:
    LAST -= DAY
HISTORY = 13
WEEKDAYS = np.array([weekday_of(LAST // DAY - before) < SATURDAY for before in range(HISTORY, 0, -1)])
THIRD_LAST = [LAST - before * DAY for before in range(HISTORY, 0, -1) if weekday_of(LAST // DAY - before) < SATURDAY][
    -3
]
NOW = LAST + DAY + 2 * 3600
SHARES = {  # of records at 0.9, the others at 0.3; the last one is of the day in question
    "alike": [0.60, 0.62, 0.58, 0.61, 0.59, 0.60, 0.63, 0.57, 0.60, 0.61, 0.59, 0.62, 0.60, 0.61],
    "drifts": [0.60, 0.62, 0.58, 0.61, 0.59, 0.60, 0.63, 0.57, 0.60, 0.61, 0.59, 0.62, 0.60, 0.40],
    "sways": [0.70, 0.50, 0.65, 0.75, 0.55, 0.60, 0.80, 0.52, 0.62, 0.71, 0.49, 0.68, 0.60, 0.45],
}


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[tuple[WindowFixture, ScanResult]]:
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database)
        days = [LAST - (HISTORY - index) * DAY for index in range(HISTORY + 1)]
        for app, shares in SHARES.items():
            planted.store(rows(app, dict(zip(days, shares, strict=True))))
        yield planted, planted.scan(NOW)


def rows(app: str, shares: Mapping[int, float]) -> Iterator[WindowRow]:
    """A thousand records of each day, by its start, such a share of them at 0.9; and some now, for it to be watched."""
    yield window(METRIC, NOW - BASE, np.full(40, 0.9), version=0, app=app)
    for day, share in shares.items():
        values = np.repeat([0.9, 0.3], [round(1000 * share), 1000 - round(1000 * share)])
        yield window(METRIC, day, values, version=0, app=app, size_s=DAY)


def daily(
    planted: WindowFixture,
    left_out: Mapping[Series, Sequence[tuple[int, int]]] | None = None,
    pin: BaselinePin | None = None,
) -> DailyDriftTest:
    pins = {} if pin is None else {(pin.app, pin.metric): pin}
    settings = DriftSettings(history_days=HISTORY)
    return DailyDriftTest(planted.database, left_out or {}, ReferenceOverrides(pins, {}), planted.windows, settings)


def teller_of(planted: WindowFixture, daily: DailyDriftTest, term: Term) -> DailyDriftReporter:
    watched = monitored_metrics(EVALUATORS.values())
    return DailyDriftReporter(planted.database, RuleSettings(), watched, SegmentValues({}), term, daily)


def test_a_day_unlike_the_others_is_found_by_how_much_days_differ(planted: tuple[WindowFixture, ScanResult]) -> None:
    looked = planted[1]
    compared = daily(planted[0]).compare(looked.snapshots, LAST)
    (found,) = compared.drifted
    assert {series.app for series in compared.stable} == {"alike", "sways"}
    assert found.series.app == "drifts"
    assert found.share == pytest.approx(0.4)
    assert (found.days, found.records) == (9, 1000)
    p = {}
    for app, shares in SHARES.items():
        history, today = np.array(shares[:-1])[WEEKDAYS], shares[-1]
        t = (today - history.mean()) / (history.std(ddof=1) * np.sqrt(1 + 1 / len(history)))
        p[app] = min(1.0, 3 * 2 * stats.t.sf(abs(t), len(history) - 1))
    assert found.p == pytest.approx(p["drifts"], rel=1e-9)
    corrected = dict(zip(p, stats.false_discovery_control(list(p.values())), strict=True))
    assert found.p_adjusted == pytest.approx(corrected["drifts"], rel=1e-9)


def test_days_of_trouble_are_no_examples(planted: tuple[WindowFixture, ScanResult]) -> None:
    looked = planted[1]
    series = next(series for one in looked.snapshots for series in one.batch.series if series.app == "drifts")
    most = {series: [(START - 20 * DAY, THIRD_LAST)]}
    found = daily(planted[0], most).compare(looked.snapshots, LAST)
    assert series not in {*found.stable, *(one.series for one in found.drifted)}, "three days are too few"
    hours = {series: [(LAST - before * DAY + 3600, LAST - before * DAY + 10_000) for before in range(1, HISTORY)]}
    (found_all,) = daily(planted[0], hours).compare(looked.snapshots, LAST).drifted
    assert found_all.days == 9, "a short trouble takes nothing from a day, though each has one"
    stands = {series: [(START - 20 * DAY, LAST - DAY)] * 2}
    (found_all,) = daily(planted[0], stands).compare(looked.snapshots, LAST).drifted
    assert found_all.days == 9, "trouble on nearly all days is how it is"


def test_weekdays_are_compared_with_weekdays(clickhouse_server: EmbeddedClickHouse) -> None:
    """A weekday as bad as weekends are is found; the first weekend of all waits for others."""
    saturday = next(day for day in range(LAST, 0, -DAY) if weekday_of(day // DAY) == SATURDAY)
    weekly = {
        LAST - before * DAY: 0.3 if weekday_of(LAST // DAY - before) >= SATURDAY else 0.6 + 0.01 * (before % 3)
        for before in range(1, HISTORY + 1)
    }
    young = {saturday - before * DAY: 0.6 + 0.01 * (before % 3) for before in range(1, 6)}
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database)
        planted.store([*rows("weekly", weekly | {LAST: 0.3}), *rows("young", young | {saturday: 0.3})])
        seen = planted.scan(NOW).snapshots
        found = daily(planted).compare(seen, LAST)
        assert [(one.series.app, one.usual > 0.59, one.days) for one in found.drifted] == [("weekly", True, 9)]
        assert daily(planted).compare(seen, saturday).drifted == ()


def test_it_is_told_once_a_day(planted: tuple[WindowFixture, ScanResult]) -> None:
    database, looked = planted[0].database, planted[1]
    term = Term(1, datetime.now(UTC))
    teller = teller_of(planted[0], daily(planted[0]), term)
    assert [event.event for event in teller.report(looked, datetime.now(UTC))] == ["opened"]
    assert teller.report(looked, datetime.now(UTC)) == []
    (problem,) = load_problems(database)
    assert (problem.kinds, problem.code, problem.attributes["value"]) == (("drift",), "P0102 Concept drift", 0.4)
    usual = np.array(SHARES["drifts"][:-1])[WEEKDAYS] * 100
    low, middle, high = (f"{one:.3g} %" for one in (usual.min(), usual.mean(), usual.max()))
    assert problem.description == (
        f"drifts (prod, model m1): the distribution of {METRIC} changed on {time(LAST):%Y-%m-%d}. "
        f"40 % of 1,000 traces were above 0.31, against {middle} ({low} to {high}) on the 9 weekdays before."
    )


def time(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def test_days_are_made_of_hours_where_there_are_no_windows_of_days(clickhouse_server: EmbeddedClickHouse) -> None:
    hourly = WindowSettings(base_s=BASE, sizes_s=(3600,), allowed_lateness_s=3600)
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database, windows=hourly)
        for before, share in zip(range(HISTORY, -1, -1), SHARES["drifts"], strict=True):
            for row in rows("drifts", {LAST - before * DAY: share}):
                halves = [row._replace(size_s=3600, start=row.start + timedelta(hours=at)) for at in (0, 23)]
                planted.store([row] if row.size_s == BASE else halves)
        (found,) = daily(planted).compare(planted.scan(NOW).snapshots, LAST).drifted
        assert (found.days, found.records) == (9, 2000)
        assert found.share == pytest.approx(0.4)


@pytest.mark.parametrize("run", ["live", "release"])
def test_a_pinned_series_is_compared_with_its_pin(planted: tuple[WindowFixture, ScanResult], run: str) -> None:
    """By as much as the days before differ: 40 % of today are like the others of app drifts, and unlike the pin."""
    database, looked = planted
    at = LAST - 40 * DAY
    database.store(
        window(METRIC, at, np.repeat([0.9, 0.3], [n, 1000 - n]), version=0, app=app, size_s=DAY, run_id=run)
        for app, n in (("alike", 800), ("sways", 620))
    )
    told: dict[str, DriftResult] = {}
    for app in ("alike", "sways"):
        pin = BaselinePin(app, "", run, time(at), time(at + DAY), "as it should be", "ann", 0, time(NOW))
        found = daily(database, pin=pin).compare(looked.snapshots, LAST)
        told |= {one.series.app: one for one in found.drifted if one.pinned}
    assert set(told) == {"alike"}
    one = told["alike"]
    assert (one.share, one.usual, one.low, one.high) == pytest.approx((0.61, 0.8, 0.8, 0.8))
    assert one.days == 1
    history = np.array(SHARES["alike"][:-1])[WEEKDAYS]
    t = (0.61 - 0.8) / (history.std(ddof=1) * np.sqrt(1 + 1 / 1))
    assert one.p == pytest.approx(min(1.0, 3 * 2 * stats.t.sf(abs(t), len(history) - 1)), rel=1e-6)


def test_a_problem_of_which_nobody_can_tell_stays(planted: tuple[WindowFixture, ScanResult]) -> None:
    database, looked = planted
    series = next(series for one in looked.snapshots for series in one.batch.series if series.app == "drifts")
    term = Term(1, datetime.now(UTC))
    assert [one.app for one in load_problems(database.database)] == ["drifts"]
    database.database.command("TRUNCATE TABLE cursors")
    most = {series: [(START - 20 * DAY, THIRD_LAST)]}
    assert teller_of(database, daily(database, most), term).report(looked, datetime.now(UTC)) == []
    database.database.command("TRUNCATE TABLE cursors")
    alike = BaselinePin("drifts", "", "live", time(LAST), time(LAST + DAY), "as it is", "ann", 0, time(NOW))
    events = teller_of(database, daily(database, pin=alike), term).report(looked, datetime.now(UTC))
    assert [event.event for event in events] == ["resolved"]
