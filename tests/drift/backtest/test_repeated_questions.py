"""Questions answered inconsistently, tried on stored traces, are what the job raised, on the real engine."""

from collections.abc import Iterator

import pytest

from ragtide.drift.backtest.run import backtest, diff_with_raised
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.checks.engine import instants
from ragtide.drift.robustness.answer_agreement import AnswerAgreement
from ragtide.drift.robustness.score_consistency import ScoreConsistency
from ragtide.drift.rule_settings import AppRules
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.drift.backtest.contract import counts, raised_summaries, simulated_summaries
from tests.drift.robustness.test_answer_agreement import OTHER, SAME
from tests.drift.robustness.test_answer_agreement import ask as answered
from tests.drift.robustness.test_score_consistency import GOOD, ONCE_BAD
from tests.drift.robustness.test_score_consistency import ask as scored
from tests.drift.world import QUALITY, World
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
ALL = {QUALITY.id: QUALITY}
RULES = RuleSettings(update_every_s=0, flap_s=0, repeats_within_s=3600)
JOBS = JobSettings(repeats_every_s=600)
OVER = 100  # minutes


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """What the job raised, which looks every ten minutes."""
    frames = WindowSettings(base_s=600, out_of_orderness_s=0, sizes_s=(3600,))
    with fresh_database(clickhouse_server) as database:
        world = World(database, windows=frames, rules=RULES, evaluators=ALL)
        for minute in range(0, OVER, 10):
            if minute == 10:
                scored(world, [ONCE_BAD] * 20 + [GOOD] * 10, name="q", second=600, app="shop")
            if minute == 20:
                answered(world, [[SAME, SAME, OTHER]] * 10, name="a", second=1200, app="says")
            if minute == 40:
                scored(world, [GOOD] * 80, name="r", second=2400, app="shop")
            now = world.at(60 * (minute + 10))
            world.check(ScoreConsistency(), now)
            world.check(AnswerAgreement(), now)
        yield world


def simulate(world: World, rules: RuleSettings = RULES) -> list[SimulatedProblem]:
    return backtest(world.database, ALL, rules, world.windows, JOBS, world.at(0), world.at(OVER * 60))


def test_the_same_settings_would_have_raised_what_the_job_raised_and_nothing_is_written(world: World) -> None:
    before = counts(world.database)
    found = simulate(world)
    assert simulated_summaries(found) == raised_summaries(world.database)
    assert counts(world.database) == before
    times = {
        one.app: tuple(at and (at - world.start).total_seconds() / 60 for at in (*one.openings, one.resolved_at))
        for one in found
    }
    assert times == {
        "shop": (20, 50),  # 20 of 30, until 20 of 110 are no more than a fifth
        "says": (30, 90),  # 10 of 10, until the last hour has none
    }
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert (against.new, against.gone) == ((), ())


def test_other_limits_are_told_apart_from_those_that_ran(world: World) -> None:
    other = RULES.model_copy(update={"inconsistency_limit": 0.1, "apps": {"says": AppRules(compare_answers=False)}})
    found = simulate(world, other)
    assert [(one.app, one.resolved_at) for one in found] == [("shop", world.at(80 * 60))]
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert [one.app for one in against.gone] == ["says"]


def test_looks_are_as_far_apart_as_the_jobs_and_further_where_they_would_be_too_many() -> None:
    assert instants(0, 3600, 60, 900) == range(900, 3601, 900)
    assert instants(0, 3600, 700, 900) == range(1400, 3601, 1400)
    month = instants(0, 30 * 86400, 60, 900)
    assert (len(month), month.step) == (981, 2640)  # a thousandth of it, up to a whole minute
