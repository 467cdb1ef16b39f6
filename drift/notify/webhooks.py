"""Webhooks: CloudEvents about problems and insights, posted to receivers of the settings."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ragtide.drift.insights import InsightRow
from ragtide.drift.notify.channel import ANNOUNCED, ESCALATED, Change, Condition, Draft
from ragtide.drift.notify.notification import SCHEMA_ID, insight_data, problem_data
from ragtide.drift.notify.outbox import Action, Message
from ragtide.drift.routes import Route
from ragtide.drift.webhook_settings import OF_PROBLEMS, Event, FilterField, Webhook
from ragtide.evaluators.errors import RagtideError
from ragtide.sinks.http_post import Busy
from ragtide.sinks.webhook import WebhookClient

PREFIX = "webhook:"
_EVENT_OF: Mapping[Action, Event] = {
    "open": "problem.opened",
    "update": "problem.updated",
    "close": "problem.resolved",
}
_ACTIONS: Mapping[str, Action] = {**ANNOUNCED, ESCALATED: "update"}
_UPDATES = tuple(event for event, action in _ACTIONS.items() if action == "update")


@dataclass(frozen=True, slots=True)
class WebhookChannel:
    """The problems and insights that a webhook's filters choose."""

    webhook: Webhook
    routes: Sequence[Route] = ()
    takes_all: bool = False
    repeats: bool = False

    @property
    def name(self) -> str:
        """`webhook:NAME`."""
        return f"{PREFIX}{self.webhook.name}"

    @property
    def actions(self) -> Mapping[str, Action]:
        """By event. An update may be the first message about an episode: then it is an opening."""
        wanted = set(self.webhook.events)
        if "problem.opened" in wanted:
            wanted.add("problem.updated")
        return {event: action for event, action in _ACTIONS.items() if _EVENT_OF[action] in wanted}

    def condition(self) -> Condition:
        """Return the filters. What follows a message about the episode is announced whatever they say."""
        only_first = "problem.opened" in self.webhook.events and "problem.updated" not in self.webhook.events
        updates = f" AND (event NOT IN {_UPDATES!r} OR NOT is_later)" if only_first else ""
        matches = f"{_matches('app')} AND {_matches('environment')} AND {_matches('metric')} AND {_matches('type')}"
        return Condition(
            f"(is_later OR ({matches} AND severity IN {{severities:Array(String)}})){updates}",
            {**self._patterns("app", "environment", "metric", "type"), "severities": list(self.webhook.severities)},
        )

    def insight_condition(self) -> Condition | None:
        """Return the filters by app, environment and type; None if the webhook gets no insights."""
        wanted = [
            withdrawn
            for withdrawn, event in enumerate(("insight.found", "insight.withdrawn"))
            if event in self.webhook.events
        ]
        if not wanted:
            return None
        states = f"withdrawn IN ({', '.join(map(str, wanted))})"
        return Condition(
            f"{states} AND {_matches('app')} AND {_matches('environment')} AND {_matches('type')}",
            self._patterns("app", "environment", "type"),
        )

    def rejects(self, change: Change) -> str:
        """Say why the filters leave a problem out; empty if they do not."""
        hook, event = self.webhook, change.event
        named: Mapping[FilterField, str] = {
            "app": event.app,
            "environment": event.environment,
            "metric": event.metric,
            "type": event.type,
        }
        if not set(hook.events) & set(OF_PROBLEMS):
            return "events names none of problems"
        for field, value in named.items():
            if not hook.matches(field, value):
                return f"{field} {value!r} does not match {getattr(hook, field)!r}"
        return (
            ""
            if event.severity in hook.severities
            else f"severity is {event.severity}, not {', '.join(hook.severities)}"
        )

    def draft(self, change: Change) -> Draft | None:
        """Write the CloudEvent of a change."""
        action = _ACTIONS[change.event.event]
        if action == "update" and change.is_first:
            action = "open"
        if _EVENT_OF[action] not in self.webhook.events:
            return None
        event = change.event
        type_ = f"ragtide.{_EVENT_OF[action]}"
        data = problem_data(change, self.routes)
        return Draft(action, self._content(event.event_id, type_, event.at, f"problems/{event.problem_id}", data))

    def draft_insight(self, insight: InsightRow, message_id: str, at: datetime) -> Draft:
        """Write the CloudEvent of an insight."""
        type_ = f"ragtide.insight.{'withdrawn' if insight.withdrawn else 'found'}"
        subject = f"insights/{insight.insight_id}"
        data = insight_data(insight, self.routes)
        content = self._content(message_id, type_, at, subject, data)
        return Draft("close" if insight.withdrawn else "open", content)

    def _content(
        self, id_: str, type_: str, at: datetime, subject: str, data: Mapping[str, Any]
    ) -> Mapping[str, Mapping[str, Any]]:
        return {
            "event": {
                "specversion": "1.0",
                "id": id_,
                "source": self.webhook.source,
                "type": type_,
                "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "subject": subject,
                "datacontenttype": "application/json",
                "dataschema": SCHEMA_ID,
                "data": data,
            }
        }

    def _patterns(self, *fields: FilterField) -> dict[str, str]:
        return {f"{field}_pattern": self.webhook.pattern(field) for field in fields}


class WebhookSender:
    """Posts the messages of one webhook."""

    def __init__(self, webhook: Webhook, client: WebhookClient | None = None) -> None:
        self._client = client or WebhookClient(webhook, f"webhooks.{webhook.name}")
        self.retry_for: timedelta | None = timedelta(days=webhook.retry_days)
        self._answers = False

    def connected(self) -> AbstractContextManager[object]:
        """Keep the connection open for the messages of one run."""
        return self._client.connected()

    def send(self, message: Message) -> str:
        """Post the message; return the status of the answer."""
        event = message.content["event"]
        self._answers = True
        try:
            return str(self._client.post(event["id"], body_of(message)))
        except RagtideError as error:
            self._answers = not (isinstance(error, Busy) and error.is_away)
            raise

    def answers(self) -> bool:
        """Whether the failure of the last message may be its own."""
        return self._answers

    def retract(self, message: Message, external_id: str) -> None:
        """Nothing: what was posted was posted."""


def body_of(message: Message) -> bytes:
    """Return the body of a message: the same bytes at every attempt."""
    return json.dumps(message.content["event"], ensure_ascii=False, separators=(",", ":")).encode()


def _matches(field: str) -> str:
    return f"match({field}, {{{field}_pattern:String}})"
