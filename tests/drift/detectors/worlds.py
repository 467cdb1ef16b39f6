"""Small seeded series of every kind, and how to fit and run their detector."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragtide.drift.array_types import Integers
from ragtide.drift.detectors import categories, proportions, scores
from ragtide.drift.detectors.arrays import Categories, HeavyTailed, Rates, RunResult, Scores
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import State

DAY = 288  # windows of five minutes
MONDAY = 1_767_571_200  # 2026-01-05


@dataclass(frozen=True)
class Kind:
    """`made(windows, series, seed, changed_at)`; what changes, changes for all series."""

    made: Callable[..., Any]
    fit: Callable[..., Baseline]
    run: Callable[[Baseline, State, Any], RunResult]


def starts(windows: int) -> Integers:
    return MONDAY + 300 * np.arange(windows)


def daily(windows: int) -> Any:
    return np.sin(2 * np.pi * np.arange(windows) / DAY)


def scored(windows: int, series: int, seed: int, changed_at: int | None = None, fall: float = 0.1) -> Scores:
    """Means of normal records about 0.7, a daily season of 0.05, deviation 0.15; the mean falls by `fall`."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60, (series, windows))
    level = 0.7 + 0.05 * daily(windows)
    if changed_at is not None:
        level[changed_at:] -= fall
    mean = rng.normal(level, 0.15 / np.sqrt(n))
    scatter = 0.15**2 * rng.chisquare(n - 1)
    return Scores(starts(windows), n, n * mean, scatter + n * mean**2)


def rated(windows: int, series: int, seed: int, changed_at: int | None = None) -> Rates:
    """A share of 2 % that becomes 6 %."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60, (series, windows))
    share = 0.02 * (1 + 0.3 * daily(windows))
    if changed_at is not None:
        share[changed_at:] *= 3
    return Rates(starts(windows), n, rng.binomial(n, share))


def timed(windows: int, series: int, seed: int, changed_at: int | None = None) -> HeavyTailed:
    """Half and a twentieth above the levels, which become 70 % and 15 %."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60, (series, windows))
    changed = np.arange(windows) >= (windows if changed_at is None else changed_at)
    median = rng.binomial(n, np.where(changed, 0.7, 0.5))
    tail = rng.binomial(median, np.where(changed, 0.15 / 0.7, 0.1))
    return HeavyTailed(starts(windows), n, np.stack([median, tail], axis=2))


def mixed(windows: int, series: int, seed: int, changed_at: int | None = None) -> Categories:
    """Four labels, one of which nearly nobody has; a fifth of all goes from the first to the last but one."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60, (series, windows))
    before, after = [0.6, 0.3, 0.0995, 0.0005], [0.4, 0.3, 0.2995, 0.0005]
    changed = np.arange(windows) >= (windows if changed_at is None else changed_at)
    return Categories(starts(windows), rng.multinomial(n, np.where(changed[:, None], after, before)))


KINDS = {
    "scores": Kind(scored, scores.fit, scores.run),
    "rates": Kind(rated, proportions.fit_rates, proportions.run_rates),
    "positives": Kind(timed, proportions.fit_heavy_tailed, proportions.run_heavy_tailed),
    "categories": Kind(mixed, categories.fit, categories.run),
}
