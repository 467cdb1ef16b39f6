"""Sources of baselines: recent history, a reference that an operator pinned, or the time after an accepted change.

Of a pin and an accepted change the later one counts."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from ragtide.drift.array_types import Integers
from ragtide.drift.problems import Acceptance, ProblemKey, acceptances
from ragtide.drift.rules import Series
from ragtide.sinks.clickhouse.database import Database

FROM_HISTORY = 0  # source of a baseline without operator actions
_END_OF_TIME = datetime(2299, 12, 31, tzinfo=UTC)  # the last that the table can store
_COMPLETE_AFTER = timedelta(days=8)  # for late records, running replays, and hours that history does not have yet


class BaselinePin(NamedTuple):
    """Table `baseline_pins`: windows of a run in [since, until) as the reference of `metric` ('': all) of an app."""

    app: str
    metric: str
    run_id: str
    since: datetime
    until: datetime
    why: str
    actor: str
    removed: int
    at: datetime

    @property
    def baseline_source(self) -> int:
        """Number that names the reference; below 0."""
        what = json.dumps([*self[:3], self.since.timestamp(), self.until.timestamp()]).encode()
        return -1 - int.from_bytes(hashlib.sha256(what).digest()[:7], "big")

    @property
    def complete_at(self) -> datetime:
        """Time from which on its baselines stay as learned, since its windows are deleted one day."""
        return max(self.until, self.at) + _COMPLETE_AFTER


@dataclass(frozen=True, slots=True)
class ReferenceOverrides:
    """Operator actions on baselines: pins by app and metric, and each series' last accepted change."""

    pins: Mapping[tuple[str, str], BaselinePin]
    accepted_changes: Mapping[Series, Acceptance]

    def pin_of(self, series: Series) -> BaselinePin | None:
        """Return the pin of a series, its metric's before the app's; None if a change was accepted later."""
        pin = self.pins.get((series.app, series.metric)) or self.pins.get((series.app, ""))
        accepted = self.accepted_changes.get(series)
        return None if pin is not None and accepted is not None and accepted.at > pin.at else pin

    def places_by_pin(self, series: Sequence[Series]) -> dict[BaselinePin, Integers]:
        """Group the positions of pinned series by pin."""
        found: dict[BaselinePin, list[int]] = {}
        for place, one in enumerate(series):
            if (pin := self.pin_of(one)) is not None:
                found.setdefault(pin, []).append(place)
        return {pin: np.array(places) for pin, places in found.items()}

    def baseline_source(self, series: Series) -> int:
        """Return `FROM_HISTORY`, a pin's number, or the start of history (seconds since 1970)."""
        pin, accepted = self.pin_of(series), self.accepted_changes.get(series)
        if pin is not None:
            return pin.baseline_source
        return FROM_HISTORY if accepted is None else int(accepted.since.timestamp())


def load_overrides(database: Database, as_of: datetime | None = None) -> ReferenceOverrides:
    """Load all operator actions, or those up to `as_of`."""
    accepted = {
        series_of(one.key): one
        for one in acceptances(database)
        if one.key.aspect in ("level", "inputs") and (as_of is None or one.at <= as_of)
    }
    return ReferenceOverrides(load_pins(database, as_of), accepted)


def load_pins(database: Database, as_of: datetime | None = None) -> dict[tuple[str, str], BaselinePin]:
    """Load the pins in force by app and metric: the last action on each, unless it removed the pin."""
    rows = database.rows(
        f"SELECT {', '.join(BaselinePin._fields)} FROM baseline_pins WHERE at <= {{by:DateTime64(3, 'UTC')}} "
        "ORDER BY app, metric, at DESC LIMIT 1 BY app, metric",
        {"by": as_of or _END_OF_TIME},
    )
    return {(row["app"], row["metric"]): BaselinePin(**row) for row in rows if not row["removed"]}


def problem_intervals(database: Database) -> dict[Series, list[tuple[int, int]]]:
    """Load when each series had a problem, [since, until) in seconds since 1970; detectors know their own alarms."""
    rows = database.rows(
        f"SELECT {', '.join(Series._fields)}, toUnixTimestamp(assumeNotNull(since)) AS since, "
        "toUnixTimestamp(ifNull(resolved_at, now64(3))) AS until FROM problems "
        "WHERE aspect IN ('level', 'inputs') AND opened_at IS NOT NULL AND kinds != ['change_point'] "
        "AND kinds != ['input_drift'] AND problems.since IS NOT NULL"
    )
    found: dict[Series, list[tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(Series(*(row[name] for name in Series._fields)), []).append((row["since"], row["until"]))
    return found


def series_of(key: ProblemKey) -> Series:
    """Return the series of a problem."""
    return Series(*(getattr(key, name) for name in Series._fields))
