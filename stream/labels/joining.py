"""A trace with what is known of it by now, as the message that goes through the lanes again. Pure."""

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
    """The newest of each fact about a trace, as JSON (empty: none), and how many labels told any: the revision."""

    revision: int
    expected: str
    relevance: str
    classes: str


class Place(NamedTuple):
    """Where the message lay that a stored trace is from, and the version of its rows."""

    topic: str
    partition: int
    offset: int
    version: int


class Message(NamedTuple):
    """To be sent."""

    topic: str
    key: bytes
    value: bytes
    headers: list[Header]


def enriched(trace: Trace, facts: Facts) -> Trace:
    """With these facts in the place of its own."""
    labels = trace.labels
    if facts.classes:
        labels = replace(labels or Labels(), expected=_classes.decode(facts.classes))
    return replace(
        trace,
        expected=_expected.decode(facts.expected) if facts.expected else trace.expected,
        relevance=_relevance.decode(facts.relevance) if facts.relevance else trace.relevance,
        labels=labels,
    )


def message(trace: Trace, place: Place, facts: Facts, topic: str) -> Message:
    """What takes the place of the message that lay there, sent to `topic`."""
    told = enrichment_headers(place.topic, place.partition, place.offset, timestamp_of(place.version), facts.revision)
    return Message(topic, trace.trace_id.encode(), _encode(enriched(trace, facts)), told)
