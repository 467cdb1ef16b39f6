"""What is decomposed of a metric: a number of each record whose mean moved, read alike from windows and from rows.

Means of bounded scores as they are. Of a metric without bounds (latency, cost) the share of records beyond a line: its
mean is made by a few. Of coverage the share of the records to be scored that were not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragtide.drift.windows.histogram import LOG_ORIGIN, LOG_STEP, bin_bounds, count_out_of_bounds, is_out_of_bounds
from ragtide.drift.windows.metrics import MetricRef

_TAIL = 0.1  # share of the records before the onset beyond a line of our own choosing
_MAX_EXPONENT = 709.7  # exp of more is no double


@dataclass(frozen=True, slots=True)
class MeasuredQuantity:
    """`least` and `greatest` part good from bad records, where that is known; of a share, those beyond count 1."""

    kind: Literal["mean", "share", "coverage"]
    metric_ref: MetricRef
    min: float | None = None
    max: float | None = None

    @property
    def windows(self) -> tuple[str, str, str]:
        """Expressions on rows of `windows`: how many records, what they add up to, and what their squares do."""
        if self.kind == "mean":
            return "scored", "windows.sum", "sum_squares"
        if self.kind == "coverage":
            return "applicable", "failed", "failed"
        beyond = count_out_of_bounds(*bin_bounds(self.metric_ref.scale, self.min, self.max))
        return "scored", beyond, beyond

    @property
    def rows(self) -> tuple[str, str]:
        """Expressions on rows of `scores`, bound by `parameters`: whether it is one of the records, and its number."""
        if self.kind == "coverage":
            return "status IN ('scored', 'failed')", "toFloat64(status = 'failed')"
        value = "metrics[{key:String}]"
        number = value if self.kind == "mean" else f"toFloat64({self.is_bad(value)})"
        return "status = 'scored' AND mapContains(metrics, {key:String})", number

    @property
    def parameters(self) -> Mapping[str, str]:
        """Of the expressions on `scores`."""
        return {"evaluator": self.metric_ref.evaluator.id, "key": self.metric_ref.metric.key}

    def is_bad(self, value: str) -> str:
        """Expression: that value is on the wrong side."""
        return is_out_of_bounds(value, self.metric_ref.scale, self.min, self.max)


def share_out_of_bounds(metric_ref: MetricRef, min_value: float | None, max_value: float | None) -> MeasuredQuantity:
    """The share of records beyond lines, at least one."""
    lines = [None if line is None else metric_ref.scale.snap(line) for line in (min_value, max_value)]
    return MeasuredQuantity("share", metric_ref, *lines)


def bad_share(quantity: MeasuredQuantity) -> MeasuredQuantity | None:
    """The share of records on the wrong side of its lines; None where it has none."""
    if quantity.min is None and quantity.max is None:
        return None
    return share_out_of_bounds(quantity.metric_ref, quantity.min, quantity.max)


def tail_share(metric_ref: MetricRef, bins: Mapping[int, int]) -> MeasuredQuantity | None:
    """The share beyond a line that about a tenth of the records in logarithmic bins is beyond; None for no records."""
    lower, enough, beyond = metric_ref.metric.better == "lower", _TAIL * sum(bins.values()), 0
    for index in sorted(bins, reverse=lower):
        beyond += bins[index]
        if beyond >= enough:
            line = _bin_middle(index)
            return share_out_of_bounds(metric_ref, None if lower else line, line if lower else None)
    return None


def _bin_middle(index: int) -> float:
    """A value inside a logarithmic bin, off its edges, so that no rounding moves it to the next one."""
    if index == 0:
        return 0.0
    return math.copysign(math.exp(min((abs(index) - LOG_ORIGIN + 0.5) * LOG_STEP, _MAX_EXPONENT)), index)
