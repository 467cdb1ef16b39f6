"""A topic whose records may be deleted before a group has worked them off is a problem of no application.

It is told where the oldest record that waits is older than a share of the time that the brokers keep records, and has
not become younger since the look before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import EventRow, Kind
from ragtide.drift.problems.report import (
    Clear,
    Detection,
    ProblemKey,
    build_details,
    key_of_system,
    open_detections,
    report,
)
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.text import percent
from ragtide.sinks.clickhouse.database import Database

_KIND: Kind = "threshold"
_SEGMENT = "retention"
_CLEAR_FRACTION = 0.8  # of the limit: so far must the age fall before it is over
_CRITICAL_SHARE = 0.9  # of the retention: critical


class GroupLag(NamedTuple):
    """How long the oldest record of a topic waits for a group, and how long the brokers keep one, both in seconds.

    `oldest_s` is 0 where none waits, None where nobody can tell.
    """

    group: str
    topic: str
    oldest_s: float | None
    retention_s: float


@dataclass(slots=True)
class ConsumerLag:
    """Remembers from look to look how old the oldest record was."""

    _before: dict[ProblemKey, float] = field(default_factory=dict)

    def check(
        self, database: Database, lags: Sequence[GroupLag], rules: RuleSettings, term: Term, now: datetime
    ) -> list[EventRow]:
        """What these waits say is told when this returns; `now` is the server's time.

        A group or topic that is not among them is gone, and its problem over.
        """
        reports: dict[ProblemKey, Detection | Clear] = {
            key: Clear(key, _KIND, now)
            for key in open_detections(database, _KIND)
            if key.aspect == "storage" and key.segment == _SEGMENT
        }
        for one in lags:
            key = key_of_system("storage", _SEGMENT, f"{one.group} {one.topic}")
            limit_s = rules.retention_share * one.retention_s
            if one.oldest_s is None or one.oldest_s > _CLEAR_FRACTION * limit_s:
                reports.pop(key, None)
            if one.oldest_s is None:
                continue
            if one.oldest_s > limit_s and one.oldest_s >= self._before.get(key, float("inf")):
                reports[key] = _detection(key, one, one.oldest_s, rules, now)
            self._before[key] = one.oldest_s
        return report(database, list(reports.values()), rules, term, now)


def _detection(key: ProblemKey, one: GroupLag, oldest_s: float, rules: RuleSettings, now: datetime) -> Detection:
    share = oldest_s / one.retention_s
    message = (
        f"Records of topic {one.topic} wait for group {one.group} up to {_hours(oldest_s)}, {percent(share)} of the "
        f"{_hours(one.retention_s)} that the brokers keep them, and the wait does not shrink: unless it does, "
        f"they will be "
        "deleted unread."
    )
    attributes = {
        "group": one.group,
        "topic": one.topic,
        "value": share,
        "limit": rules.retention_share,
        "oldest_s": oldest_s,
        "retention_s": one.retention_s,
    }
    severity: Severity = "critical" if share >= _CRITICAL_SHARE else "warning"
    details = build_details(_KIND, key, None, message, attributes, rules, severity=severity)
    return Detection(key, details, now - timedelta(seconds=oldest_s), now)


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:.3g} h"
