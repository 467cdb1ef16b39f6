"""A topic whose records may be deleted before a group has worked them off is a problem of no application.

It is told where the oldest record that waits is older than a share of the time that the brokers keep records, and has
not become younger since the look before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.leadership import Term
from drift.phrases import percent
from drift.problems.accounts import account_of
from drift.problems.events import Place, place_of_none
from drift.problems.problem import EventRow, Kind
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.settings import RuleSettings, Severity
from sinks.clickhouse.database import Database

_KIND: Kind = "threshold"
_SEGMENT = "retention"
_RELIEF = 0.8  # of the limit: so far must the age fall before it is over
_NEARLY_ALL = 0.9  # of the retention: high


class Wait(NamedTuple):
    """How long the oldest record of a topic waits for a group, and how long the brokers keep one, both in seconds.

    `oldest_s` is 0 where none waits, None where nobody can tell.
    """

    group: str
    topic: str
    oldest_s: float | None
    kept_s: float


@dataclass(slots=True)
class Retention:
    """Remembers from look to look how old the oldest record was."""

    _before: dict[Place, float] = field(default_factory=dict)

    def watch(
        self, database: Database, waits: Sequence[Wait], rules: RuleSettings, term: Term, now: datetime
    ) -> list[EventRow]:
        """What these waits say is told when this returns; `now` is the server's time.

        A group or topic that is not among them is gone, and its problem over.
        """
        told: dict[Place, Trouble | Over] = {
            place: Over(place, _KIND, now)
            for place in standing(database, _KIND)
            if place.aspect == "storage" and place.segment == _SEGMENT
        }
        for one in waits:
            place = place_of_none("storage", _SEGMENT, f"{one.group} {one.topic}")
            limit_s = rules.retention_share * one.kept_s
            if one.oldest_s is None or one.oldest_s > _RELIEF * limit_s:
                told.pop(place, None)
            if one.oldest_s is None:
                continue
            if one.oldest_s > limit_s and one.oldest_s >= self._before.get(place, float("inf")):
                told[place] = _trouble(place, one, one.oldest_s, rules, now)
            self._before[place] = one.oldest_s
        return tell(database, list(told.values()), rules, term, now)


def _trouble(place: Place, one: Wait, oldest_s: float, rules: RuleSettings, now: datetime) -> Trouble:
    share = oldest_s / one.kept_s
    said = (
        f"Records of topic {one.topic} wait for group {one.group} up to {_hours(oldest_s)}, {percent(share)} of the "
        f"{_hours(one.kept_s)} that the brokers keep them, and the wait does not shrink: unless it does, they will be "
        "deleted unread."
    )
    attributes = {
        "group": one.group,
        "topic": one.topic,
        "value": share,
        "limit": rules.retention_share,
        "oldest_s": oldest_s,
        "retention_s": one.kept_s,
    }
    severity: Severity = "high" if share >= _NEARLY_ALL else "medium"
    account = account_of(_KIND, place, None, said, attributes, rules, severity=severity)
    return Trouble(place, account, now - timedelta(seconds=oldest_s), now)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.3g} h"
