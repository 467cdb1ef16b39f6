"""An error budget that burns too fast is a problem, by windows and rates of the SRE workbook."""

from datetime import datetime
from typing import Any, NamedTuple

import pytest
from pydantic import ValidationError

from ragtide.drift.checks.error_budget import BudgetUse, BurnWindow, ErrorBudgets, burn_windows, fastest_burn
from ragtide.drift.rules.resolve import check_settings
from ragtide.drift.settings import JobSettings, Objective, RuleSettings, WindowSettings
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, World

HOUR, DAY = 3600, 86400
OBJECTIVE = Objective(name="good-answers", metric="quality.good", target=0.99, period_days=30)
BURN_WINDOWS = burn_windows(30 * DAY, WindowSettings())
RULES = RuleSettings(min_sample=30, update_every_s=0, objectives=(OBJECTIVE,))


class WindowRow(NamedTuple):
    run_id: str
    size_s: int
    app: str
    environment: str
    evaluator: str
    metric: str
    start: datetime
    model: str
    scored: int
    bins: dict[int, int]
    version: int


def store(world: World, second: float, size_s: int, good: int, bad: int, model: str = "m1", app: str = "shop") -> None:
    """The threshold of quality.good is 0.75: bins from 75 on are good."""
    row = WindowRow(
        *("live", size_s, app, "prod", "quality", "quality.good"),
        *(world.at(second), model, good + bad, {75: good, 74: bad}, 1),
    )
    world.database.insert("windows", [row])


def closed(world: World, second: float) -> None:
    world.database.insert("watermarks", [WatermarkRow("fast", "rag.traces", world.at(second))])


def run_check(world: World, second: float, rules: RuleSettings = RULES) -> list[str]:
    closed(world, second)
    return [event.event for event in world.check(ErrorBudgets(), world.at(second), rules).events]


def budget_use(**wrong_of_1000: int) -> dict[int, BudgetUse]:
    """Each window has a thousand records; those that are not named have none that is bad."""
    names = {"m5": 300, "m30": 1800, "h1": HOUR, "h6": 6 * HOUR, "d3": 3 * DAY}
    return {length: BudgetUse(1000, wrong_of_1000.get(name, 0)) for name, length in names.items()}


@pytest.mark.parametrize(
    ("days", "base_s", "pairs"),
    [
        (30, 60, [(3600, 300, 14.4), (21600, 1800, 6), (259200, 21600, 1)]),  # the workbook's
        (28, 60, [(3360, 300, 14.4), (20160, 1680, 6), (244800, 20160, 1)]),  # 67.2 hours are 68
        (3, 60, [(360, 60, 14.4), (2160, 180, 6), (28800, 2160, 1)]),  # half a minute is one
        (3, 300, [(600, 300, 8.64), (2400, 300, 5.4), (28800, 2400, 1)]),  # 2 % of 259,200 s over 600 s
        (365, 60, [(46800, 3660, 13.477), (262800, 25200, 6), (3153600, 262800, 1)]),
    ],
)
def test_windows_go_with_the_period(days: int, base_s: int, pairs: list[tuple[int, int, float]]) -> None:
    found = burn_windows(days * DAY, WindowSettings(base_s=base_s, sizes_s=(3600, DAY)))
    assert [pair[:2] for pair in found] == [pair[:2] for pair in pairs]
    assert [pair.rate for pair in found] == pytest.approx([rate for *_, rate in pairs], abs=0.001)


def test_a_short_period_speaks_before_its_budget_is_spent() -> None:
    """A hundredth more than allowed for a tenth of three days, and of its last part: a tenth of the budget is gone."""
    pairs = burn_windows(3 * DAY, WindowSettings())
    spent = {one: BudgetUse(1000, 0) for pair in pairs for one in pair[:2]} | {
        28800: BudgetUse(1000, 11),
        2160: BudgetUse(90, 1),
    }
    assert fastest_burn(pairs, spent, OBJECTIVE, 30) == BurnWindow(28800, 2160, 1.0, "warning")


def test_it_burns_where_a_long_window_and_its_short_one_do() -> None:
    hour, six, three = BURN_WINDOWS
    assert fastest_burn(BURN_WINDOWS, budget_use(h1=144, m5=144), OBJECTIVE, 30) is hour
    assert fastest_burn(BURN_WINDOWS, budget_use(h1=143, m5=900), OBJECTIVE, 30) is None
    assert fastest_burn(BURN_WINDOWS, budget_use(h1=900, m5=143), OBJECTIVE, 30) is None, "it has stopped"
    assert fastest_burn(BURN_WINDOWS, budget_use(h6=60, m30=61), OBJECTIVE, 30) is six
    assert fastest_burn(BURN_WINDOWS, budget_use(d3=10, h6=10), OBJECTIVE, 30) is three
    assert fastest_burn(BURN_WINDOWS, budget_use(d3=9, h6=100), OBJECTIVE, 30) is None
    assert fastest_burn(BURN_WINDOWS, budget_use(h1=144, m5=144, h6=60, m30=60), OBJECTIVE, 30) is hour
    assert fastest_burn(BURN_WINDOWS, budget_use(h1=144, m5=144), OBJECTIVE, 1001) is None, "too few records"
    few = budget_use() | {HOUR: BudgetUse(30, 4), 300: BudgetUse(5, 4)}
    assert fastest_burn(BURN_WINDOWS, few, Objective(name="a", metric="m", target=0.999), 30) is None, (
        "four records decide nothing"
    )


@pytest.mark.clickhouse
def test_a_budget_that_burns_is_a_problem_until_it_burns_slower(database: Database) -> None:
    world = World(database, rules=RULES, settings=JobSettings(checks_every_s=HOUR))  # so that no run is missed
    store(world, -2 * DAY, HOUR, 9_900, 0)
    store(world, 0, 60, 80, 10)
    store(world, 0, 60, 0, 10, model="m2")
    assert run_check(world, 60) == ["opened"], "20 of 100 in both windows: 20 times as fast"
    assert run_check(world, 60) == []
    (problem,) = world.open()
    assert (problem.model, problem.segment, problem.segment_value) == ("", "objective", "good-answers")
    assert (problem.kinds, problem.severity, problem.rule_id) == (("slo_burn",), "critical", "objective:good-answers")
    said = problem.attributes
    assert said["burn_rate"] == pytest.approx(20)
    assert said["budget_left"] == pytest.approx(0.8)  # 20 of 10,000 bad, 100 may be
    assert "burns its error budget at 20 times the allowed rate. 20 of 100 traces of" in problem.description
    assert problem.description.endswith(" 80 % of the budget is left.")
    store(world, 300, 60, 80, 12)
    assert run_check(world, 360) == ["updated"]
    (problem,) = world.open()
    assert problem.attributes["long_window_s"] == 6 * HOUR, "12 of the last five minutes' 92 are fewer than 14.4 %"
    store(world, 3000, 60, 95, 5)
    assert run_check(world, 3060) == [], "5 % of the last half hour: slower, and above three quarters of 6 %"
    assert run_check(world, 3 * HOUR) == ["resolved"]


@pytest.mark.clickhouse
def test_an_objective_that_nobody_has_any_more_has_no_problem(database: Database) -> None:
    world = World(database, rules=RULES)
    store(world, 0, 60, 50, 50)
    others = RULES.model_copy(update={"objectives": (OBJECTIVE.model_copy(update={"app": "elsewhere"}),)})
    assert run_check(world, 60, others) == []
    assert run_check(world, 60) == ["opened"]
    world.advance(65)
    assert [one.kinds for one in world.open()] == [("slo_burn",)], "rules over windows leave it alone"
    assert run_check(world, 65, RuleSettings()) == ["resolved"]


@pytest.mark.clickhouse
def test_an_apps_own_objective_goes_before_that_of_all_with_its_name(database: Database) -> None:
    world = World(database, rules=RULES)
    for app in ("shop", "docs"):
        store(world, 0, 60, 80, 20, app=app)

    def look_with(second: float, **said: Any) -> tuple[list[str], set[str]]:
        own = OBJECTIVE.model_copy(update={"app": "docs", **said})
        events = run_check(world, second, RULES.model_copy(update={"objectives": (own, OBJECTIVE)}))
        return events, {problem.app for problem in world.open()}

    assert look_with(60, target=0.7) == (["opened"], {"shop"}), "docs may have 30 of 100"
    assert look_with(61, target=0.99) == (["opened"], {"shop", "docs"})
    assert look_with(62, enabled=False) == (["resolved"], {"shop"})


def test_settings_that_cannot_hold_are_refused() -> None:
    with pytest.raises(ValidationError, match="names must differ, but for another app; twice: good-answers"):
        RuleSettings(objectives=(OBJECTIVE, OBJECTIVE))
    check_settings(RULES, EVALUATORS)
    refused: list[tuple[dict[str, Any], str]] = [
        (
            {"metric": "quality.goood"},
            r"records 'quality.goood'; did you mean 'quality.good'\? \(known: quality.good, quality.other\)",
        ),
        ({"metric": "speed.seconds"}, r"has no threshold of its own; give min or max"),
        ({"max": 1.5}, r"outside the range of quality.good, \[0.0, 1.0\]"),
        ({"min": 0.5, "max": 0.4}, "min 0.5 is above max 0.4"),
    ]
    for said, why in refused:
        with pytest.raises(ConfigError, match=why):
            check_settings(RuleSettings(objectives=(OBJECTIVE.model_copy(update=said),)), EVALUATORS)
