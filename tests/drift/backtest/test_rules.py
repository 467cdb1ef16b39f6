"""Rules tried on stored windows say what the jobs raised with the same rules, and write nothing, on the real engine."""

from collections.abc import Iterator
from typing import Any

import pytest

from ragtide.drift.backtest.rules import simulate_rules
from ragtide.drift.backtest.run import diff_with_raised
from ragtide.drift.backtest.simulate import SimulatedProblem
from ragtide.drift.rule_settings import AppRules
from ragtide.drift.settings import RuleOverride, RuleSettings, WindowSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.rows import ScoreRow
from tests.drift.backtest.contract import counts, raised_summaries, simulated_summaries
from tests.drift.test_window_metrics import RATED, rated
from tests.drift.world import CHECKED, LEAK, QUALITY, SPEED, World, score_row
from tests.infra.fresh_database import fresh_database

pytestmark = pytest.mark.clickhouse
MINUTES = 13
ALL = {one.id: one for one in (QUALITY, CHECKED, LEAK, SPEED, RATED)}
RULES = RuleSettings(
    min_sample=10, k=2, m=3, resolve_after=2, any_resolve_after_s=180, flap_s=120, update_every_s=300,
    apps={"replaced": AppRules(stale_after_s=240)},
)  # fmt: skip
SHOP = [0.9, 0.4, 0.4, 0.9, 0.9, 0.4, 0.4, 0.9, 0.9, 0.9, 0.4, 0.4, 0.3]  # the mean of each minute


def minute(world: World, number: int) -> list[ScoreRow]:
    """Trouble of every kind that rules see, each in an app of its own."""
    rows: list[ScoreRow] = []

    def add(app: str, evaluator: str, values: dict[str, list[float]], **fields: Any) -> None:
        for key, several in values.items():
            for i, value in enumerate(several):
                at = world.at(number * 60 + i / 10)
                name = f"{app}-{number}-{i}-{''.join(fields.values())}"
                rows.append(score_row(at, name, {key: value}, evaluator=evaluator, app=app, **fields))

    add("shop", "quality", {"good": [SHOP[number]] * 12})
    add("rare", "quality", {"good": [0.2] * 4})
    wrong = 6 if 3 <= number <= 5 else 0
    add("batch", "checked", {"passes": [0.0] * wrong + [1.0] * (20 - wrong)})
    add("leaky", "leak", {"passes": [0.0 if number in (2, 3) else 1.0, 1.0]})
    old = number < 4
    add("replaced", "quality", {"good": [0.4 if old else 0.9] * 10}, model="old" if old else "new")
    add("turned", "quality", {"good": [0.4] * 10}, fingerprint="f1" if number == 0 else "f2")
    for tenant, value in {"a": 0.95, "b": 0.3 if 4 <= number <= 6 else 0.9}.items():
        rows += [
            score_row(world.at(number * 60 + i), f"s-{number}-{tenant}-{i}", {"good": value}, app="tenants",
                      segments={"tenant": tenant})
            for i in range(10)
        ]  # fmt: skip
    rows += [rated(world, number * 60 + i, f"r-{number}-{i}", "yes", number not in (1, 2, 3)) for i in range(10)]
    failed: dict[str, Any] = {"status": "failed", "reason": "crashed"} if number in (6, 7) else {}
    rows += [
        score_row(world.at(number * 60 + i), f"v-{number}-{i}", {} if failed else {"seconds": 3.0},
                  evaluator="speed", app="slow", **failed)
        for i in range(12)
    ]  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def world(clickhouse_server: EmbeddedClickHouse) -> Iterator[World]:
    """What the jobs raised, window by window as they closed."""
    frames = WindowSettings(out_of_orderness_s=0, sizes_s=(60,), segments={"tenant": ("b",)})
    with fresh_database(clickhouse_server) as database:
        world = World(database, windows=frames, rules=RULES, evaluators=ALL)
        for number in range(MINUTES):
            world.store(minute(world, number))
            world.advance((number + 1) * 60)
        yield world


def simulate(world: World, rules: RuleSettings = RULES, until: int = MINUTES) -> list[SimulatedProblem]:
    metrics = metrics_by_name(ALL)
    return simulate_rules(world.database, metrics, rules, world.windows, world.at(0), world.at(until * 60))


def test_the_same_rules_would_have_raised_what_they_raised_and_nothing_is_written(world: World) -> None:
    before = counts(world.database)
    found = simulate(world)
    assert simulated_summaries(found) == raised_summaries(world.database)
    assert counts(world.database) == before
    assert before["verdicts"] > 0
    assert {one.rule for one in found} == {"mean", "share", "any", "value", "coverage"}
    assert {one.app for one in found} == {"shop", "rare", "batch", "leaky", "turned", "tenants", "slow", "replaced"}
    against = diff_with_raised(world.database, found, world.at(0), world.at(MINUTES * 60), detectors=False)
    assert (against.new, against.gone) == ((), ())
    assert set(against.same) == {one.problem_id for one in found}


@pytest.mark.parametrize("runs", [(13,), (1, 5, 6, 13)])
def test_a_backlog_raises_what_the_jobs_raised_window_by_window(
    world: World, clickhouse_server: EmbeddedClickHouse, runs: tuple[int, ...]
) -> None:
    with fresh_database(clickhouse_server) as database:
        late = World(database, windows=world.windows, rules=RULES, evaluators=ALL, start=world.start)
        done = 0
        for number in runs:
            for at in range(done, number):
                late.store(minute(late, at))
            late.advance(number * 60)
            done = number
        assert raised_events(database) == raised_events(world.database)


def test_a_backlog_of_several_roll_ups_raises_what_the_jobs_raised_window_by_window(
    world: World, clickhouse_server: EmbeddedClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragtide.drift.windows.dirty.MAX_MARKS", 50)
    with fresh_database(clickhouse_server) as database:
        late = World(database, windows=world.windows, rules=RULES, evaluators=ALL, start=world.start)
        for at in range(MINUTES):
            late.store(minute(late, at))
        late.progress(MINUTES * 60)
        windows = [late.watch(MINUTES * 60).rollup.windows for _ in range(5)]
        assert sum(count > 0 for count in windows) >= 3
        assert raised_events(database) == raised_events(world.database)


def raised_events(database: Database) -> list[tuple[Any, ...]]:
    """What opened and ended, when and since when; a series that went silent is given up a run after it opened."""
    rows = database.rows(
        "SELECT app, event_id, event, episode, at, JSONExtractString(attributes, 'since') AS since, examples "
        "FROM problem_events FINAL WHERE event NOT IN ('pending', 'withdrawn', 'updated') "
        "AND NOT (app = 'replaced' AND event = 'resolved') ORDER BY app, at, event_id"
    )
    return [tuple(row.values()) for row in rows]


def test_a_model_that_another_took_the_place_of_had_been_given_up(world: World) -> None:
    """Its last window ends with minute 4; the first one of another model that begins four minutes later ends with 9."""
    (found,) = (one for one in simulate(world) if one.app == "replaced")
    assert (found.model, found.state, found.resolved_at) == ("old", "resolved", world.at(9 * 60))
    longer = RULES.model_copy(update={"apps": {}})
    assert [one.state for one in simulate(world, longer) if one.app == "replaced"] == ["open"]


def test_a_problem_that_comes_back_is_told_with_its_times_and_its_windows(world: World) -> None:
    first, second = (one for one in simulate(world) if one.app == "shop" and one.metric == "quality.good")
    assert list(first.openings) == [world.at(180), world.at(420)]  # two of three minutes; again within 2 min
    assert first.resolved_at == world.at(540)
    assert (first.since, first.windows, first.state) == (world.at(60), 4, "resolved")
    assert list(second.openings) == [world.at(720)]
    assert (second.since, second.windows, second.state) == (world.at(600), 3, "open")


def test_only_windows_of_the_time_asked_for_are_judged(world: World) -> None:
    shop = [one for one in simulate(world, until=3) if one.app == "shop"]
    assert [(list(one.openings), one.state) for one in shop if one.metric == "quality.good"] == [
        ([world.at(180)], "open")
    ]
    assert simulate(world, until=0) == []


def test_other_rules_are_told_apart_from_what_ran(world: World) -> None:
    other = RULES.model_copy(
        update={
            "overrides": (
                RuleOverride(metric="leak.passes", enabled=False),
                RuleOverride(metric="speed.seconds", max=2.0),
            )
        }
    )
    found = simulate(world, other)
    against = diff_with_raised(world.database, found, world.at(0), world.at(MINUTES * 60), detectors=False)
    new = [one for one in found if one.problem_id in against.new]
    assert [(one.app, one.metric, one.aspect) for one in new] == [("slow", "speed.seconds", "level")]
    assert [problem.app for problem in against.gone] == ["leaky"]
    assert {one.app for one in found if one.problem_id in against.same} >= {"shop", "batch", "slow"}
    later = diff_with_raised(world.database, [], world.at(MINUTES * 60), world.at(MINUTES * 120), detectors=False)
    assert later.gone == ()
