"""The benchmark's own series: each is made of its seed and number alone."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from benchmarks.drift import plans
from benchmarks.drift.backdrop import REGIMES, Backdrop, backdrop
from benchmarks.drift.changes import CHANGES, Change
from benchmarks.drift.clock import HISTORY, PER_DAY, WINDOWS
from benchmarks.drift.plans import Plan
from benchmarks.drift.series import Label, Series, sampled

SCORES: dict[str, Callable[[Backdrop, np.random.Generator], Plan]] = {
    "smooth": plans.smooth,
    "atom": plans.atom,
    "levels": plans.levels,
}
LABEL, PLAN, RECORDS = range(3)  # a stream of random numbers each


class Shapes(Protocol):
    """A population of series, of which the odd numbers change."""

    def label(self, seed: int, index: int) -> Label:
        """What a series will be, without making it."""

    def series(self, seed: int, label: Label) -> Series:
        """The series."""


class Own:
    """Equally many series of each change; one that never changes is of the kind that some change would have had."""

    def label(self, seed: int, index: int) -> Label:
        rng = np.random.default_rng([seed, index, LABEL])
        name = str(rng.choice(list(CHANGES)))
        kind = CHANGES[name].kind
        shape = str(rng.choice(list(SCORES))) if kind == "score" else kind
        regime = str(rng.choice(list(REGIMES), p=list(REGIMES.values())))
        return changing(index, CHANGES[name], name, shape, regime, rng)

    def series(self, seed: int, label: Label) -> Series:
        rng = np.random.default_rng([seed, label.index, PLAN])
        plan = _plan(label, rng)
        if label.change:
            plan = CHANGES[label.change].apply(plan, label.at, rng)
        return sampled(label, plan, np.random.default_rng([seed, label.index, RECORDS]))


class Calm(Own):
    """The same, but nothing changes: a fleet that is well."""

    def label(self, seed: int, index: int) -> Label:
        return replace(super().label(seed, index), change=None, at=WINDOWS, until=WINDOWS)


def changing(index: int, change: Change, name: str, shape: str, regime: str, rng: np.random.Generator) -> Label:
    """Odd numbers change at some time of the second to fourth watched day."""
    at = HISTORY + int(rng.integers(PER_DAY, 4 * PER_DAY)) if index % 2 else WINDOWS
    until = min(at + change.lasts, WINDOWS)
    return Label(index, change.kind, shape, regime, name if index % 2 else None, at, until)


def _plan(label: Label, rng: np.random.Generator) -> Plan:
    behind = backdrop(label.regime, rng)
    if label.kind == "score":
        return SCORES[label.shape](behind, rng)
    if label.kind == "rate":
        return plans.rate(0.01, behind)
    return plans.latency(behind, rng) if label.kind == "latency" else plans.languages(behind, rng)
