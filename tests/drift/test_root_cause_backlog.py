"""Whenever the jobs run, problems have the causes that live runs find; also those that ended in between."""

import random
from collections.abc import Iterable, Iterator

import pytest

from ragtide.drift.problems.store import load_problems
from ragtide.drift.rootcause_job import RootCauseJob, RootCauseResult
from ragtide.drift.settings import WindowSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import World, score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse

TENANTS = ("acme", "beta")
HEALTHY, END = 60, 84  # minutes
FAULTS = {"ended": ("acme", range(62, 70)), "ends": ("beta", range(66, 75)), "open": ("acme", range(78, END))}
Causes = dict[tuple[str, str, str, int], list[tuple[str, str]]]


def traces(world: World, app: str) -> Iterator[ScoreRow]:
    """Twelve a minute; the tenant falls from 0.9 to 0.4 while its fault is on."""
    rng = random.Random(app)
    tenant, minutes = FAULTS[app]
    for nth in range(END * 12):
        own = TENANTS[nth % 2]
        mean = 0.2 if own == tenant and nth // 12 in minutes else 0.9
        at = world.at(nth * 5)
        yield score_row(at, f"{app}-{nth}", {"good": rng.gauss(mean, 0.02)}, app=app, segments={"tenant": own})


def causes(server: EmbeddedClickHouse, runs: Iterable[int]) -> Causes:
    """By application, segment and opening the culprits, once the jobs have run at the end of these minutes."""
    with fresh_database(server) as database:
        frames = WindowSettings(base_s=60, out_of_orderness_s=0, segments={"tenant": TENANTS})
        world, explaining = World(database, windows=frames), RootCauseJob()
        rows = [row for app in FAULTS for row in traces(world, app)]
        before = 0
        for minute in (HEALTHY, *runs):
            world.store([row for row in rows if before <= (row.time - world.start).total_seconds() < minute * 60])
            world.advance(minute * 60)
            explaining.run(world.jobs, world.at(minute * 60))
            before = minute * 60
        while explaining.run(world.jobs, world.at(END * 60)).explained:  # as many as a run may
            pass
        assert explaining.run(world.jobs, world.at(END * 60)) == RootCauseResult(0, 0)
        return {
            (one.app, one.segment, one.segment_value, one.openings): [
                (culprit["dimension"], culprit["value"]) for culprit in one.cause["culprits"]
            ]
            for one in load_problems(database)
        }


@pytest.fixture(scope="module")
def live(clickhouse_server: EmbeddedClickHouse) -> Causes:
    return causes(clickhouse_server, range(HEALTHY + 1, END + 1))


def test_live_runs_name_the_tenant(live: Causes) -> None:
    assert {app: found for (app, segment, _, _), found in live.items() if not segment} == {
        app: [("tenant", tenant)] for app, (tenant, _) in FAULTS.items()
    }


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_backlog_has_the_causes_of_live_runs(
    clickhouse_server: EmbeddedClickHouse, live: Causes, seed: int | None
) -> None:
    cuts = [] if seed is None else random.Random(seed).sample(range(HEALTHY + 1, END), 3)
    assert causes(clickhouse_server, [*sorted(cuts), END]) == live
