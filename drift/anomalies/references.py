"""What a baseline rests on: recent history, a reference that a person pinned, or what came after an accepted change.

Of a pin and an accepted change the later word counts.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift.problems.operator_actions import Acceptance, acceptances
from ragtide.drift.rules.model import Series
from ragtide.sinks.clickhouse.database import Database

FROM_HISTORY = 0  # basis of a series of which nobody said anything
_END_OF_TIME = datetime(2299, 12, 31, tzinfo=UTC)  # the last that the table can say
_COMPLETE_AFTER = timedelta(
    days=8
)  # for late records, a replay that still runs, and hours that history does not have yet


class BaselinePin(NamedTuple):
    """Table `baseline_pins`: the windows of [since, until) of a run are how `metric` ('': every one) of an app is."""

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
        """Names it; below 0."""
        what = json.dumps([*self[:3], self.since.timestamp(), self.until.timestamp()]).encode()
        return -1 - int.from_bytes(hashlib.sha256(what).digest()[:7], "big")

    @property
    def complete_at(self) -> datetime:
        """From then on it stays as it was learned: its windows are deleted one day."""
        return max(self.until, self.at) + _COMPLETE_AFTER


@dataclass(frozen=True, slots=True)
class ReferenceOverrides:
    """What people said: pins by app and metric, and of each series the last change that was accepted."""

    pins: Mapping[tuple[str, str], BaselinePin]
    accepted_changes: Mapping[Series, Acceptance]

    def pin_of(self, series: Series) -> BaselinePin | None:
        """The pin that holds for a series, its metric's before the app's; none where a change was accepted later."""
        pin = self.pins.get((series.app, series.metric)) or self.pins.get((series.app, ""))
        accepted = self.accepted_changes.get(series)
        return None if pin is not None and accepted is not None and accepted.at > pin.at else pin

    def baseline_source(self, series: Series) -> int:
        """`FROM_HISTORY`, a pin's own number, or since when history counts (seconds since 1970)."""
        pin, accepted = self.pin_of(series), self.accepted_changes.get(series)
        if pin is not None:
            return pin.baseline_source
        return FROM_HISTORY if accepted is None else int(accepted.since.timestamp())


def load_overrides(database: Database, as_of: datetime | None = None) -> ReferenceOverrides:
    """All that people said, up to then where that is told."""
    return ReferenceOverrides(load_pins(database, as_of), load_accepted_changes(database, as_of))


def load_accepted_changes(database: Database, as_of: datetime | None = None) -> dict[Series, Acceptance]:
    """Of each series of which people accepted a problem; of several the last one."""
    return {
        Series(*(getattr(one.key, name) for name in Series._fields)): one
        for one in acceptances(database)
        if one.key.aspect in ("level", "inputs") and (as_of is None or one.at <= as_of)
    }


def problem_intervals(database: Database) -> dict[Series, list[tuple[int, int]]]:
    """When each series had a problem, [since, until) in seconds since 1970; what detectors saw they know themselves."""
    rows = database.rows(
        f"SELECT {', '.join(Series._fields)}, JSONExtractString(attributes, 'since') AS since, "
        "toUnixTimestamp(ifNull(resolved_at, now64(3))) AS until FROM problems "
        "WHERE aspect IN ('level', 'inputs') AND opened_at IS NOT NULL AND kinds != ['change_point'] "
        "AND kinds != ['input_drift']"
    )
    found: dict[Series, list[tuple[int, int]]] = {}
    for row in rows:
        if row["since"]:
            since = int(datetime.fromisoformat(row["since"]).timestamp())
            found.setdefault(_series(row), []).append((since, row["until"]))
    return found


def _series(row: Mapping[str, str]) -> Series:
    return Series(*(row[name] for name in Series._fields))


def load_pins(database: Database, as_of: datetime | None = None) -> dict[tuple[str, str], BaselinePin]:
    """Those in force, by app and metric: the last word on each, where it is not that it holds no more."""
    rows = database.rows(
        f"SELECT {', '.join(BaselinePin._fields)} FROM baseline_pins WHERE at <= {{by:DateTime64(3, 'UTC')}} "
        "ORDER BY app, metric, at DESC LIMIT 1 BY app, metric",
        {"by": as_of or _END_OF_TIME},
    )
    found = [BaselinePin(*(row[name] for name in BaselinePin._fields)) for row in rows]
    return {(pin.app, pin.metric): pin for pin in found if not pin.removed}
