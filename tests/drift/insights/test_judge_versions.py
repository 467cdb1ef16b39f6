"""A new version of a judge is compared with the one before on the same canaries, once."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.canaries import CanaryScoreRow
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.judge_versions import judge_versions
from ragtide.drift.insights.model import Insight
from ragtide.drift.settings import DriftSettings, JobSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)

pytestmark = pytest.mark.clickhouse


def store(
    database: Database, fingerprint: str, first_day: int, runs: int, level: float, canaries: int = 20, seed: int = 1
) -> None:
    """Runs of a version that scores every second canary so much higher and lower."""
    rng = random.Random(seed)
    rows = [
        CanaryScoreRow(
            evaluator="quality",
            fingerprint=fingerprint,
            run_at=NOON + timedelta(days=first_day + run),
            scheduled=True,
            canaries=canaries,
            canary=f"c{canary}",
            form="",
            content="same",
            direction=1,
            endpoint="small",
            status="scored",
            reason="",
            metrics={"good": level + (0.2 if canary % 2 else -0.2) + rng.gauss(0, 0.01)},
        )
        for run in range(runs)
        for canary in range(canaries)
    ]
    database.insert("canary_scores", rows)


def found(database: Database, day: float) -> list[Insight]:
    now = NOON + timedelta(days=day, hours=1)
    return list(judge_versions(PeriodData(database, EVALUATORS, WindowSettings(), JobSettings(), now, DriftSettings())))


def test_a_stricter_version_is_stated_with_the_difference_for_a_week(database: Database) -> None:
    store(database, "f1", -9, 9, 0.6)
    assert found(database, -1) == [], "the first version has none before it"
    store(database, "f2", 0, 8, 0.5)
    [one] = found(database, 0)
    began = "the new version of quality since 2026-11-21 12:00 UTC scores the same traces 0.103 lower than the version "
    assert one.message.startswith(f"{began}before (0.603 → 0.5; 95 % interval of the difference -0.10")
    assert one.message.endswith(" on 20 canaries)")
    assert one.figures["difference"] == pytest.approx(-0.1, abs=0.01)
    assert (one.label, one.where, one.at) == ("Judge", ("", ""), NOON)
    assert len(found(database, 6)) == 1
    assert found(database, 8) == []


def test_a_version_that_scores_alike_can_be_compared(database: Database) -> None:
    store(database, "f1", -5, 5, 0.6)
    store(database, "f2", 0, 3, 0.6, seed=2)
    [one] = found(database, 2)
    assert "scores the same traces about as the version before (0.598 → 0.596; 95 % " in one.message


def test_too_few_canaries_that_both_scored_tell_nothing(database: Database) -> None:
    store(database, "f1", -5, 5, 0.6, canaries=7)
    store(database, "f2", 0, 3, 0.5)
    assert found(database, 2) == []
