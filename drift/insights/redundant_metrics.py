"""Pairs of metrics that tell the same of the same traces: exact copies, and those that rank them alike. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ragtide.drift.insights.agreement import Floats, rank_correlation
from ragtide.drift.insights.data import AppEnvironment, align
from ragtide.drift.insights.model import Insight
from ragtide.drift.stats.proportions import Interval, Share, wilson
from ragtide.drift.text import percent, scope_label

MIN_TRACES = 100  # traces that have both
MIN_CORRELATION = 0.95  # the correlation of ranks, either way, that its interval must not go below
_MIN_VARYING = 30  # traces of each metric that differ from its most common value: constants agree with everything
_MAX_PAIRS = 20  # pairs of an application
_ACTIONS: Sequence[str] = (
    "Raise alarms on one of the two: two alarms of one trouble tell nothing more.",
    "Where one costs more to compute, a model or a judge, switch it off for this traffic: evaluators.enabled.",
)


class RedundantPair(NamedTuple):
    """`interval` is of the share of traces where copies differ, else of the correlation."""

    a: str
    b: str
    traces: int
    correlation: float
    copies: bool
    interval: Interval


def redundant_metrics(app_environment: AppEnvironment, found: Mapping[str, Mapping[str, float]]) -> list[Insight]:
    """Of the place's metrics by trace; metrics of one evaluator are made to go together and are left out."""
    pairs = sorted(_redundant_pairs(found), key=lambda one: (not one.copies, -abs(one.correlation), one.a, one.b))
    return [_insight(app_environment, one) for one in pairs[:_MAX_PAIRS]]


def _redundant_pairs(found: Mapping[str, Mapping[str, float]]) -> Iterator[RedundantPair]:
    for one, other in combinations(sorted(found), 2):
        if one.partition(".")[0] == other.partition(".")[0]:
            continue
        a, b = align(found[one], found[other])
        if len(a) < MIN_TRACES or min(_varying_count(a), _varying_count(b)) < _MIN_VARYING:
            continue
        if np.array_equal(a, b):
            yield RedundantPair(one, other, len(a), 1.0, True, wilson(Share(0, len(a))))
            continue
        rho = rank_correlation(a, b)
        low = rho.interval.low if rho.value > 0 else -rho.interval.high
        if low >= MIN_CORRELATION:
            yield RedundantPair(one, other, len(a), rho.value, False, rho.interval)


def _varying_count(values: Floats) -> int:
    """How many are not the most common one."""
    return len(values) - int(np.unique(values, return_counts=True)[1].max())


def _insight(app_environment: AppEnvironment, one: RedundantPair) -> Insight:
    if one.copies:
        how = f"had the same value on all of {one.traces} traces; at most {percent(one.interval.high)} would differ"
    else:
        way = "alike" if one.correlation > 0 else "the opposite way"
        how = (
            f"rank {one.traces} traces {way}: correlation of ranks {one.correlation:.3f} "
            f"({one.interval.low:.3f} to {one.interval.high:.3f})"
        )
    return Insight(
        type="data",
        app=app_environment.app,
        environment=app_environment.environment,
        identity=("same", one.a, one.b),
        description=f"{scope_label(*app_environment)}: {one.a} and {one.b} tell the same: they {how}.",
        attributes={
            "kind": "copies" if one.copies else "same",
            "metrics": [one.a, one.b],
            "traces": one.traces,
            "rank_correlation": one.correlation,
            "differing_share_interval" if one.copies else "rank_correlation_interval": list(one.interval),
        },
        examples=(),
        actions=_ACTIONS,
    )
