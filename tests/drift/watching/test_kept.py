"""Where states and baselines are kept, in the database and in memory: both answer alike, on the real engine."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from drift.rules.series import Series
from drift.watching import detecting
from drift.watching.batch import Batch, BatchKey, Fitted
from drift.watching.kept import NEWEST, Held, Kept, Stored, slot_of
from drift.watching.kinds import watches
from drift.watching.reading import Newcomer
from drift.watching.remembered import Remembered
from sinks.clickhouse.database import Database
from tests.drift.watching.planted import BASE, DAY, EVALUATORS, START

pytestmark = pytest.mark.clickhouse
WATCHED = watches(EVALUATORS.values())
KEY, OTHER = BatchKey("score", "fast", 0), BatchKey("score", "fast", 1)
HOUR = 3600


def in_database(database: Database) -> Kept:
    numbers = itertools.count(1)
    return Stored(database, lambda: next(numbers))


def in_memory(database: Database) -> Kept:
    return Remembered()


@pytest.mark.parametrize("made", [in_database, in_memory])
def test_states_are_as_they_were_kept_and_can_be_gone_back_to(
    database: Database, made: Callable[[Database], Kept]
) -> None:
    kept = made(database)
    batch = Batch.empty(KEY, BASE, START, 7)
    names = {1: "quality.good", 2: "gone.metric"}
    new = {id_: Newcomer(Series("shop", "prod", name, "m1", "", ""), 1) for id_, name in names.items()}
    batch.add(new, BASE, known_before=True)
    for _ in range(3):
        batch.until += HOUR
        kept.keep(batch, slot_of(batch.until, HOUR))
        kept.keep(batch, NEWEST)
    kept.keep(Batch.empty(OTHER, BASE, START, 0), NEWEST)
    batch.until += BASE
    batch.rows.away[:] = 2  # what goes on is no part of what was kept
    first, second = kept.batches(WATCHED)
    assert (first.key, second.key) == (KEY, OTHER)
    assert (first.until, first.position, first.rows.away.tolist()) == (START + 3 * HOUR, 7, [0])
    assert [one.metric for one in first.series] == ["quality.good"], "what nobody watches is left out"
    back = [kept.checkpoint(KEY, START + late * HOUR + BASE, WATCHED) for late in (1, 2, 3)]
    assert [one and one.until for one in back] == [None, START + 2 * HOUR, START + 3 * HOUR]
    assert kept.checkpoint(OTHER, START + DAY, WATCHED) is None


@pytest.mark.parametrize("made", [in_database, in_memory])
def test_of_baselines_those_are_held_that_a_batch_may_go_back_to(
    database: Database, made: Callable[[Database], Kept]
) -> None:
    kept = made(database)
    ids = np.array([1], np.uint64)
    for day in range(7):
        fitted = Fitted(ids, ids, np.array([day]), detecting.blank("score", BASE, 1))
        kept.keep_baseline(KEY, Held(START + day * DAY, fitted))
    for until, held in ((START + 4 * DAY, [3, 4, 5, 6]), (START + 9 * DAY, [5, 6]), (START + 2 * DAY, [2, 5, 6])):
        found = kept.baselines(KEY, until)
        assert [int(one.fitted.basis[0]) for one in found] == held
        assert [one.holds_from for one in found] == [START + day * DAY for day in held]
    assert kept.baselines(OTHER, START) == []
