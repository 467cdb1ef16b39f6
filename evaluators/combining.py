"""Computes the metrics of a window from summed parts, for jobs, rules and checks."""

import logging
import math
from collections.abc import Mapping

from ragtide.evaluators.parts import Combined
from ragtide.evaluators.spec import Evaluator, Metric

_log = logging.getLogger(__name__)


def combine_parts(evaluator: Evaluator, parts: Mapping[str, float]) -> Combined:
    """Combine the sums. Empty without a `combine`, and with a warning if it breaks the contract."""
    if evaluator.combine is None or not parts:
        return Combined()
    try:
        combined = evaluator.combine(parts)
        fault = combined_fault(evaluator, combined)
    except Exception as error:  # noqa: BLE001  # code of others: one evaluator must not stop the jobs
        fault = type(error).__name__
    if fault is None:
        return combined
    _log.warning("evaluator %s gives no window metrics of %d parts: %s", evaluator.id, len(parts), fault)
    return Combined()


def combined_fault(evaluator: Evaluator, combined: object) -> str | None:
    """Return the fault of a `combine` result, without quoting a label, or None."""
    if not isinstance(combined, Combined):
        return f"combine gave a {type(combined).__name__}, not a Combined"
    declared = {metric.key: metric for metric in evaluator.metrics}
    for key, value in combined.metrics.items():
        if key not in declared or declared[key].per:
            return f"combine gave metric {key}, which is not declared as one without `per`"
        if not _fits(declared[key], value):
            return f"combine gave {value!r} for metric {key}"
    for key, series in combined.per.items():
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
