"""What jobs look for by the settings of rules, tried on stored windows, is what they raised, on the real engine."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

import pytest

from ragtide.drift.backtest.run import NOT_COVERED, backtest, diff_with_raised, not_covered
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.checks.error_budget import ErrorBudgets
from ragtide.drift.checks.evaluator_errors import EvaluatorErrors
from ragtide.drift.checks.failure_rates import FailureRates
from ragtide.drift.checks.missing_data import MissingData
from ragtide.drift.settings import JobSettings, Objective, RuleSettings, WindowSettings
from ragtide.drift.windows.histogram import Scale
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.settings.environment import leaves
from ragtide.stream.settings.loader import Settings
from tests.drift.world import CHECKED, QUALITY, SPEED, World
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
ALL = {one.id: one for one in (QUALITY, CHECKED, SPEED)}
METRICS = metrics_by_name(ALL)
IN_TIME = Objective(name="in-time", metric="speed.seconds", max=5.0, target=0.9, period_days=3)
RULES = RuleSettings(
    min_sample=10, k=1, m=1, resolve_after=2, flap_s=120, update_every_s=0, error_limit=0.3, failure_limit=0.35,
    coverage_limit=0.9, missing_after_s=120, objectives=(IN_TIME,), chance=1,
)  # fmt: skip
LOOKS = (4, 5, 6, 7, 8, 10, 11)  # minutes: before something happens, and then
OVER = 12
JOBS = JobSettings()
Values = list[float | None]  # None: the evaluator failed


class WindowRow(NamedTuple):
    """A row of `windows`; other columns have their defaults."""

    run_id: str
    size_s: int
    app: str
    environment: str
    evaluator: str
    metric: str
    start: datetime
    model: str
    seen: int
    applicable: int
    scored: int
    failed: int
    failures: Mapping[str, int]
    sum: float
    bins: Mapping[int, int]
    version: int


def window(world: World, number: int, app: str, metric: str, values: Values) -> WindowRow:
    scored = [value for value in values if value is not None]
    bins: dict[int, int] = {}
    for value in scored:
        index = Scale.of(METRICS[metric].metric).bin(value)
        bins[index] = bins.get(index, 0) + 1
    failed = len(values) - len(scored)
    return WindowRow(
        *("live", 60, app, "prod", metric.partition(".")[0], metric, world.at(60 * number), "m1"),
        *(len(values), len(values), len(scored), failed, {"crashed": failed}, sum(scored), bins, number + 1),
    )


def minute(world: World, number: int) -> list[WindowRow]:
    """Trouble of each kind, in an app of its own; the mean and the coverage look well."""
    bad, good = number in (4, 5, 10), 1.0
    unlike: Values = [*([0.5] * 5 if bad else []), *[good] * 12]
    slow: Values = [9.0] * 12 if number == 4 else [good] * (120 if number >= 7 else 12)
    broken: Values = [*[None] * 6, *[good] * 6] if number in (4, 5) else [good] * 12
    rows = [
        window(world, number, "unlike", "quality.good", unlike[:12]),
        window(world, number, "broken", "checked.passes", broken),
        window(world, number, "slow", "speed.seconds", slow),
    ]
    return rows if 3 <= number < 7 else [*rows, window(world, number, "silent", "quality.good", [good] * 3)]


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """What the jobs raised."""
    frames, missing, done = WindowSettings(out_of_orderness_s=0, sizes_s=(3600,)), MissingData(), 0
    with fresh_database(clickhouse_server) as database:
        world = World(database, windows=frames, rules=RULES, evaluators=ALL)
        for number in (*LOOKS, OVER):
            database.insert("windows", [row for at in range(done, number) for row in minute(world, at)])
            done = number
            database.insert("watermarks", [WatermarkRow("fast", "rag.traces", world.at(number * 60))])
            for check in (FailureRates(), EvaluatorErrors(), ErrorBudgets(), missing):
                world.check(check, world.at(number * 60))
        yield world


def simulate(world: World, rules: RuleSettings = RULES) -> list[SimulatedProblem]:
    return backtest(world.database, ALL, rules, world.windows, JOBS, world.at(0), world.at(OVER * 60))


def test_the_same_settings_would_have_raised_what_jobs_raised(world: World) -> None:
    found = simulate(world)
    assert {one.rule for one in found} == {"slo_burn", "failure_rate", "evaluator_error", "missing_data"}
    raised = {(one.app, one.episode): one for one in world.problems()}
    assert {(one.app, one.episode) for one in found} == raised.keys()
    for one in found:
        ran = raised[one.app, one.episode]
        assert (one.problem_id, one.state, one.severity) == (ran.problem_id, ran.state, ran.severity)
        assert one.description == ran.description
        assert (one.resolved_at, list(one.openings)) == (ran.resolved_at, [ran.opened_at])
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert (against.new, against.gone) == ((), ())


def test_each_opens_and_ends_at_the_moment_at_which_the_job_would_see_it(world: World) -> None:
    times = {
        (one.app, one.episode): tuple(
            at and (at - world.start).total_seconds() / 60 for at in (*one.openings, one.resolved_at)
        )
        for one in simulate(world)
    }
    assert times == {
        ("unlike", 1): (5, 8),  # 5 of 12 fail, until two windows are good
        ("unlike", 2): (11, None),
        ("broken", 1): (5, 8),
        ("slow", 1): (5, 8),  # 12 of 60 at a budget of a tenth, until less than three quarters of that are bad
        ("silent", 1): (5, 8),  # two minutes after the last window with traffic, until the next one ended
    }


def test_other_settings_are_told_apart_from_those_that_ran(world: World) -> None:
    lax = IN_TIME.model_copy(update={"max": 10.0})
    strict = IN_TIME.model_copy(update={"name": "sooner", "max": 0.5})
    other = RULES.model_copy(
        update={"objectives": (lax, strict), "failure_limit": 0.5, "error_limit": 0.6, "missing_after_s": None}
    )
    found = simulate(world, other)
    assert {(one.app, one.segment_value, one.rule) for one in found} == {("slow", "sooner", "slo_burn")}
    against = diff_with_raised(world.database, found, world.at(0), world.at(OVER * 60), detectors=False)
    assert len(against.new) == 1
    assert {one.app for one in against.gone} == {"unlike", "broken", "slow", "silent"}


def test_what_is_not_tried_is_named_as_the_settings_name_it_and_only_where_they_do() -> None:
    known = {".".join(path[:length]) for path, _ in leaves(Settings) for length in (1, len(path) - 1, len(path))}
    assert {name for names in NOT_COVERED for name in names} <= known
    assert list(not_covered({"evaluators.encoder.model", "evaluators.enabled"})) == ["evaluators.encoder.model"]
    assert list(not_covered({"rules.disk_limit", "rules.k"})) == ["rules.disk_limit"]
    assert not_covered({"rules.k"}) == {}
