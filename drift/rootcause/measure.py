"""Choose what is attributed: a number of each record whose mean shifted, read alike from windows and from rows.

Of a bounded score it is the score; of a metric without bounds (latency, cost) whether it is out of bounds, since a few
records make its mean; of coverage whether a record that should have been scored was not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragtide.drift.windows import LOG_ORIGIN, LOG_STEP, MetricRef, bin_bounds, count_out_of_bounds, is_out_of_bounds

_TAIL = 0.1  # share of the records before the onset beyond a bound of our own choosing
_MAX_EXPONENT = 709.7  # exp of more is no double


@dataclass(frozen=True, slots=True)
class MeasuredQuantity:
    """Records out of [min, max] are bad, if bounds are known; of a share they count 1."""

    kind: Literal["mean", "share", "coverage"]
    metric_ref: MetricRef
    min: float | None = None
    max: float | None = None

    @property
    def windows(self) -> tuple[str, str, str]:
        """Expressions on rows of `windows`: the number of records, their sum and the sum of their squares."""
        if self.kind == "mean":
            return "scored", "windows.sum", "sum_squares"
        if self.kind == "coverage":
            return "applicable", "failed", "failed"
        beyond = count_out_of_bounds(*bin_bounds(self.metric_ref.scale, self.min, self.max))
        return "scored", beyond, beyond

    @property
    def rows(self) -> tuple[str, str]:
        """Expressions on rows of `scores` with `parameters`: whether it is one of the records, and its number."""
        if self.kind == "coverage":
            return "status IN ('scored', 'failed')", "toFloat64(status = 'failed')"
        value = "metrics[{key:String}]"
        scored = "status = 'scored' AND mapContains(metrics, {key:String})"
        if self.kind == "mean":
            return scored, value
        return scored, f"toFloat64({is_out_of_bounds(value, self.metric_ref.scale, self.min, self.max)})"

    @property
    def parameters(self) -> Mapping[str, str]:
        """Parameters of the expressions on `scores`."""
        return {"evaluator": self.metric_ref.evaluator.id, "key": self.metric_ref.metric.key}


def share_out_of_bounds(metric_ref: MetricRef, min_value: float | None, max_value: float | None) -> MeasuredQuantity:
    """Return the share of records out of bounds, at least one of which is set."""
    bounds = [None if bound is None else metric_ref.scale.snap(bound) for bound in (min_value, max_value)]
    return MeasuredQuantity("share", metric_ref, *bounds)


def bad_share(quantity: MeasuredQuantity) -> MeasuredQuantity | None:
    """Return the share of records out of its bounds; None if it has none."""
    if quantity.min is None and quantity.max is None:
        return None
    return share_out_of_bounds(quantity.metric_ref, quantity.min, quantity.max)


def tail_share(metric_ref: MetricRef, bins: Mapping[int, int]) -> MeasuredQuantity | None:
    """Return the share beyond the bound that a tenth of the records in logarithmic bins exceed; None for no records."""
    lower, enough, beyond = metric_ref.metric.better == "lower", _TAIL * sum(bins.values()), 0
    for index in sorted(bins, reverse=lower):
        beyond += bins[index]
        if beyond >= enough:
            bound = _bin_middle(index)
            return share_out_of_bounds(metric_ref, None if lower else bound, bound if lower else None)
    return None


def _bin_middle(index: int) -> float:
    """Return a value inside a logarithmic bin, off its edges, so that no rounding moves it to the next one."""
    if index == 0:
        return 0.0
    return math.copysign(math.exp(min((abs(index) - LOG_ORIGIN + 0.5) * LOG_STEP, _MAX_EXPONENT)), index)
