"""How often a judge that does not change looks as if it had, and how soon one that does is found: by simulation."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ragtide.drift.array_types import Floats
from ragtide.drift.canaries import REFERENCE_RUNS, JudgeShift, judge_shift
from ragtide.drift.settings import RuleSettings

CANARIES, RUNS = 24, 365
DAYS = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number) for number in range(RUNS)]
RULES = RuleSettings()
Judge = Callable[[np.random.Generator, int], Floats]  # scores [runs, canaries]


def steady(rng: np.random.Generator, runs: int) -> Floats:
    """Temperature 0; one score in fifty is another one for once."""
    usual = rng.choice([0.0, 0.5, 1.0], CANARIES, p=[0.3, 0.1, 0.6])
    return np.where(rng.random((runs, CANARIES)) < 0.02, 1 - usual, usual)


def undecided(rng: np.random.Generator, runs: int) -> Floats:
    """Verdicts by chance, with a share of its own for each canary."""
    return (rng.random((runs, CANARIES)) < rng.beta(0.3, 0.3, CANARIES)).astype(np.float64)


def grading(rng: np.random.Generator, runs: int) -> Floats:
    """Numbers that vary by 0.15."""
    return np.clip(rng.random(CANARIES) + 0.15 * rng.normal(size=(runs, CANARIES)), 0, 1)


def moody(rng: np.random.Generator, runs: int) -> Floats:
    """All scores of a run are higher or lower together, by 0.02: no permutation within a canary knows of that."""
    own = rng.random(CANARIES) * 0.6 + 0.2 + 0.05 * rng.normal(size=(runs, CANARIES))
    return np.clip(own + 0.02 * rng.normal(size=(runs, 1)), 0, 1)


def found(scores: Floats, at: int) -> JudgeShift | None:
    """What is known after the run at that place."""
    values = {DAYS[run]: {str(n): float(v) for n, v in enumerate(scores[run])} for run in range(at + 1)}
    return judge_shift(values, DAYS[:REFERENCE_RUNS], DAYS[REFERENCE_RUNS : at + 1][-30:])


def is_bad(scores: Floats, at: int) -> bool:
    one = found(scores, at)
    return one is not None and one.is_significant(RULES.chance) and abs(one.shift) >= RULES.judge_shift


def bad_runs(judge: Judge, years: int) -> int:
    rng = np.random.default_rng(7)
    return sum(is_bad(scores, at) for scores in (judge(rng, RUNS) for _ in range(years)) for at in range(5, RUNS))


@pytest.mark.parametrize("judge", [steady, undecided, grading])
def test_a_judge_that_does_not_change_hardly_ever_raises_an_alarm(judge: Judge) -> None:
    assert bad_runs(judge, 4) <= 1


def test_a_judge_with_moods_raises_few_alarms() -> None:
    assert bad_runs(moody, 4) <= 10


@pytest.mark.parametrize(("moved", "within"), [(16, 1), (8, 2), (6, 3)])
def test_verdicts_that_turn_are_found_within_days(moved: int, within: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = steady(rng, 20)
        turned = rng.choice(CANARIES, moved, replace=False)
        scores[:12, turned], scores[12:, turned] = 1.0, 0.0
        assert any(is_bad(scores, at) for at in range(12, 12 + within)), (seed, moved)


@pytest.mark.parametrize(("drop", "within"), [(0.2, 2), (0.15, 3)])
def test_grades_that_fall_are_found_within_days_and_their_size_is_told(drop: float, within: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.random(CANARIES) * 0.5 + 0.4 + 0.1 * rng.normal(size=(30, CANARIES))
        scores[12:] -= drop
        assert any(is_bad(scores, at) for at in range(12, 12 + within)), seed
        last = found(scores, 29)
        assert last is not None
        assert last.shift == pytest.approx(-drop, abs=0.05)
        assert abs((last.since - DAYS[12]).days) <= 1


def test_too_few_runs_or_canaries_tell_nothing() -> None:
    scores = steady(np.random.default_rng(1), 20)
    assert found(scores, 4) is None
    few = {DAYS[run]: {str(n): float(scores[run, n]) for n in range(7)} for run in range(20)}
    assert judge_shift(few, DAYS[:5], DAYS[5:20]) is None
    newest_failed = {DAYS[run]: {str(n): float(scores[run, n]) for n in range(24)} for run in range(19)}
    assert judge_shift({**newest_failed, DAYS[19]: {"1": 0.0}}, DAYS[:5], DAYS[5:20]) is None
