"""What a producer sends, in order: the ledger that everything stored is held against."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

APPS = ("support", "search", "docs")
MODELS = ("m1", "m2")
TENANTS = ("a", "b", "c", None)
ENVIRONMENT = "prod"
TASKS = ("question_answering", "summarization")  # evaluator `inputs` looks at the first alone
QUESTION = "where is the parcel that was ordered in the shop last week"
# Texts and their languages; what is too short for a language has none.
ANSWERS = {
    "the parcel left the house yesterday and will arrive tomorrow": "en",
    "das Paket wurde gestern verschickt und kommt morgen bei Ihnen an": "de",
    "tomorrow": "unknown",
    "": "unknown",
}
ADDRESSES = "192.168.4.17, " * 1000  # dense, as pasted logs are
LANGUAGES = {**ANSWERS, ADDRESSES: "unknown"}
MINUTES = 12  # that traces are of, one after the other: the last ones of an hour and the first of the next
_LATE = 0.05  # share of traces that come long after others of their time
_AGAIN = 0.12  # share of messages about a trace that was sent before
_POISON = 0.01
_DENSE = 0.01


@dataclass(frozen=True, slots=True)
class Sent:
    """One message about a trace; `latency_s` is a multiple of 1/8, so that sums are exact in any order."""

    trace_id: str
    app: str
    time: datetime
    model: str
    tenant: str | None
    latency_s: float | None
    failed: bool
    answer: str
    task: str = TASKS[0]
    probe: bool = False

    @property
    def key(self) -> bytes:
        """Messages about one trace are of one partition, and so in order."""
        return self.trace_id.encode()

    @property
    def segments(self) -> dict[str, str]:
        return {} if self.tenant is None else {"tenant": self.tenant}

    def message(self) -> bytes:
        body: dict[str, object] = {
            "trace_id": self.trace_id,
            "time": self.time.isoformat(),
            "app": self.app,
            "environment": ENVIRONMENT,
            "question": QUESTION,
            "answer": self.answer,
            "model": {"requested": self.model},
            "segments": self.segments,
            "task": self.task,
        }
        if self.probe:
            body["probe"] = "asked"
        if self.latency_s is not None:
            body["latency"] = {"total_s": self.latency_s}
        if self.failed:
            body["error"] = {"type": "Timeout"}
        return json.dumps(body).encode()


@dataclass(frozen=True, slots=True)
class Poison:
    """A message that is no trace; each has bytes of its own."""

    number: int

    @property
    def key(self) -> bytes:
        return self.message()

    def message(self) -> bytes:
        return f"poison {self.number}".encode()


@dataclass(frozen=True, slots=True)
class Ledger:
    """Every message in the order of sending."""

    messages: Sequence[Sent | Poison]

    @property
    def traces(self) -> dict[str, Sent]:
        """What each id stands for: of several messages the last."""
        return {message.trace_id: message for message in self.messages if isinstance(message, Sent)}

    @property
    def poison(self) -> list[Poison]:
        return [message for message in self.messages if isinstance(message, Poison)]


def ledger(seed: int, count: int, now: datetime) -> Ledger:
    """`count` messages whose event times go through `MINUTES` of two hours that are over, the same for the same seed.

    Some traces are late; some are sent again: as they were, with other contents, with another minute, from another app,
    with another task, as probes.
    """
    dice = random.Random(seed)
    this_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    begin = this_hour - timedelta(hours=1, minutes=MINUTES // 2)
    messages: list[Sent | Poison] = []
    sent: list[Sent] = []
    for number in range(count):
        minute = number * MINUTES // count
        if dice.random() < _POISON:
            messages.append(Poison(number))
            continue
        if sent and dice.random() < _AGAIN:
            message = _again(dice, sent, begin, minute)
        else:
            if dice.random() < _LATE:
                minute = dice.randrange(minute + 1)
            message = _one(dice, f"trace-{number}", dice.choice(APPS), _within(dice, begin, minute))
        sent.append(message)
        messages.append(message)
    return Ledger(messages)


def _one(dice: random.Random, trace_id: str, app: str, time: datetime) -> Sent:
    return Sent(
        trace_id,
        app,
        time,
        dice.choice(MODELS),
        dice.choice(TENANTS),
        None if dice.random() < 0.1 else dice.randrange(1, 400) / 8,
        dice.random() < 0.05,
        ADDRESSES if dice.random() < _DENSE else dice.choice(list(ANSWERS)),
    )


def _again(dice: random.Random, sent: Sequence[Sent], begin: datetime, minute: int) -> Sent:
    """An earlier message once more, or a new one about its trace."""
    before = dice.choice(sent)
    how = dice.choice(("copy", "contents", "minute", "app", "task", "probe"))
    if how == "copy":
        return before
    changed = _one(dice, before.trace_id, before.app, before.time)
    if how == "minute":
        return replace(changed, time=_within(dice, begin, dice.randrange(minute + 1)))
    if how == "task":
        return replace(changed, task=dice.choice(TASKS))
    if how == "probe":
        return replace(changed, probe=not before.probe)
    return replace(changed, app=dice.choice(APPS)) if how == "app" else changed


def _within(dice: random.Random, begin: datetime, minute: int) -> datetime:
    return begin + timedelta(minutes=minute, milliseconds=dice.randrange(60_000))
