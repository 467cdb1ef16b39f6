"""Checks of method `window`: the metrics of a window must follow from its summed parts."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from ragtide.evaluators.combining import combined_fault
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.parts import Combined
from ragtide.evaluators.spec import Evaluator

_TOLERANCE = 1e-9


def window_faults(evaluator: Evaluator, scored: Sequence[Scored]) -> list[str]:
    """List how `combine` breaks the contract of `ragtide.evaluators.parts` on these outcomes."""
    if evaluator.combine is None or not scored:
        return []
    faults = [
        f"its parts have the key {key!r}, which JSON does not give back"
        for key in sorted({key for one in scored for key in one.parts})
        if json.loads(json.dumps(key)) != key
    ]
    if evaluator.combine({}) != Combined():
        faults.append("combine makes metrics of no parts at all")
    whole = evaluator.combine(_sum(one.parts for one in scored))
    fault = combined_fault(evaluator, whole)
    if fault is not None:
        return [*faults, fault]
    middle = len(scored) // 2
    halves = [_sum(one.parts for one in half) for half in (scored[middle:], scored[:middle])]
    backwards = dict(reversed(_sum(halves).items()))
    if not _same(evaluator.combine(backwards), whole):
        faults.append("combine gives something else where the same records are summed in another order")
    for one in scored:
        faults += _record_faults(evaluator, one)
    return faults


def _sum(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in parts:
        for key, count in one.items():
            total[key] = total.get(key, 0.0) + count
    return total


def _same(one: Combined, other: Combined) -> bool:
    """Compare with a tolerance: sums inside `combine` depend on the order of parts in their last digits."""
    a, b = _flat(one), _flat(other)
    return a.keys() == b.keys() and all(math.isclose(a[key], b[key], abs_tol=_TOLERANCE) for key in a)


def _flat(combined: Combined) -> dict[tuple[str, ...], float]:
    flat: dict[tuple[str, ...], float] = {(key,): value for key, value in combined.metrics.items()}
    for key, series in combined.per.items():
        flat |= {(key, *labels): found.value for labels, found in series.items()}
    return flat


def _record_faults(evaluator: Evaluator, one: Scored) -> list[str]:
    """Check that a record's metrics are those that `combine` makes of it alone."""
    assert evaluator.combine is not None
    combined = evaluator.combine(one.parts).metrics
    faults = [
        f"a record has {metric.key}, but combine makes nothing of it alone, or the other way round"
        for metric in evaluator.metrics
        if (metric.primary or metric.key in one.metrics) and (metric.key in combined) != (metric.key in one.metrics)
    ]
    faults += [
        f"a record's {key} is {value!r}, but combine makes {combined[key]!r} of it alone"
        for key, value in one.metrics.items()
        if key in combined and not math.isclose(value, combined[key], abs_tol=_TOLERANCE)
    ]
    return faults
