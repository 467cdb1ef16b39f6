"""What a query must know of the chosen metric: its scale, its good side and its words, from the specs."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ragtide.dashboards.sql import LOG_MIDDLE
from ragtide.dashboards.variable_sql import literal, value
from ragtide.drift.sql import array, text
from ragtide.drift.windows import HISTOGRAM_BINS, LOG_ORIGIN, LOG_STEP, MetricRef

CHOSEN = value("metric")  # evaluator.metric
EVALUATOR = f"substring({CHOSEN}, 1, position({CHOSEN}, '.') - 1)"
KEY = f"substring({CHOSEN}, position({CHOSEN}, '.') + 1)"
_BUCKETS = 20  # of a bounded metric on heat maps
_LOG_BUCKET = 25  # bins of 1 % in a bucket of an unbounded metric: its ends differ by a factor of 1.28
_WIDTH = 9  # of a number as text: text of this width sorts as the numbers do


@dataclass(frozen=True, slots=True)
class MetricScale:
    """Expressions over the variable `metric`; a metric that is not installed counts as unbounded."""

    metrics: Mapping[str, MetricRef]

    @property
    def bounded(self) -> str:
        """Condition: the metric has a lowest and a highest value."""
        return f"has({array(map(text, self._bounded), 'String')}, {CHOSEN})"

    @property
    def higher(self) -> str:
        """Condition: higher values are better."""
        names = (name for name, one in self.metrics.items() if one.metric.better == "higher")
        return f"has({array(map(text, names), 'String')}, {CHOSEN})"

    def value_of_bin(self) -> str:
        """The middle of a column `bin`, in the unit of the metric."""
        shift = f"if({self.higher}, 0.5, -0.5)"  # edges lie on the good side
        place = f"least(greatest(bin + {shift}, 0), {HISTOGRAM_BINS}) / {HISTOGRAM_BINS}"
        return f"if({self.bounded}, {self._low} + {self._span} * {place}, {LOG_MIDDLE})"

    def bucket(self) -> str:
        """The number of the bucket of a column `bin`; buckets are ordered as values are."""
        per_bucket = HISTOGRAM_BINS // _BUCKETS
        first = (
            f"toInt32(floor(least(greatest(bin - if({self.higher}, 0, 1), 0), {HISTOGRAM_BINS - 1}) / {per_bucket}))"
        )
        log = f"toInt32(sign(bin) * (1 + intDiv(abs(bin), {_LOG_BUCKET})))"
        return f"if({self.bounded}, {first}, {log})"

    def first_bins(self) -> str:
        """A bin of each bucket of a bounded metric, so that charts show empty ones too; no others."""
        bins = array((str(number * HISTOGRAM_BINS // _BUCKETS + 1) for number in range(_BUCKETS)), "Int32")
        return f"if({self.bounded}, {bins}, {array((), 'Int32')})"

    def within_range(self, low: str, high: str) -> tuple[str, str]:
        """Keep both ends of an interval within the range of a bounded metric; NULL stays NULL."""
        least, greatest = self._low, f"{self._low} + {self._span}"
        return (
            f"if({self.bounded} AND {low} < {least}, {least}, {low})",
            f"if({self.bounded} AND {high} > {greatest}, {greatest}, {high})",
        )

    def bucket_label(self) -> str:
        """The end nearest to zero of a column `bucket`, as text that sorts as the number does (if not negative)."""
        low = f"{self._low} + {self._span} * bucket / {_BUCKETS}"
        log = (
            f"if(bucket = 0, 0, sign(bucket) * exp(((abs(bucket) - 1) * {_LOG_BUCKET} - {LOG_ORIGIN}) * {LOG_STEP!r}))"
        )
        number = f"if({self.bounded}, {low}, {log})"
        return f"leftPad(printf(if(abs({number}) < 1000, '%.3f', '%.0f'), {number}), {_WIDTH}, ' ')"

    def described(self) -> str:
        """Columns: what the metric measures, its unit, its range and its good side."""
        meaning = self._word(lambda one: one.metric.description or one.evaluator.description)
        unit = self._word(lambda one: one.metric.unit or "")
        reach = self._word(lambda one: f"{one.metric.low:g} to {one.metric.high:g}")
        better = self._word(lambda one: f"{one.metric.better} is better")
        return f"{meaning} AS measures, {unit} AS unit, {reach} AS `range`, {better} AS `good side`"

    @property
    def _bounded(self) -> list[str]:
        return [name for name, one in self.metrics.items() if one.metric.bounded]

    @property
    def _low(self) -> str:
        return self._number(lambda one: one.metric.low)

    @property
    def _span(self) -> str:
        return self._number(lambda one: one.metric.high - one.metric.low)

    def _number(self, of: Callable[[MetricRef], float]) -> str:
        """A number of bounded metrics; most of them have the first one's."""
        found = {name: float(number) for name in self._bounded if math.isfinite(number := of(self.metrics[name]))}
        usual = next(iter(found.values()), 0.0)
        others = {name: number for name, number in found.items() if number != usual}
        return self._chosen(others, map(repr, others.values()), repr(usual)) if others else repr(usual)

    def _word(self, of: Callable[[MetricRef], str]) -> str:
        found = {name: of(one) for name, one in self.metrics.items()}
        return self._chosen(found, map(literal, found.values()), "''")

    @staticmethod
    def _chosen(names: Iterable[str], values: Iterable[str], otherwise: str) -> str:
        found = list(names)
        if not found:
            return otherwise
        return f"transform({CHOSEN}, [{', '.join(map(text, found))}], [{', '.join(values)}], {otherwise})"
