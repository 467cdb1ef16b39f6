"""Batches and baselines in memory, as the database has them: for looks of which nothing is to be stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from drift.watching import grid
from drift.watching.batch import Batch, BatchKey
from drift.watching.kept import NEWEST, Held, readable, slot_of_baseline
from drift.watching.kinds import Watch


@dataclass(frozen=True, slots=True)
class Remembered:
    """Of one process; begins empty. As texts, so that what is read is no part of what goes on."""

    _states: dict[tuple[BatchKey, int], dict[str, Any]] = field(default_factory=dict)
    _baselines: dict[tuple[BatchKey, int], Held] = field(default_factory=dict)

    def batches(self, watched: Mapping[str, Watch]) -> list[Batch]:
        """The newest of each, in order, with the series that are `watched`."""
        rows = [row for (_, slot), row in sorted(self._states.items(), key=lambda one: one[0]) if slot == NEWEST]
        found = (readable(row, watched, "begin anew") for row in rows)
        return [batch for batch in found if batch is not None]

    def checkpoint(self, key: BatchKey, late: int, watched: Mapping[str, Watch]) -> Batch | None:
        """The newest state that has not looked at a tick yet, None where none goes so far back."""
        own = [row for (other, slot), row in self._states.items() if other == key and slot != NEWEST]
        fits = [row for row in own if row["until"].timestamp() <= late]
        return readable(max(fits, key=lambda row: row["until"]), watched, "are not gone back to") if fits else None

    def baselines(self, key: BatchKey, until: int) -> list[Held]:
        """The last two that held at tick `until` or before, and the last two that hold later, the oldest first."""
        own = sorted((held for (other, _), held in self._baselines.items() if other == key), key=_from)
        past, later = ([held for held in own if (held.holds_from > until) is is_later] for is_later in (False, True))
        return [*past[-2:], *later[-2:]]

    def keep(self, batch: Batch, slot: int) -> None:
        """The batch as it is now is kept when this returns."""
        self._states[batch.key, slot] = {
            **batch.key._asdict(),
            "until": grid.time(batch.until),
            "position": batch.position,
            "names": batch.names(),
            "state": batch.text(),
        }

    def keep_baseline(self, key: BatchKey, held: Held) -> None:
        """A baseline in the place of the oldest one."""
        self._baselines[key, slot_of_baseline(held)] = held


def _from(held: Held) -> int:
    return held.holds_from
