"""A judge that scores the same content differently in another form is stated, with its interval, once it is certain."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.canaries import CanaryScoreRow
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.judge_forms import judge_forms
from ragtide.drift.insights.model import Insight
from ragtide.drift.settings import DriftSettings, JobSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CANARIES = 24
FORMS = ("markdown", "padded", "reordered")
Effect = Callable[[str, int], float]  # of a form and canary, in this form less without it

pytestmark = pytest.mark.clickhouse


def store(database: Database, effect: Effect, *, noise: float = 0.02, runs: int = 6, directions: bool = True) -> None:
    """Each canary as it is and in one form, in each run; every sixth canary has Markdown, and its form has none."""
    rng = random.Random(5)
    rows = []
    for run in range(runs):
        for number in range(CANARIES):
            level, form = 0.3 + 0.4 * (number % 2), FORMS[(number + run) % 3]
            direction = -1 if directions and form == "markdown" and number % 6 == 0 else 1
            values = {"": level, form: level + direction * effect(form, number)}
            rows += [
                CanaryScoreRow(
                    evaluator="quality",
                    fingerprint="f1",
                    run_at=NOW - timedelta(days=runs - run),
                    scheduled=True,
                    canaries=CANARIES,
                    canary=f"c{number}",
                    form=one,
                    content=f"{number} {one}",
                    direction=direction if one else 1,
                    endpoint="small",
                    status="scored",
                    reason="",
                    metrics={"good": value + rng.gauss(0, noise)},
                )
                for one, value in values.items()
            ]
    database.insert("canary_scores", rows)


def found(database: Database) -> list[Insight]:
    return list(judge_forms(PeriodData(database, EVALUATORS, WindowSettings(), JobSettings(), NOW, DriftSettings())))


def test_a_judge_that_likes_markdown_is_told_with_the_size_of_it(database: Database) -> None:
    store(database, lambda form, number: 0.08 if form == "markdown" else 0.0)
    [one] = found(database)
    assert one.figures["effect"] == pytest.approx(0.08, abs=0.01)
    low, high = one.figures["effect_interval"]
    assert 0.06 < low < 0.08 < high < 0.1
    assert one.figures["mean_absolute_change"] == pytest.approx(0.08, abs=0.01)
    assert one.figures["mean_absolute_change_between_runs"] == pytest.approx(0.0226, abs=0.004), "0.02 * 2 / sqrt(pi)"
    assert one.message.startswith("quality (endpoint small) scores answers with Markdown 0.0")
    assert " higher than the same answers without it: quality.good, 95 % interval 0.0" in one.message
    assert (one.type, one.where, one.label, one.examples) == ("calibration", ("", ""), "Judge", ())


def test_each_form_is_stated_alone_and_down_is_lower(database: Database) -> None:
    store(database, lambda form, number: {"padded": -0.1, "reordered": 0.2}.get(form, 0.0))
    by_form = {one.figures["form"]: one for one in found(database)}
    assert set(by_form) == {"padded", "reordered"}
    assert "lower than the same traces without it" in by_form["padded"].message
    assert "higher than in their own order" in by_form["reordered"].message


@pytest.mark.parametrize(
    ("effect", "noise", "runs"),
    [
        (lambda form, number: 0.0, 0.2, 6),
        (lambda form, number: 0.01, 0.001, 6),  # certain, and too small to matter
        (lambda form, number: 0.3 if number % 2 else -0.3, 0.02, 6),  # moves scores either way
        (lambda form, number: 0.2, 0.02, 1),  # eight canaries of each form
    ],
)
def test_noise_and_small_effects_are_not_stated(database: Database, effect: Effect, noise: float, runs: int) -> None:
    store(database, effect, noise=noise, runs=runs)
    assert found(database) == []


def test_without_canaries_nothing_is_stated(database: Database) -> None:
    assert found(database) == []
