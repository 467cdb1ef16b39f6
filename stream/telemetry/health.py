"""Whether a process lives and is ready, and why not. Pure: fed by whoever runs the loops."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


class Health(Protocol):
    """What /live and /ready answer from."""

    def live(self) -> list[str]:
        """What is wrong so that only a restart helps; empty: it lives."""
        ...

    def ready(self) -> list[str]:
        """What it waits for; empty: it is ready."""
        ...


@dataclass(slots=True)
class LaneHealth:
    """A lane lives while commits go on, nothing waits, or the sink or the brokers are known to be away.

    `clock` is monotonic, in seconds.
    """

    clock: Callable[[], float]
    live_after_s: float
    _committed: object = None
    _progress_at: float | None = None
    _waits_for: dict[str, str] = field(default_factory=lambda: {"start": "the worker is starting"})

    def observe(self, committed: object, *, work_waits: bool, away: bool) -> None:
        """Look at what is committed now; any change counts as progress, and so does an outage: `away`."""
        if self._progress_at is None or committed != self._committed or not work_waits or away:
            self._committed = committed
            self._progress_at = self.clock()

    def waits_for(self, what: str, why: str | None) -> None:
        """Say why the lane is not ready as far as `what` goes; None: it is."""
        if why is None:
            self._waits_for.pop(what, None)
        else:
            self._waits_for[what] = why

    def live(self) -> list[str]:
        """Empty unless records wait, nothing is away, and nothing was committed for long."""
        stuck = 0.0 if self._progress_at is None else self.clock() - self._progress_at
        if stuck < self.live_after_s:
            return []
        return [f"records wait and nothing was committed for {stuck:.0f} s"]

    def ready(self) -> list[str]:
        """Empty once partitions are assigned, and while the brokers answer and the sink takes rows."""
        return list(self._waits_for.values())


@dataclass(slots=True)
class JobHealth:
    """The process lives while a leader finishes jobs; one that does not lead has nothing to finish.

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
        """Empty unless this process leads and has finished no job for long."""
        silent = self.clock() - self._progress_at
        return [f"no job finished for {silent:.0f} s: {self._trouble}"] if silent > self.live_after_s else []

    def ready(self) -> list[str]:
        """Empty unless the last job failed, or nobody can be elected to do the next one."""
        return [why for why in (self.no_election(), self._trouble) if why]
