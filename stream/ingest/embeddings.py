"""Questions become vectors, rows of `embeddings`. Of every trace one row: that it has no vector is a row as well.

So a newer message without a question takes the vector of an older one out, as it takes its place in other tables.
A question with a vector is placed in a topic where its application has a topic model.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from drift.topics.model import SEGMENT, TopicModel
from evaluators.resources import Batch
from evaluators.spec import Vectors
from sinks.rows import EmbeddingRow
from stream.ingest.encoding import encoded
from stream.ingest.rows import Placed

LONGEST = 500_000  # characters of a question, as many as the evaluators that embed take
_NONE = array("f")


@dataclass(slots=True)
class Embedded:
    """Rows in the order of the traces, and why questions have no vector: `too_long` or `encoder_failed`."""

    rows: list[EmbeddingRow] = field(default_factory=list)
    without: Counter[str] = field(default_factory=Counter)


def embedded(places: Sequence[Placed], shared: Batch, revision: str, models: Mapping[str, TopicModel]) -> Embedded:
    """The questions of a micro-batch as vectors of the encoder `revision`, with one call for those not known yet.

    A question is never cut. Where there is none, or no vector to be had of it, the row is a tombstone. `models` are the
    topic models of this encoder, by application.
    """
    made = Embedded()
    asked = dict.fromkeys(place.trace.question for place in places)
    vectors = _vectors([text for text in asked if text and text.strip() and len(text) <= LONGEST], shared)
    topics = _topics(places, vectors, models)
    for place in places:
        trace, question = place.trace, place.trace.question or ""
        vector = vectors.get(question, _NONE)
        topic = topics.get((trace.app, question), "")
        if not vector and question.strip():
            made.without["too_long" if len(question) > LONGEST else "encoder_failed"] += 1
        made.rows.append(
            EmbeddingRow(
                place.run_id,
                trace.app,
                trace.environment,
                trace.time,
                trace.trace_id,
                place.version,
                revision,
                vector,
                topic,
                models[trace.app].version if topic else 0,
                is_deleted=0 if vector else 1,
            )
        )
    return made


def in_topics(places: Sequence[Placed], rows: Sequence[EmbeddingRow]) -> list[Placed]:
    """The traces with their topic as a segment; one that came with a segment of that name keeps its own."""
    return [
        replace(place, trace=replace(place.trace, segments={SEGMENT: row.topic, **place.trace.segments}))
        if row.topic
        else place
        for place, row in zip(places, rows, strict=True)
    ]


def rounded(vectors: Vectors) -> Vectors:
    """Each number as the nearest with 8 significant bits, ties to even: what bfloat16 keeps, and half the disk.

    Cosines of unit vectors move by less than 0.001.
    """
    bits = vectors.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (nearest & np.uint32(0xFFFF0000)).view(np.float32)


def _topics(
    places: Sequence[Placed], vectors: Mapping[str, Sequence[float]], models: Mapping[str, TopicModel]
) -> dict[tuple[str, str], str]:
    """By application and question, of the vectors as they are stored: whoever reads them places them alike."""
    asked: dict[str, dict[str, Sequence[float]]] = {}
    for place in places:
        app, question = place.trace.app, place.trace.question or ""
        if app in models and question in vectors:
            asked.setdefault(app, {})[question] = vectors[question]
    return {
        (app, question): name
        for app, own in asked.items()
        for question, name in zip(own, models[app].names(np.array(list(own.values()), np.float32)), strict=True)
    }


def _vectors(questions: Sequence[str], shared: Batch) -> Mapping[str, Sequence[float]]:
    """The vector of each question that has one, as it is stored."""
    found = encoded(questions, shared)
    if not found:
        return {}
    every = rounded(np.stack(list(found.values())))
    return {question: array("f", vector.tobytes()) for question, vector in zip(found, every, strict=True)}
