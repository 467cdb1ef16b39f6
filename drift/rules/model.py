"""Series, windows, rules, kinds of rules, and verdicts."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple

from ragtide.drift.attributes import Evidence
from ragtide.drift.settings import Severity
from ragtide.drift.stats import Interval, Number
from ragtide.drift.text import scope_label
from ragtide.drift.windows import MetricRef


class Series(NamedTuple):
    """Windows that are evaluated together: those of all prompt versions of a model."""

    app: str
    environment: str
    metric: str
    model: str
    segment: str
    segment_value: str

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Series":
        """Take the series from a row of `windows` or `verdicts`."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def label(self) -> str:
        """Everything but the metric, as sentences begin."""
        return scope_label(self.app, self.environment, self.model, self.segment, self.segment_value)


@dataclass(frozen=True, slots=True)
class Window:
    """One interval of a series under one fingerprint: a base window, or several pooled. Seconds since 1970.

    `revision` is the sum over the pooled windows, so that any change raises it. `changed`: since the rules ran last,
    and within the allowed lateness.
    """

    start: int
    end: int
    seen: int = 0
    applicable: int = 0
    scored: int = 0
    failed: int = 0
    sum: float = 0.0
    bins: Mapping[int, int] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    revision: int = 0
    frozen: bool = False
    changed: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Statistics:
    """The numbers of a problem: `value` is the mean over its bad windows, `baseline` over good ones before them."""

    value: float
    threshold: float
    baseline: float | None
    effect_size: float | None
    samples: int
    bad: int
    traffic: int  # traces of the app in the same time, all models together
    reasons: tuple[str, ...] = ()
    interval: Interval | None = None  # of an estimated value: 95 %
    bad_traces: int | None = None  # estimated from a sample; None: every bad one is known, and counted in `bad`


class ReferenceLine(NamedTuple):
    """A horizontal line on the chart."""

    name: str
    value: float


class ChartSeries(NamedTuple):
    """SQL aggregates over rows of `windows`: the charted value, and how many records it rests on.

    `unsegmented`: windows are not split by the problem's segment.
    """

    name: str
    value: str
    records: str
    line: ReferenceLine | None
    unsegmented: bool = False


class RuleKind(ABC):
    """How windows are evaluated. Each kind is one class in `ragtide.drift.rules.kinds`, with all that differs."""

    name: ClassVar[str]
    value_type: ClassVar[Literal["number", "share", "count"]] = "number"  # shares and counts are of bad records
    per_record: ClassVar[bool] = True  # evaluates scores of records; False: metrics that only whole windows have
    is_average: ClassVar[bool] = False  # of the records' scores, so that a few bad records do not show
    counts_unscored: ClassVar[bool] = False  # a bad record is an applicable one without a score
    # One bad record is a problem at once, whichever evaluator version found it, and also in a window that is still
    # open. The problem ends when no bad record came for `any_resolve_after_s`. Allow-lists apply.
    zero_tolerance: ClassVar[bool] = False

    @abstractmethod
    def evaluate(self, window: Window, rule: "Rule", series: Series, allowed: int = 0) -> "RuleResult | None":
        """Evaluate a window with records, `allowed` bad ones excused. None where the value is unknown."""

    @abstractmethod
    def describe(self, series: Series, rule: "Rule", statistics: Statistics) -> str:
        """Say what is bad and by how much, without the series' label and the time."""

    @abstractmethod
    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries | None:
        """Choose the chart of a problem with this evidence; None where windows do not have its value.

        `metric` is None where the evaluator is not installed.
        """

    def sample_size(self, window: Window) -> int:
        """Count the records of a window that the result rests on."""
        return window.applicable if self.counts_unscored else window.scored

    def max_bad_share(self, rule: "Rule") -> float | None:
        """Return the largest acceptable share of bad records; None where another number is evaluated."""
        return {"count": 0.0, "share": rule.limit}.get(self.value_type)

    @property
    def aspect(self) -> Literal["level", "coverage"]:
        """The aspect of the series that is evaluated."""
        return "coverage" if self.counts_unscored else "level"

    @property
    def problem_kind(self) -> Literal["threshold", "coverage"]:
        """The kind of the problems that are raised."""
        return "coverage" if self.counts_unscored else "threshold"


@dataclass(frozen=True, slots=True)
class Rule:
    """How one series is evaluated. A record is bad below `min` or above `max`; equal to them is good."""

    kind: RuleKind
    metric_ref: MetricRef
    min: float | None
    max: float | None
    limit: float = 0.0
    min_sample: int = 1
    k: int = 1
    m: int = 1
    resolve_after: int = 1
    severity: Severity | None = None
    failure_limit: float = 1.0  # of averages: the share of bad records that is a problem whatever the mean
    allow_kinds: tuple[str, ...] = ()
    allow_texts: tuple[str, ...] = ()

    @property
    def rule_id(self) -> str:
        """The kind and a digest of what verdicts depend on, so that a changed threshold starts new verdicts."""
        what = [self.min, self.max, self.limit, self.min_sample, self.allow_kinds, self.allow_texts]
        return f"{self.kind.name}:{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:8]}"

    def bad_count(self, window: Window) -> int:
        """Count the records beyond the bounds."""
        return self.bad_sum(window.bins)

    def bad_sum(self, bins: Mapping[int, Number]) -> Number | int:
        """Add up the values of the bins beyond the bounds."""
        scale = self.metric_ref.scale
        below = 0 if self.min is None else scale.below(bins, self.min)
        return below + (0 if self.max is None else scale.above(bins, self.max))


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a rule on one window; it rests on `samples` records.

    `low` and `high` are the ends of the 95 % interval of an estimated value, which may lie beyond the metric's range.
    None: it is no estimate, or its records are alike or too few. `freedom` are the degrees of freedom of an estimated
    value; 0: too few records; None: it is no estimate.
    """

    value: float
    threshold: float
    breached: bool
    samples: int
    bad: int
    low: float | None = None
    high: float | None = None
    freedom: float | None = None


NO_RESULT = RuleResult(0.0, 0.0, False, 0, 0)  # no records left: neither good nor bad


class Verdict(NamedTuple):
    """Table `verdicts`: the result of one rule on one interval of a series."""

    rule_id: str
    run_id: str
    app: str
    environment: str
    metric: str
    model: str
    segment: str
    segment_value: str
    fingerprint: str
    start: datetime
    end: datetime
    revision: int
    breached: int
    value: float
    threshold: float
    samples: int
    wrong: int
    incomplete: int
    version: int
    low: float | None = None
    high: float | None = None
    freedom: float | None = None

    @property
    def series(self) -> Series:
        """The series of the verdict."""
        return Series(self.app, self.environment, self.metric, self.model, self.segment, self.segment_value)
