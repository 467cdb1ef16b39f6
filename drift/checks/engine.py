"""Run checks: a check observes and describes, the engine keeps the life cycle of its problems.

Live runs and backtests drive the same checks; a check knows nothing of the problems that are open.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.detectors.arrays import Integers
from ragtide.drift.leadership import Term
from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.report import CheckResult, Clear, Detection, ProblemKey, open_detections, report
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows.metrics import MetricRef, metrics_by_name
from ragtide.drift.windows.segments import SegmentValues, load_segment_values
from ragtide.drift.windows.watermark import Watermark, lane_watermarks, read_stored
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_MAX_INSTANTS = 1000  # of a backtest that observes anew at each: a week and a half, at the defaults


@dataclass(frozen=True)
class CheckContext:
    """What checks look at; one per run, or one per backtest. `term` is None in a backtest, which stores nothing.

    `lane_watermarks`: where the caller knows them; None: those that roll-ups stored.
    """

    database: Database
    evaluators: Mapping[str, Evaluator]
    rules: RuleSettings
    windows: WindowSettings
    jobs: JobSettings
    term: Term | None = None
    lane_watermarks: Mapping[str, datetime] | None = None
    progress: Callable[[str, int, int], None] = lambda what, done, of: None

    @cached_property
    def metrics(self) -> Mapping[str, MetricRef]:
        """Every metric of the evaluators, by name."""
        return metrics_by_name(self.evaluators)

    @cached_property
    def segments(self) -> SegmentValues:
        """The segment values that have series of their own."""
        return load_segment_values(self.database, self.windows)

    @cached_property
    def watermarks(self) -> Mapping[str, datetime]:
        """Up to when windows of each lane are closed."""
        if self.lane_watermarks is not None:
            return self.lane_watermarks
        stored = {key: Watermark(at, False) for key, at in read_stored(self.database).items()}
        return {lane: one.at for lane, one in lane_watermarks(stored).items()}


class Observation(NamedTuple):
    """The state of one key. `detection` says why where it is bad; it is called only where needed, as it may query.

    `read` is how many windows, records or runs the state rests on.
    """

    key: ProblemKey
    state: CheckState
    detection: Callable[[], Detection] | None = None
    read: int = 0

    @classmethod
    def of(
        cls, key: ProblemKey, *, bad: bool, cleared: bool, detection: Callable[[], Detection], read: int = 0
    ) -> "Observation":
        """Bad beyond one limit, good below another, unclear between the two."""
        return cls(key, "bad" if bad else "good" if cleared else "unclear", detection if bad else None, read)


@dataclass(frozen=True, slots=True)
class CumulativeCounts:
    """Times in order, and up to each how many there were before it."""

    at: Integers
    before: Integers

    @classmethod
    def of(cls, some: Iterable[tuple[int, int]]) -> "CumulativeCounts":
        """From times, in order, with how many there were at each."""
        at, counts = np.array(list(some), np.int64).reshape(-1, 2).T
        return cls(at, np.concatenate([[0], counts.cumsum()]))

    def within(self, first: Integers, until: Integers) -> Integers:
        """In each [first, until)."""
        found: Integers = self.before[np.searchsorted(self.at, until)] - self.before[np.searchsorted(self.at, first)]
        return found


class Check(ABC):
    """Something that a scheduled job looks at and that may be bad.

    Checks that name a `job` need no arguments: `ragtide.drift.check_registry` finds, schedules and backtests them.
    """

    kind: ClassVar[Kind]
    job: ClassVar[str] = ""  # the job that runs it
    rule: ClassVar[str] = ""  # its name in backtests, where the kind is shared
    has_history: ClassVar[bool] = True  # whether the past can be observed

    def interval_s(self, jobs: JobSettings) -> float:
        """Seconds between two runs."""
        return jobs.checks_every_s

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Whether problems of this kind with that key are this check's."""
        return True

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """The end of the evidence by which an open key that is not bad any more clears; None: it cannot clear now."""
        return now

    @abstractmethod
    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """The keys that have a state at `now`; an open key that is left out clears."""

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observations in (first, until], seconds since 1970, with their instants, of each key in order of time.

        By default what `observe` finds at instants of `interval_s`, at most 1,000 of them.
        """
        observed = instants(first, until, ctx.windows.base_s, self.interval_s(ctx.jobs))
        known: set[ProblemKey] = set()
        for done, at in enumerate(observed, start=1):
            found = list(self.observe(ctx, calendar.utc(at)))
            missing = known - {one.key for one in found}
            known |= {one.key for one in found if one.state == "bad"}
            yield from ((at, one) for one in found)
            yield from ((at, Observation(key, "good")) for key in missing)
            ctx.progress(f"runs of {self.job}", done, len(observed))


def instants(first: int, until: int, base_s: int, every_s: float) -> range:
    """Ends of base windows in (first, until], seconds since 1970, about so far apart, at most `_MAX_INSTANTS`."""
    step = math.ceil(max(every_s, (until - first) / _MAX_INSTANTS) / base_s) * base_s
    return range(first + step, until + 1, step)


def run_check(check: Check, ctx: CheckContext, now: datetime) -> CheckResult:
    """Observe at `now`, the server's time, and store the events that follow: what is bad, what cleared."""
    assert ctx.term is not None, "a backtest simulates"
    found = list(check.observe(ctx, now))
    reports: dict[ProblemKey, Detection | Clear] = {}
    for key in open_detections(ctx.database, check.kind):
        until = check.judged_until(ctx, key, now) if check.owns(key) else None
        if until is not None:
            reports[key] = Clear(key, check.kind, until)
    for one in found:
        if one.detection is not None:
            reports[one.key] = one.detection()
        elif one.state == "unclear":
            reports.pop(one.key, None)
    events = report(ctx.database, list(reports.values()), ctx.rules, ctx.term, now)
    return CheckResult(sum(one.read for one in found), events)
