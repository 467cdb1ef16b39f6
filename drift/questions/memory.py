"""What is remembered of an application's questions: the reference, and how far and with what it was looked since."""

import base64
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from drift.detectors import stored, watching
from drift.detectors.baseline import VERSION as BASELINE
from drift.detectors.baseline import Baseline
from drift.detectors.series import Floats, Integers
from drift.detectors.watching import VERSION as STATE
from drift.detectors.watching import State
from drift.questions.clusters import Groups
from drift.questions.lots import Asked
from drift.watching import grid
from sinks.clickhouse.database import Database
from sinks.rows import LIVE

logger = logging.getLogger(__name__)
_VERSION = 1 << 16 | BASELINE << 8 | STATE


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """How questions of a run were asked on `days` [D], within [since, until): groups and their usual shares.

    Times in seconds since 1970. `usual` [D]: the area of each day against the others, NaN where it is not known.
    `learned`: at which time; `basis`: on what, see `drift.watching.reference`.
    """

    groups: Groups
    baseline: Baseline
    days: Integers
    usual: Floats
    since: int
    until: int
    learned: int
    basis: int
    run_id: str

    @property
    def rhythm(self) -> bool:
        """Whether hours of a day, and weekends, are told apart: a replay has times of its own."""
        return self.run_id == LIVE


@dataclass(slots=True, eq=False)
class Memory:
    """Of one application: its reference, and the state of the detector of shares after all ticks before `until`.

    `unlike`: whether the last whole day was, as far as that could be told; `troubled` [D]: days that are no example.
    """

    reference: Reference
    state: State
    until: int
    unlike: bool
    troubled: Integers

    @classmethod
    def begun(cls, reference: Reference, until: int, troubled: Integers | None = None) -> "Memory":
        """Nothing was looked at since the reference."""
        none = np.empty(0, np.int64)
        return cls(reference, watching.start(reference.baseline), until, False, none if troubled is None else troubled)

    def restart(self) -> None:
        """The shares of groups are in alarm no more, and nothing is known against them."""
        until = self.state.until
        self.state = watching.start(self.reference.baseline)
        self.state.until[:] = until

    @property
    def amiss(self) -> bool:
        """Whether there is anything to tell."""
        return self.alarm or self.unlike

    @property
    def alarm(self) -> bool:
        """Whether the shares of groups are in alarm."""
        return bool(self.state.alarms.on[0])


class _Row(NamedTuple):
    """Table `question_references`."""

    app: str
    environment: str
    encoder: str
    learned: datetime
    until: datetime
    days: list[datetime]
    groups: int
    memory: str
    version: int


def read(database: Database) -> dict[Asked, Memory]:
    """All there are; what another release wrote is left out, and begins anew."""
    rows = database.rows("SELECT app, environment, encoder, memory FROM question_references FINAL ORDER BY ALL")
    found = {}
    for row in rows:
        asked = Asked(row["app"], row["environment"], row["encoder"])
        try:
            found[asked] = stored.from_bytes(Memory, base64.b64decode(row["memory"]), _VERSION)
        except ValueError as error:
            logger.warning("questions of %s begin anew: %s", asked.app, error)
    return found


def keep(database: Database, asked: Asked, memory: Memory, version: int) -> None:
    """As it is now, stored when this returns."""
    reference = memory.reference
    text = base64.b64encode(stored.to_bytes(memory, _VERSION)).decode()
    days = [grid.time(int(day)) for day in reference.days]
    database.insert(
        "question_references",
        [
            _Row(
                asked.app,
                asked.environment,
                asked.encoder,
                grid.time(reference.learned),
                grid.time(memory.until),
                days,
                len(reference.groups.centroids),
                text,
                version,
            )
        ],
    )
