"""Define checks: a check observes and describes; `run_check` and backtests own the life cycle of its problems.

A check does not know which problems are open.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from ragtide.drift.array_types import Integers
from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.leadership import Term
from ragtide.drift.problems import Detection, Kind, ProblemKey
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows import (
    MetricRef,
    SegmentValues,
    Watermark,
    lane_watermarks,
    load_segment_values,
    metrics_by_name,
    read_watermarks,
)
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_MAX_INSTANTS = 1000  # of a backtest without a history: ten days at the default interval


@dataclass(frozen=True)
class CheckContext:
    """What checks read; one per run, or one per backtest. `term` is None in a backtest, which stores nothing.

    `lane_watermarks`: watermarks that the caller knows; None: those that roll-ups stored.
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
        """The watermark of each lane: its windows are closed up to then."""
        if self.lane_watermarks is not None:
            return self.lane_watermarks
        stored = {key: Watermark(at, False) for key, at in read_watermarks(self.database).items()}
        return {lane: one.at for lane, one in lane_watermarks(stored).items()}


class Observation(NamedTuple):
    """The state of one key. `detection` describes a bad state; it is called only if needed, as it may query.

    `read` is the number of windows, records or runs behind the state.
    """

    key: ProblemKey
    state: CheckState
    detection: Callable[[], Detection] | None = None
    read: int = 0

    @classmethod
    def of(
        cls, key: ProblemKey, *, bad: bool, cleared: bool, detection: Callable[[], Detection], read: int = 0
    ) -> "Observation":
        """Make an observation: bad beyond one limit, good below another, unclear between the two."""
        return cls(key, "bad" if bad else "good" if cleared else "unclear", detection if bad else None, read)


@dataclass(frozen=True, slots=True)
class CumulativeCounts:
    """Times in order, and the cumulative count before each."""

    at: Integers
    before: Integers

    @classmethod
    def of(cls, some: Iterable[tuple[int, int]]) -> "CumulativeCounts":
        """Make them from times, in order, with the count at each."""
        at, counts = np.array(list(some), np.int64).reshape(-1, 2).T
        return cls(at, np.concatenate([[0], counts.cumsum()]))

    def within(self, first: Integers, until: Integers) -> Integers:
        """Count within each [first, until)."""
        found: Integers = self.before[np.searchsorted(self.at, until)] - self.before[np.searchsorted(self.at, first)]
        return found


class Check(ABC):
    """A condition that a scheduled job checks and that raises problems.

    Checks that name a `job` need no arguments: `ragtide.drift.jobs` finds them for schedule and backtest.
    """

    kind: ClassVar[Kind]
    job: ClassVar[str] = ""  # the job that runs it
    rule: ClassVar[str] = ""  # its name in backtests, where the kind is shared
    has_history: ClassVar[bool] = True  # whether the past can be observed
    history_lookback_s: ClassVar[int] = 0  # `history` gives right states only so long after its first instant

    def interval_s(self, jobs: JobSettings) -> float:
        """Return the seconds between two runs."""
        return jobs.checks_every_s

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Tell whether a problem of this kind with that key is this check's."""
        return True

    def judged_until(self, ctx: CheckContext, key: ProblemKey, now: datetime) -> datetime | None:
        """Return the end of the evidence by which an open key that is not bad any more clears.

        None: it cannot clear now.
        """
        return now

    @abstractmethod
    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe the keys that have a state at `now`; an open key that is left out clears."""

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe (first, until], seconds since 1970, with the instants; each key in order of time.

        By default it calls `observe` at instants of `interval_s`, at most 1,000 of them.
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
    """Return ends of base windows in (first, until], about `every_s` apart, at most `_MAX_INSTANTS`."""
    step = math.ceil(max(every_s, (until - first) / _MAX_INSTANTS) / base_s) * base_s
    return range(first + step, until + 1, step)
