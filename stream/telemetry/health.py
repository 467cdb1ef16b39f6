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
    """A lane lives while commits go on, nothing waits, or the sink is known to be away.

    `clock` is monotonic, in seconds.
    """

    clock: Callable[[], float]
    live_after_s: float
    _committed: object = None
    _moved_at: float | None = None
    _waits_for: dict[str, str] = field(default_factory=lambda: {"start": "the worker is starting"})

    def observe(self, committed: object, *, work_waits: bool, sink_away: bool) -> None:
        """Look at what is committed now; any change counts as progress."""
        if self._moved_at is None or committed != self._committed or not work_waits or sink_away:
            self._committed = committed
            self._moved_at = self.clock()

    def waits_for(self, what: str, why: str | None) -> None:
        """Say why the lane is not ready as far as `what` goes; None: it is."""
        if why is None:
            self._waits_for.pop(what, None)
        else:
            self._waits_for[what] = why

    def live(self) -> list[str]:
        """Empty unless records wait, the sink is there, and nothing was committed for long."""
        stuck = 0.0 if self._moved_at is None else self.clock() - self._moved_at
        if stuck < self.live_after_s:
            return []
        return [f"records wait and nothing was committed for {stuck:.0f} s"]

    def ready(self) -> list[str]:
        """Empty once partitions are assigned and the sink takes rows."""
        return list(self._waits_for.values())
