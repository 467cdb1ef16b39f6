"""What each target would get about a problem now, and a sample to send through every target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ragtide.drift.insights import InsightRow
from ragtide.drift.notify.channel import Change, message_of
from ragtide.drift.notify.delivery import Target
from ragtide.drift.notify.insight_messages import SUFFIX
from ragtide.drift.notify.messages import load_changes, silenced
from ragtide.drift.notify.outbox import Message
from ragtide.drift.problems import EventRow, Problem, event_id, fold_events
from ragtide.evaluators.errors import RagtideError
from ragtide.sinks.clickhouse.database import Database

SAMPLE_APP = "ragtide-test"
_SAMPLE_TITLE = f"{SAMPLE_APP}: a test, nothing is wrong"
_SAMPLE_TEXT = "This is a test by `ragtide notify test`. Nothing is wrong."


@dataclass(frozen=True, slots=True)
class Preview:
    """What a target would get; `why_not`: why it gets nothing now, empty if it does."""

    target: str
    why_not: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target answered to the sample: identifiers of the messages, or why it failed.

    `ok` is None if the target cannot be tested, which tells nothing about it.
    """

    target: str
    ok: bool | None
    says: str


def preview_notifications(
    database: Database, problem: Problem, targets: Sequence[Target], now: datetime
) -> Iterator[Preview]:
    """Return what each target would get about an episode of a problem, as it is now. Sends nothing."""
    reason = silenced(database, problem, now)
    for target in targets:
        channel = target.channel
        if channel is None:
            yield Preview(target.name, "it gets insights only", {})
            continue
        changes = load_changes(database, channel, problem, now)
        if not changes:
            yield Preview(target.name, "the problem has not opened yet", {})
            continue
        why_not = channel.rejects(changes[-1]) or ("" if channel.takes_all else reason)
        messages = [message for one in changes if (message := message_of(channel, one, now)) is not None]
        if not messages:
            yield Preview(target.name, why_not or f"it does not get {changes[-1].event.event}", {})
        else:
            yield Preview(target.name, why_not, messages[-1].content)


def send_sample(target: Target, now: datetime) -> Answer:
    """Send a problem that opens and resolves, or an insight, whatever the target's filters; then take it back."""
    messages = sample_messages(target, now)
    try:
        with target.sender.connected():
            ids = [target.sender.send(message) for message in messages]
            target.sender.retract(messages[-1], ids[-1])
    except RagtideError as error:
        return Answer(target.name, False, str(error))
    return Answer(target.name, True, ", ".join(dict.fromkeys(filter(None, ids))))


def sample_problem(now: datetime) -> Problem:
    """Return the problem of the sample, open."""
    return next(_sample_changes(now)).problem


def sample_messages(target: Target, now: datetime) -> list[Message]:
    """Return the messages of the sample: of a problem if the target gets problems, else of an insight."""
    drafts = [] if target.channel is None else [message_of(target.channel, one, now) for one in _sample_changes(now)]
    found = [message for message in drafts if message is not None]
    if found or target.insights is None:
        return found
    messages = []
    for insight in _sample_insights(now):
        id_ = f"{insight.insight_id}:{insight.withdrawn}"
        draft = target.insights.draft_insight(insight, id_, now)
        thread = f"{insight.insight_id}:{SUFFIX}"
        messages.append(Message(f"{target.name}:{id_}", target.name, draft.action, thread, now, draft.content, now))
    return messages


def _sample_changes(now: datetime) -> Iterator[Change]:
    id_ = event_id(SAMPLE_APP, 1, now.isoformat())
    opened = EventRow(
        problem_id=id_, event_id=event_id(id_, 1, "opened"), event="opened", episode=1, at=now, app=SAMPLE_APP,
        environment="", model="", aspect="level", metric="ragtide.test", segment="", segment_value="", kind="threshold",
        type="runtime", severity="info", title=_SAMPLE_TITLE, description=_SAMPLE_TEXT,
        actions=("Nothing has to be done.",),
    )  # fmt: skip
    resolved = opened._replace(
        event="resolved", event_id=event_id(id_, 1, "resolved"), at=now + timedelta(milliseconds=1)
    )
    yield Change(opened, fold_events([opened])[0], "", is_first=True)
    yield Change(resolved, fold_events([opened, resolved])[0], "", is_first=False)


def _sample_insights(now: datetime) -> Iterator[InsightRow]:
    found = InsightRow(
        insight_id=event_id(SAMPLE_APP, 1, "insight", now.isoformat()), type="test", app=SAMPLE_APP, environment="",
        description=_SAMPLE_TEXT, attributes="{}", examples=(), actions=("Nothing has to be done.",),
        period_start=now - timedelta(days=1), period_end=now, epoch=0,
    )  # fmt: skip
    yield found
    yield found._replace(withdrawn=1)
