"""After an accepted change a series is watched as soon as its new level is known, by the hours and noise of before."""

from collections.abc import Iterator

import numpy as np
import pytest

from drift.problems.events import Place
from drift.settings import DriftSettings
from drift.watching import grid
from drift.watching.kinds import watches
from drift.watching.look import Looked
from drift.watching.shown import Shown, shown
from sinks.clickhouse.database import Database
from tests.drift.watching.planted import BASE, DAY, EVALUATORS, START, Planted, WindowRow, accepted, window

METRIC = "checked.passes"
HOUR = 3600
ONSET = START + 2 * DAY + DAY // 2


def failing(first: int, end: int, share: float) -> Iterator[WindowRow]:
    for at in range(first, end, BASE):
        yield window(METRIC, at, np.random.default_rng(at - START).random(60) > share, version=0)


def level(looked: Looked) -> float:
    (one,) = looked.seen
    return float(one.baseline.level[0, 0].mean())


def told(planted: Planted) -> Shown:
    settings = DriftSettings(history_days=2)
    (one,) = shown(planted.database, watches(EVALUATORS.values()), planted.windows, settings, {"metric": METRIC})
    return one


@pytest.mark.clickhouse
def test_hours_after_it_was_accepted_it_is_watched_at_its_level(database: Database) -> None:
    """2 % failed, then 8 %, which was meant, and half a day later 25 %. An hour of it is too few to know the level."""
    planted, again = Planted(database), ONSET + DAY // 2
    planted.store(failing(START + DAY // 2, ONSET, 0.02))
    planted.store(failing(ONSET, again, 0.08))
    planted.store(failing(again, again + HOUR, 0.25))
    planted.look(ONSET)
    assert planted.look(ONSET + 2 * HOUR).alarms == 1
    database.insert("problem_events", [accepted(Place("shop", "prod", "m1", "level", METRIC), grid.time(ONSET))])
    looked = planted.look(ONSET + 2 * HOUR + BASE)
    assert (looked.warming, looked.alarms) == (1, 0)
    said = told(planted)
    assert said.warming == "25 windows with records since the accepted change are too few to know its level"
    assert said.warm_at == grid.time(ONSET + 3 * HOUR)
    planted.look(ONSET + 5 * HOUR)
    looked = planted.look(ONSET + 5 * HOUR + BASE)
    assert looked.warming == 0
    assert level(looked) == pytest.approx(0.08, abs=0.02)
    assert told(planted).rests_on.endswith("which was accepted; its hours and its noise are those of the days before")
    assert planted.look(again).alarms == 0
    assert planted.look(again + HOUR).alarms == 1
