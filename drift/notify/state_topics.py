"""Compacted topics: the latest state of each problem and each insight, by its id, for any consumer to route."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ragtide.drift.insights import InsightRow
from ragtide.drift.notify.channel import ANNOUNCED, ESCALATED, Change, Condition, Draft
from ragtide.drift.notify.notification import insight_data, problem_data
from ragtide.drift.notify.outbox import Action
from ragtide.drift.routes import Route

PREFIX = "topic:"
_OPERATOR_EVENTS = ("accepted", "acked", "unacked", "muted", "unmuted")
_ACTIONS: Mapping[str, Action] = {
    **ANNOUNCED,
    ESCALATED: "update",
    **dict.fromkeys(_OPERATOR_EVENTS, "update"),
}


@dataclass(frozen=True, slots=True)
class ProblemTopic:
    """Every problem that opened, muted ones and symptoms included: consumers choose by its fields."""

    topic: str
    routes: Sequence[Route] = ()
    takes_all: bool = True

    @property
    def name(self) -> str:
        """`topic:NAME`."""
        return f"{PREFIX}{self.topic}"

    @property
    def actions(self) -> Mapping[str, Action]:
        """By event; figures that change within an open problem are no event."""
        return _ACTIONS

    def condition(self) -> Condition:
        """All of them."""
        return Condition()

    def rejects(self, change: Change) -> str:
        """Nothing is left out."""
        return ""

    def draft(self, change: Change) -> Draft:
        """Write the state after the change."""
        return Draft(_ACTIONS[change.event.event], _record(change.event.problem_id, problem_data(change, self.routes)))


@dataclass(frozen=True, slots=True)
class InsightTopic:
    """Every insight, each time that it is stored."""

    topic: str
    routes: Sequence[Route] = ()
    repeats: bool = True

    @property
    def name(self) -> str:
        """`topic:NAME`."""
        return f"{PREFIX}{self.topic}"

    def insight_condition(self) -> Condition:
        """All of them."""
        return Condition()

    def draft_insight(self, insight: InsightRow, message_id: str, at: datetime) -> Draft:
        """Write the insight as it is stored."""
        action: Action = "close" if insight.withdrawn else "open"
        return Draft(action, _record(insight.insight_id, insight_data(insight, self.routes)))


def _record(key: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"key": key, "value": value}
