"""Add the facts of labels to a trace, and make the message that sends it through the lanes again. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ragtide.evaluators.trace import Labels, Trace
from ragtide.sinks.version import timestamp_of
from ragtide.stream.ingest.enriched import Header, enrichment_headers

_encode = msgspec.json.encode
_expected = msgspec.json.Decoder(tuple[str, ...])
_relevance = msgspec.json.Decoder(dict[str, float])
_classes = msgspec.json.Decoder(str | tuple[str, ...])


class Facts(NamedTuple):
    """The newest of each fact about a trace, as JSON (empty: none), and whether somebody disliked the answer.

    The revision counts the labels with a fact or a thumbs-down.
    """

    revision: int
    expected: str
    relevance: str
    classes: str
    is_disliked: bool = False

    @property
    def join(self) -> bool:
        """Whether there is a fact to join; else only judges look at the trace."""
        return bool(self.expected or self.relevance or self.classes)


class MessagePosition(NamedTuple):
    """Position of the message that a stored trace comes from, and the version of its rows."""

    topic: str
    partition: int
    offset: int
    version: int


class Message(NamedTuple):
    """A Kafka message to send."""

    topic: str
    key: bytes
    value: bytes
    headers: list[Header]


def enrich(trace: Trace, facts: Facts) -> Trace:
    """Replace the trace's own facts by these."""
    labels = trace.labels
    if facts.classes:
        labels = replace(labels or Labels(), expected=_classes.decode(facts.classes))
    return replace(
        trace,
        expected=_expected.decode(facts.expected) if facts.expected else trace.expected,
        relevance=_relevance.decode(facts.relevance) if facts.relevance else trace.relevance,
        labels=labels,
    )


def enriched_message(
    trace: Trace, position: MessagePosition, facts: Facts, topic: str, judges: Sequence[str] = ()
) -> Message:
    """Make the message for `topic` that replaces the one at `position`; `judges` score it on request.

    Without a fact it is for them alone.
    """
    place = (position.topic, position.partition, position.offset, timestamp_of(position.version))
    headers = enrichment_headers(*place, facts.revision, judges, only_judges=not facts.join)
    return Message(topic, trace.trace_id.encode(), _encode(enrich(trace, facts)), headers)
