"""A day is compared with the days of its kind before as these differ, and over all series together."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import stats

from drift.detectors.season import SATURDAY, weekday_of
from drift.leadership import Term
from drift.problems.folding import load_problems
from drift.settings import RuleSettings
from drift.watching.daily import Daily
from drift.watching.daily_told import DailyTeller
from drift.watching.kinds import watches
from drift.watching.look import Looked
from drift.windows.segments import SegmentValues
from sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.watching.planted import BASE, DAY, EVALUATORS, START, Planted, WindowRow, window
from tests.infra.fresh_database import fresh_database

METRIC = "quality.good"
LAST = START + DAY  # the day that is asked about, a weekday
while weekday_of(LAST // DAY) >= SATURDAY:
    LAST -= DAY
HISTORY = 13
WEEKDAYS = np.array([weekday_of(LAST // DAY - before) < SATURDAY for before in range(HISTORY, 0, -1)])
NOW = LAST + DAY + 2 * 3600
SHARES = {  # of records at 0.9, the others at 0.3; the last one is of the day in question
    "alike": [0.60, 0.62, 0.58, 0.61, 0.59, 0.60, 0.63, 0.57, 0.60, 0.61, 0.59, 0.62, 0.60, 0.61],
    "drifts": [0.60, 0.62, 0.58, 0.61, 0.59, 0.60, 0.63, 0.57, 0.60, 0.61, 0.59, 0.62, 0.60, 0.40],
    "sways": [0.70, 0.50, 0.65, 0.75, 0.55, 0.60, 0.80, 0.52, 0.62, 0.71, 0.49, 0.68, 0.60, 0.45],
}


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[tuple[Planted, Looked]]:
    with fresh_database(clickhouse_server) as database:
        planted = Planted(database)
        days = [LAST - (HISTORY - index) * DAY for index in range(HISTORY + 1)]
        for app, shares in SHARES.items():
            planted.store(rows(app, dict(zip(days, shares, strict=True))))
        yield planted, planted.look(NOW)


def rows(app: str, shares: Mapping[int, float]) -> Iterator[WindowRow]:
    """A thousand records of each day, by its start, such a share of them at 0.9; and some now, for it to be watched."""
    yield window(METRIC, NOW - BASE, np.full(40, 0.9), version=0, app=app)
    for day, share in shares.items():
        values = np.repeat([0.9, 0.3], [round(1000 * share), 1000 - round(1000 * share)])
        yield window(METRIC, day, values, version=0, app=app, size_s=DAY)


def test_a_day_unlike_the_others_is_found_by_how_much_days_differ(planted: tuple[Planted, Looked]) -> None:
    database, looked = planted[0].database, planted[1]
    (found,) = Daily(database, {}, HISTORY).drifted(looked.seen, LAST)
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


def test_days_of_trouble_are_no_examples(planted: tuple[Planted, Looked]) -> None:
    database, looked = planted[0].database, planted[1]
    series = next(series for one in looked.seen for series in one.batch.series if series.app == "drifts")
    most = {series: [(START - 20 * DAY, LAST - 3 * DAY)]}
    assert Daily(database, most, HISTORY).drifted(looked.seen, LAST) == []  # three days are too few


def test_weekdays_are_compared_with_weekdays(clickhouse_server: EmbeddedClickHouse) -> None:
    """A weekday as bad as weekends are is found; the first weekend of all waits for others."""
    saturday = next(day for day in range(LAST, 0, -DAY) if weekday_of(day // DAY) == SATURDAY)
    weekly = {
        LAST - before * DAY: 0.3 if weekday_of(LAST // DAY - before) >= SATURDAY else 0.6 + 0.01 * (before % 3)
        for before in range(1, HISTORY + 1)
    }
    young = {saturday - before * DAY: 0.6 + 0.01 * (before % 3) for before in range(1, 6)}
    with fresh_database(clickhouse_server) as database:
        planted = Planted(database)
        planted.store([*rows("weekly", weekly | {LAST: 0.3}), *rows("young", young | {saturday: 0.3})])
        seen, daily = planted.look(NOW).seen, Daily(database, {}, HISTORY)
        assert [(one.series.app, one.usual > 0.59, one.days) for one in daily.drifted(seen, LAST)] == [
            ("weekly", True, 9)
        ]
        assert daily.drifted(seen, saturday) == []


def test_it_is_told_once_a_day(planted: tuple[Planted, Looked]) -> None:
    database, looked = planted[0].database, planted[1]
    term = Term(1, datetime.now(UTC))
    daily = Daily(database, {}, HISTORY)
    watched = watches(EVALUATORS.values())
    teller = DailyTeller(database, daily, RuleSettings(), watched, SegmentValues({}), term, lateness_s=3600)
    assert [event.event for event in teller.tell(looked, datetime.now(UTC))] == ["opened"]
    assert teller.tell(looked, datetime.now(UTC)) == []
    (problem,) = load_problems(database)
    assert (problem.kinds, problem.code, problem.attributes["value"]) == (("drift",), "P0102 Concept drift", 0.4)
    usual = np.array(SHARES["drifts"][:-1])[WEEKDAYS] * 100
    assert "was unlike that of the 9 weekdays before: 40 % of the traces above 0.31, " in problem.description
    low, middle, high = (f"{one:.3g} %" for one in (usual.min(), usual.mean(), usual.max()))
    assert f"usually {middle} ({low} to {high}), on 1,000 traces" in problem.description
