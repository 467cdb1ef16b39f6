"""Find pairs of metrics that agree on the same traces: exact copies, and those that rank them alike."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ragtide.drift.insights.agreement import Floats, rank_correlation
from ragtide.drift.insights.data import Columns, PeriodData, sample_columns
from ragtide.drift.insights.model import AppEnvironment, Insight, insight
from ragtide.drift.stats import Interval, Share, wilson
from ragtide.drift.text import percent

MIN_TRACES = 100  # traces that have both
MAX_TRACES = 2_000  # of an application
MIN_CORRELATION = 0.95  # lower end of the interval of the rank correlation, either way
_MIN_VARYING = 30  # traces of each metric that differ from its most common value: constants agree with everything
_MAX_PAIRS = 20  # pairs of an application


class RedundantPair(NamedTuple):
    """`interval` is of the share of traces where copies differ, else of the correlation."""

    a: str
    b: str
    traces: int
    correlation: float
    copies: bool
    interval: Interval


@insight(reads=PeriodData)
def redundant_metrics(data: PeriodData) -> Iterator[Insight]:
    """Find the most similar pairs of primary metrics of each application, of different evaluators."""
    columns_by_app = sample_columns(data.database, data.primary.values(), data.period, MAX_TRACES)
    for where, columns in sorted(columns_by_app.items()):
        pairs = sorted(_redundant_pairs(columns), key=lambda one: (not one.copies, -abs(one.correlation), one.a, one.b))
        yield from (_insight(where, one) for one in pairs[:_MAX_PAIRS])


def _redundant_pairs(columns: Columns) -> Iterator[RedundantPair]:
    for one, other in combinations(sorted(columns), 2):
        if one.partition(".")[0] == other.partition(".")[0]:
            continue
        both = [trace_id for trace_id in columns[one] if trace_id in columns[other]]
        a, b = (np.array([columns[name][trace_id] for trace_id in both], np.float64) for name in (one, other))
        if len(both) < MIN_TRACES or min(_varying_count(a), _varying_count(b)) < _MIN_VARYING:
            continue
        if np.array_equal(a, b):
            yield RedundantPair(one, other, len(a), 1.0, True, wilson(Share(0, len(a))))
            continue
        rho = rank_correlation(a, b)
        low = rho.interval.low if rho.value > 0 else -rho.interval.high
        if low >= MIN_CORRELATION:
            yield RedundantPair(one, other, len(a), rho.value, False, rho.interval)


def _varying_count(values: Floats) -> int:
    """Count the values that differ from the most common one."""
    return len(values) - int(np.unique(values, return_counts=True)[1].max())


def _insight(where: AppEnvironment, one: RedundantPair) -> Insight:
    if one.copies:
        how = f"equal on all {one.traces:,} traces. At most {percent(one.interval.high)} of traces would differ"
    else:
        how = (
            f"they rank {one.traces:,} traces {'alike' if one.correlation > 0 else 'in opposite order'}. "
            f"Rank correlation: {one.correlation:.3f}, 95 % interval {one.interval.low:.3f} to {one.interval.high:.3f}"
        )
    return Insight(
        type="data",
        where=where,
        identity=("same", one.a, one.b),
        message=f"{one.a} and {one.b} are redundant: {how}",
        figures={
            "kind": "copies" if one.copies else "same",
            "metrics": [one.a, one.b],
            "traces": one.traces,
            "rank_correlation": one.correlation,
            "differing_share_interval" if one.copies else "rank_correlation_interval": one.interval,
        },
        actions=(
            "Alert on one of the two: a second alert for the same cause adds nothing.",
            "If one costs more to compute (a model or a judge), disable it for this traffic: evaluators.enabled.",
        ),
    )
