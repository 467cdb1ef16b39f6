"""Flips, tried on stored traces and scores, are what the job raised, on the real engine."""

from collections.abc import Iterator

import pytest

from ragtide.drift.backtest.run import backtest, diff_with_raised
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.robustness.flip_rate import FlipRate
from ragtide.drift.settings import JobSettings, RuleOverride, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.backtest.contract import counts, raised_summaries, simulated_summaries
from tests.drift.robustness.test_flip_rate import ScoredTrace, perturbed_trace, scored_trace, store
from tests.drift.world import QUALITY, World
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
ALL = {QUALITY.id: QUALITY}
RULES = RuleSettings(update_every_s=0, flap_s=0, repeats_within_s=3600)
OVER = 170  # minutes
JOBS = JobSettings()


def traces(world: World, minute: int) -> list[ScoredTrace]:
    """Of ten minutes: pairs of `shop`, and of `late` perturbed forms first and their originals twenty minutes later."""
    made = []
    changes = {10: [(0.9, 0.1)] * 12 + [(0.9, 0.8)] * 28, 40: [(0.9, 0.8)] * 90, 110: [(0.1, 0.9)] * 30}
    for i, (before, after) in enumerate(changes.get(minute, ())):
        second = 60 * minute + i
        made.append(scored_trace(world, f"o{minute}-{i}", before, second=second, app="shop"))
        made.append(perturbed_trace(world, f"p{minute}-{i}", after, of=f"o{minute}-{i}", second=second, app="shop"))
    for i in range(30):
        second = 60 * minute + i
        if minute == 10:
            made.append(perturbed_trace(world, f"q{i}", 0.6, of=f"r{i}", second=second, app="late"))
        if minute == 30:
            made.append(scored_trace(world, f"r{i}", 0.9, second=second, app="late"))
    return made


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """What the job raised, which looks every ten minutes."""
    frames = WindowSettings(base_s=600, out_of_orderness_s=0, sizes_s=(3600,))
    with fresh_database(clickhouse_server) as database:
        world = World(database, windows=frames, rules=RULES, evaluators=ALL)
        for minute in range(0, OVER, 10):
            store(world, traces(world, minute))
            world.check(FlipRate(), world.at(60 * (minute + 10)))
        yield world


def simulate(world: World, rules: RuleSettings = RULES) -> list[SimulatedProblem]:
    return backtest(world.database, ALL, rules, world.windows, JOBS, world.at(0), world.at(OVER * 60))


def test_the_same_settings_would_have_raised_what_the_job_raised_and_nothing_is_written(world: World) -> None:
    before = counts(world.database)
    found = simulate(world)
    assert simulated_summaries(found) == raised_summaries(world.database)
    assert counts(world.database) == before
    times = {
        (one.app, one.episode): tuple(
            at and (at - world.start).total_seconds() / 60 for at in (*one.openings, one.resolved_at)
        )
        for one in found
    }
    assert times == {
        ("shop", 1): (20, 50),  # 12 of 40, until 12 of 130 are not above a tenth
        ("shop", 2): (120, None),  # 30 of 30
        ("late", 1): (40, 80),  # since the originals are there, until the last hour has none
    }
    assert [one.severity for one in found if one.app == "shop"] == ["critical", "warning"]
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert (against.new, against.gone) == ((), ())


def test_pairs_are_judged_by_the_lines_that_are_tried(world: World) -> None:
    lenient = RULES.model_copy(update={"overrides": (RuleOverride(metric="quality.good", min=0.5),)})
    assert {(one.app, one.episode) for one in simulate(world, lenient)} == {("shop", 1), ("shop", 2)}
    deaf = RULES.model_copy(update={"flip_pairs": 50})
    against = diff_with_raised(world.database, simulate(world, deaf), world.at(0), world.at(OVER * 60), detectors=False)
    assert {one.app for one in against.gone} == {"shop", "late"}
