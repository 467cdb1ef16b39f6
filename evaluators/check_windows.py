"""What `check_evaluator` asks of an evaluator of method `window`: that its metrics follow from sums of parts alone."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence

from ragtide.evaluators.combining import wrong_values
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.parts import Combined
from ragtide.evaluators.spec import Evaluator

_TOLERANCE = 1e-9


def window_faults(evaluator: Evaluator, scored: Sequence[Scored]) -> list[str]:
    """How `combine` breaks the contract of `ragtide.evaluators.parts` on these outcomes; empty if it does not."""
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
    wrong = wrong_values(evaluator, whole)
    if wrong is not None:
        return [*faults, wrong]
    middle = len(scored) // 2
    halves = [_sum(one.parts for one in half) for half in (scored[middle:], scored[:middle])]
    backwards = dict(reversed(_sum(halves).items()))
    if not _same(evaluator.combine(backwards), whole):
        faults.append("combine gives something else where the same records are summed in another order")
    for one in scored:
        faults += _alone(evaluator, one)
    return faults


def _sum(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for one in parts:
        for key, count in one.items():
            total[key] = total.get(key, 0.0) + count
    return total


def _same(one: Combined, other: Combined) -> bool:
    """Numbers that `combine` adds up itself differ in their last digits with the order of the parts."""
    a, b = _flat(one), _flat(other)
    return a.keys() == b.keys() and all(math.isclose(a[key], b[key], abs_tol=_TOLERANCE) for key in a)


def _flat(made: Combined) -> dict[tuple[str, ...], float]:
    flat: dict[tuple[str, ...], float] = {(key,): value for key, value in made.metrics.items()}
    for key, series in made.per.items():
        flat |= {(key, *labels): found.value for labels, found in series.items()}
    return flat


def _alone(evaluator: Evaluator, one: Scored) -> list[str]:
    """A record's own metrics are what `combine` makes of it alone."""
    assert evaluator.combine is not None
    made = evaluator.combine(one.parts).metrics
    faults = [
        f"a record has {metric.key}, but combine makes nothing of it alone, or the other way round"
        for metric in evaluator.metrics
        if (metric.primary or metric.key in one.metrics) and (metric.key in made) != (metric.key in one.metrics)
    ]
    faults += [
        f"a record's {key} is {value!r}, but combine makes {made[key]!r} of it alone"
        for key, value in one.metrics.items()
        if key in made and not math.isclose(value, made[key], abs_tol=_TOLERANCE)
    ]
    return faults
