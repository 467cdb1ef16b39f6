"""Where states and baselines are kept, in the database and in memory: both answer alike, on the real engine."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from ragtide.drift.anomalies.batch import BaselineSet, Batch, BatchKey
from ragtide.drift.anomalies.cells import blank_baseline
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.queries import NewSeries
from ragtide.drift.anomalies.state_store import (
    NEWEST,
    BaselineVersion,
    ClickHouseStateStore,
    InMemoryStateStore,
    StateStore,
    checkpoint_slot,
)
from ragtide.drift.rules.model import Series
from ragtide.sinks.clickhouse.database import Database
from tests.drift.anomalies.window_fixture import BASE, DAY, EVALUATORS, START

pytestmark = pytest.mark.clickhouse
WATCHED = monitored_metrics(EVALUATORS.values())
KEY, OTHER = BatchKey("score", "fast", 0), BatchKey("score", "fast", 1)
HOUR = 3600


def in_database(database: Database) -> StateStore:
    numbers = itertools.count(1)
    return ClickHouseStateStore(database, lambda: next(numbers))


def in_memory(database: Database) -> StateStore:
    return InMemoryStateStore()


@pytest.mark.parametrize("made", [in_database, in_memory])
def test_states_are_as_they_were_kept_and_can_be_gone_back_to(
    database: Database, made: Callable[[Database], StateStore]
) -> None:
    kept = made(database)
    batch = Batch.empty(KEY, BASE, START)
    batch.windows_version = 7
    names = {1: "quality.good", 2: "gone.metric"}
    new = {id_: NewSeries(Series("shop", "prod", name, "m1", "", ""), 1) for id_, name in names.items()}
    batch.add(new, BASE, known_before=True)
    for _ in range(3):
        batch.processed_until += HOUR
        kept.save(batch, checkpoint_slot(batch.processed_until, HOUR))
        kept.save(batch, NEWEST)
    kept.save(Batch.empty(OTHER, BASE, START), NEWEST)
    batch.processed_until += BASE
    batch.rows.ticks_on_other_version[:] = 2  # what goes on is no part of what was kept
    first, second = kept.load_batches(WATCHED)
    assert (first.key, second.key) == (KEY, OTHER)
    assert (first.processed_until, first.windows_version, first.rows.ticks_on_other_version.tolist()) == (
        START + 3 * HOUR,
        7,
        [0],
    )
    assert [one.metric for one in first.series] == ["quality.good"], "what nobody watches is left out"
    back = [kept.load_checkpoint(KEY, START + late * HOUR + BASE, WATCHED) for late in (1, 2, 3)]
    assert [one and one.processed_until for one in back] == [None, START + 2 * HOUR, START + 3 * HOUR]
    assert kept.load_checkpoint(OTHER, START + DAY, WATCHED) is None


@pytest.mark.parametrize("made", [in_database, in_memory])
def test_of_baselines_those_are_held_that_a_batch_may_go_back_to(
    database: Database, made: Callable[[Database], StateStore]
) -> None:
    kept = made(database)
    ids = np.array([1], np.uint64)
    for day in range(7):
        fitted = BaselineSet(ids, ids, np.array([day]), blank_baseline("score", BASE, 1))
        kept.save_baseline(KEY, BaselineVersion(START + day * DAY, fitted))
    for until, held in ((START + 4 * DAY, [3, 4, 5, 6]), (START + 9 * DAY, [5, 6]), (START + 2 * DAY, [2, 5, 6])):
        found = kept.load_baselines(KEY, until)
        assert [int(one.baselines.baseline_source[0]) for one in found] == held
        assert [one.effective_from for one in found] == [START + day * DAY for day in held]
    assert kept.load_baselines(OTHER, START) == []
