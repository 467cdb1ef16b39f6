"""What is decomposed of a metric: a number of each record whose mean moved, read alike from windows and from rows.

Means of bounded scores as they are. Of a metric without bounds (latency, cost) the share of records beyond a line: its
mean is made by a few. Of coverage the share of the records to be scored that were not.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from drift.windows.beyond import edges, in_bins, is_beyond
from drift.windows.bins import LOG_ORIGIN, LOG_STEP
from drift.windows.metrics import WatchedMetric

_TAIL = 0.1  # share of the records before the onset beyond a line of our own choosing
_GREATEST = 709.7  # exp of more is no double


@dataclass(frozen=True, slots=True)
class Measure:
    """`least` and `greatest` part good from bad records, where that is known; of a share, those beyond count 1."""

    kind: Literal["mean", "share", "coverage"]
    watched: WatchedMetric
    least: float | None = None
    greatest: float | None = None

    @property
    def windows(self) -> tuple[str, str, str]:
        """Expressions on rows of `windows`: how many records, what they add up to, and what their squares do."""
        if self.kind == "mean":
            return "scored", "windows.sum", "sum_squares"
        if self.kind == "coverage":
            return "applicable", "failed", "failed"
        beyond = in_bins(*edges(self.watched.scale, self.least, self.greatest))
        return "scored", beyond, beyond

    @property
    def rows(self) -> tuple[str, str]:
        """Expressions on rows of `scores`, bound by `parameters`: whether it is one of the records, and its number."""
        if self.kind == "coverage":
            return "status IN ('scored', 'failed')", "toFloat64(status = 'failed')"
        value = "metrics[{key:String}]"
        number = value if self.kind == "mean" else f"toFloat64({self.beyond(value)})"
        return "status = 'scored' AND mapContains(metrics, {key:String})", number

    @property
    def parameters(self) -> Mapping[str, str]:
        """Of the expressions on `scores`."""
        return {"evaluator": self.watched.evaluator.id, "key": self.watched.metric.key}

    def beyond(self, value: str) -> str:
        """Expression: that value is on the wrong side."""
        return is_beyond(value, self.watched.scale, self.least, self.greatest)


def share_beyond(watched: WatchedMetric, least: float | None, greatest: float | None) -> Measure:
    """The share of records beyond lines, at least one."""
    lines = [None if line is None else watched.scale.snap(line) for line in (least, greatest)]
    return Measure("share", watched, *lines)


def records_beyond(measure: Measure) -> Measure | None:
    """The share of records on the wrong side of its lines; None where it has none."""
    if measure.least is None and measure.greatest is None:
        return None
    return share_beyond(measure.watched, measure.least, measure.greatest)


def tail_line(watched: WatchedMetric, bins: Mapping[int, int]) -> Measure | None:
    """The share beyond a line that about a tenth of the records in logarithmic bins is beyond; None for no records."""
    lower, enough, beyond = watched.metric.better == "lower", _TAIL * sum(bins.values()), 0
    for index in sorted(bins, reverse=lower):
        beyond += bins[index]
        if beyond >= enough:
            line = _middle(index)
            return share_beyond(watched, None if lower else line, line if lower else None)
    return None


def _middle(index: int) -> float:
    """A value inside a logarithmic bin, off its edges, so that no rounding moves it to the next one."""
    if index == 0:
        return 0.0
    return math.copysign(math.exp(min((abs(index) - LOG_ORIGIN + 0.5) * LOG_STEP, _GREATEST)), index)
