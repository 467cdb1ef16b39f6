"""Check consumer groups that fall behind: the brokers may delete a topic's records before the group has read them.

A problem opens if the oldest waiting record is older than a share of the topic's retention, and has not become younger
since the run before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.stats import calendar
from ragtide.drift.text import percent

_CLEAR_FRACTION = 0.8  # of the limit: so far must the age fall before a problem clears
_CRITICAL_SHARE = 0.9  # of the retention: critical


class GroupLag(NamedTuple):
    """Age of the oldest record that a group has not read on a topic, and the topic's retention, in seconds.

    `oldest_s` is 0 if none waits, None if it is unknown.
    """

    group: str
    topic: str
    oldest_s: float | None
    retention_s: float


@dataclass(slots=True)
class ConsumerLag(Check):
    """Records wait too long for a group. Remembers the age of the oldest one from run to run."""

    read_lags: Callable[[], Sequence[GroupLag]] = tuple
    _before: dict[ProblemKey, float] = field(default_factory=dict)

    kind = "threshold"
    has_history = False

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude rules, which have the same kind."""
        return key.is_of_system("storage", "retention")

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe every group on every topic; a group that is gone clears."""
        for one in self.read_lags():
            key = ProblemKey.of_system("storage", "retention", f"{one.group} {one.topic}")
            if one.oldest_s is None:
                yield Observation(key, "unclear", read=1)
                continue
            limit_s = ctx.rules.retention_share * one.retention_s
            yield Observation.of(
                key,
                bad=one.oldest_s > limit_s and one.oldest_s >= self._before.get(key, float("inf")),
                cleared=one.oldest_s <= _CLEAR_FRACTION * limit_s,
                detection=partial(_detection, key, one, one.oldest_s, ctx.rules, now),
                read=1,
            )
            self._before[key] = one.oldest_s


def _detection(key: ProblemKey, one: GroupLag, oldest_s: float, rules: RuleSettings, now: datetime) -> Detection:
    share = oldest_s / one.retention_s
    message = (
        f"Group {one.group} is {_hours(oldest_s)} behind on {one.topic}, {percent(share)} of its "
        f"{_hours(one.retention_s)} retention, and not catching up. Unread records will be deleted."
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
    details = build_details(ConsumerLag.kind, key, None, message, attributes, rules, severity=severity)
    return Detection(key, details, now - timedelta(seconds=oldest_s), now)


def _hours(seconds: float) -> str:
    return f"{seconds / calendar.HOUR_S:.3g} h"
