"""From summed parts to a window's metrics: the only way from one to the other, in jobs, rules and checks."""

import logging
import math
from collections.abc import Mapping

from ragtide.evaluators.parts import Combined
from ragtide.evaluators.spec import Evaluator, Metric

_log = logging.getLogger(__name__)


def combine_parts(evaluator: Evaluator, parts: Mapping[str, float]) -> Combined:
    """What the evaluator makes of these sums; nothing where it has no `combine` or breaks the contract, logged."""
    if evaluator.combine is None or not parts:
        return Combined()
    try:
        made = evaluator.combine(parts)
        wrong = wrong_values(evaluator, made)
    except Exception as error:  # noqa: BLE001  # code of others: one evaluator must not stop the jobs
        wrong = type(error).__name__
    if wrong is None:
        return made
    _log.warning("evaluator %s gives no window metrics of %d parts: %s", evaluator.id, len(parts), wrong)
    return Combined()


def wrong_values(evaluator: Evaluator, made: object) -> str | None:
    """What is wrong with the result of a `combine`, without quoting a label; None if nothing is."""
    if not isinstance(made, Combined):
        return f"combine gave a {type(made).__name__}, not a Combined"
    declared = {metric.key: metric for metric in evaluator.metrics}
    for key, value in made.metrics.items():
        if key not in declared or declared[key].per:
            return f"combine gave metric {key}, which is not declared as one without `per`"
        if not _fits(declared[key], value):
            return f"combine gave {value!r} for metric {key}"
    for key, series in made.per.items():
        if key not in declared or not declared[key].per:
            return f"combine gave metric {key}, which is not declared as one with `per`"
        for labels, found in series.items():
            if len(labels) != len(declared[key].per) or not all(isinstance(label, str) for label in labels):
                return f"combine gave metric {key} labels that are not those of its `per`"
            if not _fits(declared[key], found.value) or found.records < 0:
                return f"combine gave {found.value!r} on {found.records!r} records for metric {key}"
    return None


def _fits(metric: Metric, value: float) -> bool:
    return math.isfinite(value) and metric.low <= value <= metric.high
