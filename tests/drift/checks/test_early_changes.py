"""Latency of a series without a baseline against its own first windows."""

import math
import random
from typing import Any

import pytest

from ragtide.drift.checks.early_changes import EarlyChanges
from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import SPEED, World, score_row

pytestmark = pytest.mark.clickhouse
MINUTE = 60
RULES = RuleSettings(min_sample=30, k=2, m=3)


class Service:
    """Answers sixty questions a minute with log-normal latencies."""

    def __init__(self, database: Database, rules: RuleSettings = RULES, sigma: float = 0.7, seed: int = 1) -> None:
        windows = WindowSettings(base_s=MINUTE, sizes_s=(MINUTE,), out_of_orderness_s=0)
        self.world = World(database, windows=windows, rules=rules, evaluators={"speed": SPEED})
        self.sigma, self.rng, self.minute = sigma, random.Random(seed), 0

    def answers(self, minutes: int, factor: float = 1.0, **fields: Any) -> None:
        """The windows are closed on return."""
        first, self.minute = self.minute, self.minute + minutes
        seconds = range(first * MINUTE, self.minute * MINUTE)
        values = [factor * math.exp(self.rng.gauss(0.0, self.sigma)) for _ in seconds]
        self.world.store(
            [
                score_row(self.world.at(at), f"t{at}", {"seconds": value}, evaluator="speed", **fields)
                for at, value in zip(seconds, values, strict=True)
            ]
        )
        self.world.advance(self.minute * MINUTE)

    def look(self) -> list[str]:
        now = self.world.at(self.minute * MINUTE)
        return [event.event for event in self.world.check(EarlyChanges(), now).events]


def test_a_sixfold_latency_is_a_problem_after_two_windows_until_it_is_over(database: Database) -> None:
    service = Service(database)
    service.answers(30)
    assert service.look() == []
    service.answers(1, factor=6)
    assert service.look() == []
    service.answers(1, factor=6)
    assert service.look() == ["opened"]
    (problem,) = service.world.open()
    assert (problem.kinds, problem.metric, problem.severity) == (("early_change",), "speed.seconds", "critical")
    assert problem.evidence.since == service.world.at(30 * MINUTE)
    assert len(problem.examples) == 10
    assert "In the first 10 minutes of this series 5 % were above" in problem.description
    service.answers(90, factor=6)  # the hour before is as bad now
    assert service.look() == []
    service.answers(20)
    assert service.look() == ["resolved"]


def test_usual_noise_and_slow_growth_are_no_problem(database: Database) -> None:
    service = Service(database, sigma=1.0)
    for hour in range(8):
        service.answers(60, factor=1 + hour / 4)
        assert service.look() == []


def test_without_a_ratio_or_with_a_past_nothing_is_compared(database: Database) -> None:
    service = Service(database, rules=RULES.model_copy(update={"early_ratio": None}))
    service.answers(30)
    service.answers(5, factor=6)
    assert service.look() == []
    now = service.world.at(service.minute * MINUTE)
    assert [one.event for one in service.world.check(EarlyChanges(), now, RULES).events] == ["opened"]


def test_a_series_with_a_past_has_a_baseline(database: Database) -> None:
    service = Service(database)
    service.world.store([score_row(service.world.at(-3 * 86_400), "old", {"seconds": 1.0}, evaluator="speed")])
    service.world.advance(-3 * 86_400 + 3600)
    service.answers(30)
    service.answers(5, factor=6)
    assert service.look() == []
