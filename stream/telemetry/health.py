"""Whether a process is live and ready, and why not. Pure: its owner feeds it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


class Health(Protocol):
    """Source of the answers of /live and /ready."""

    def live(self) -> list[str]:
        """Fault that only a restart fixes; empty: live."""
        ...

    def ready(self) -> list[str]:
        """What the process waits for; empty: ready."""
        ...


@dataclass(slots=True)
class LaneHealth:
    """A lane is live while it commits, has nothing to do, or the sink or the brokers are known to be away.

    `clock` is monotonic, in seconds.
    """

    clock: Callable[[], float]
    live_after_s: float
    _committed: object = None
    _progress_at: float | None = None
    _waits_for: dict[str, str] = field(default_factory=lambda: {"start": "the worker is starting"})

    def observe(self, committed: object, *, work_waits: bool, away: bool) -> None:
        """Record the committed offsets; any change counts as progress, and so does an outage (`away`)."""
        if self._progress_at is None or committed != self._committed or not work_waits or away:
            self._committed = committed
            self._progress_at = self.clock()

    def waits_for(self, what: str, why: str | None) -> None:
        """Set why `what` keeps the lane from being ready; None: it does not."""
        if why is None:
            self._waits_for.pop(what, None)
        else:
            self._waits_for[what] = why

    def live(self) -> list[str]:
        """Not empty if records wait, nothing is away, and nothing was committed for long."""
        stuck = 0.0 if self._progress_at is None else self.clock() - self._progress_at
        if stuck < self.live_after_s:
            return []
        return [f"records wait and nothing was committed for {stuck:.0f} s"]

    def ready(self) -> list[str]:
        """Empty once partitions are assigned, while the brokers answer and the sink accepts rows."""
        return list(self._waits_for.values())


@dataclass(slots=True)
class JobHealth:
    """A leader is live while it finishes jobs; a process that does not lead is always live.

    `clock` is monotonic, in seconds. `no_election` says why nobody can be elected; empty where somebody can.
    """

    clock: Callable[[], float]
    live_after_s: float
    no_election: Callable[[], str]
    _progress_at: float = field(init=False)
    _trouble: str = "the jobs are starting"

    def __post_init__(self) -> None:
        self._progress_at = self.clock()

    def record_progress(self) -> None:
        """A job finished, or another process leads."""
        self._progress_at, self._trouble = self.clock(), ""

    def record_failure(self, why: str) -> None:
        """A job could not be done."""
        self._trouble = why

    def live(self) -> list[str]:
        """Not empty if this process leads and has finished no job for long."""
        silent = self.clock() - self._progress_at
        return [f"no job finished for {silent:.0f} s: {self._trouble}"] if silent > self.live_after_s else []

    def ready(self) -> list[str]:
        """Not empty if the last job failed, or no leader can be elected."""
        return [why for why in (self.no_election(), self._trouble) if why]
