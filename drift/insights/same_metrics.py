"""Pairs of metrics that tell the same of the same traces: exact copies, and those that rank them alike. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from drift.insights.agreement import Floats, rank_correlation
from drift.insights.columns import Place, side_by_side
from drift.insights.insight import Finding
from drift.insights.shares import Interval, Share, wilson
from drift.phrases import percent, whereabouts

LEAST = 100  # traces that have both
ALIKE = 0.95  # the correlation of ranks, either way, that its interval must not go below
_OFF = 30  # traces of each metric that differ from its most common value: constants agree with everything
_MOST = 20  # pairs of an application
_ACTIONS: Sequence[str] = (
    "Raise alarms on one of the two: two alarms of one trouble tell nothing more.",
    "Where one costs more to compute, a model or a judge, switch it off for this traffic: evaluators.enabled.",
)


class Alike(NamedTuple):
    """`interval` is of the share of traces where copies differ, else of the correlation."""

    a: str
    b: str
    traces: int
    correlation: float
    copies: bool
    interval: Interval


def same_metrics(place: Place, found: Mapping[str, Mapping[str, float]]) -> list[Finding]:
    """Of the place's metrics by trace; metrics of one evaluator are made to go together and are left out."""
    pairs = sorted(_alike(found), key=lambda one: (not one.copies, -abs(one.correlation), one.a, one.b))
    return [_finding(place, one) for one in pairs[:_MOST]]


def _alike(found: Mapping[str, Mapping[str, float]]) -> Iterator[Alike]:
    for one, other in combinations(sorted(found), 2):
        if one.partition(".")[0] == other.partition(".")[0]:
            continue
        a, b = side_by_side(found[one], found[other])
        if len(a) < LEAST or min(_off(a), _off(b)) < _OFF:
            continue
        if np.array_equal(a, b):
            yield Alike(one, other, len(a), 1.0, True, wilson(Share(0, len(a))))
            continue
        rho = rank_correlation(a, b)
        low = rho.interval.low if rho.value > 0 else -rho.interval.high
        if low >= ALIKE:
            yield Alike(one, other, len(a), rho.value, False, rho.interval)


def _off(values: Floats) -> int:
    """How many are not the most common one."""
    return len(values) - int(np.unique(values, return_counts=True)[1].max())


def _finding(place: Place, one: Alike) -> Finding:
    if one.copies:
        how = f"had the same value on all of {one.traces} traces; at most {percent(one.interval.high)} would differ"
    else:
        way = "alike" if one.correlation > 0 else "the opposite way"
        how = (
            f"rank {one.traces} traces {way}: correlation of ranks {one.correlation:.3f} "
            f"({one.interval.low:.3f} to {one.interval.high:.3f})"
        )
    return Finding(
        type="data",
        app=place.app,
        environment=place.environment,
        identity=("same", one.a, one.b),
        description=f"{whereabouts(*place)}: {one.a} and {one.b} tell the same: they {how}.",
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
