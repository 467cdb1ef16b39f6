"""What rules judge: one series of windows, its verdicts, and the rule that gave them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

from ragtide.drift.settings import Severity
from ragtide.drift.text import scope_label
from ragtide.drift.windows.metrics import MetricRef
from ragtide.evaluators.spec import RuleKind

WindowRuleKind = RuleKind | Literal["coverage"]


class Series(NamedTuple):
    """Windows that are judged together: all prompt versions of a model, one by one through time."""

    app: str
    environment: str
    metric: str
    model: str
    segment: str
    segment_value: str

    @property
    def label(self) -> str:
        """All of it but the metric, in words."""
        return scope_label(self.app, self.environment, self.model, self.segment, self.segment_value)


@dataclass(frozen=True, slots=True)
class Window:
    """What a rule sees of a stretch of one series under one fingerprint: a base window, or several pooled.

    Times in seconds since 1970. `revision` is the sum over what was pooled, so that any change raises it. `changed`:
    since the rules looked last, and within the allowed lateness.
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
class Rule:
    """How one series is judged. A record is bad below `least` or above `greatest`; equal to them is good."""

    kind: WindowRuleKind
    metric_ref: MetricRef
    min: float | None
    max: float | None
    limit: float
    min_sample: int
    k: int
    m: int
    resolve_after: int
    severity: Severity | None
    failure_limit: float = 1.0  # of kind mean: the share of bad records that is a problem whatever the mean
    allow_kinds: tuple[str, ...] = ()
    allow_texts: tuple[str, ...] = ()

    @property
    def rule_id(self) -> str:
        """Names the kind and everything a verdict follows from: a changed threshold starts verdicts of its own."""
        what = [self.min, self.max, self.limit, self.min_sample, self.allow_kinds, self.allow_texts]
        return f"{self.kind}:{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:8]}"

    def bad_count(self, window: Window) -> int:
        """Records on the wrong side of the lines."""
        scale = self.metric_ref.scale
        below = 0 if self.min is None else scale.below(window.bins, self.min)
        return below + (0 if self.max is None else scale.above(window.bins, self.max))


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What a rule says of one window. `samples` are the records that it rests on."""

    value: float
    threshold: float
    breached: bool
    samples: int
    bad: int


NO_RESULT = RuleResult(0.0, 0.0, False, 0, 0)  # nothing left to judge: neither good nor bad


class Verdict(NamedTuple):
    """Table `verdicts`: one rule's word on one stretch of a series."""

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

    @property
    def series(self) -> Series:
        """The series it speaks of."""
        return Series(self.app, self.environment, self.metric, self.model, self.segment, self.segment_value)
