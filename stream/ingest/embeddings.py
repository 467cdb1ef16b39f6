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

from ragtide.drift.topics.model import SEGMENT, TopicModel
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.rows import EmbeddingRow
from ragtide.stream.ingest.embed_texts import embed_texts
from ragtide.stream.ingest.rows import TraceContext

MAX_CHARACTERS = 500_000  # characters of a question, as many as the evaluators that embed take
_NONE = array("f")


@dataclass(slots=True)
class QuestionEmbeddings:
    """Rows in the order of the traces, and why questions have no vector: `too_long` or `encoder_failed`."""

    rows: list[EmbeddingRow] = field(default_factory=list)
    without_vector: Counter[str] = field(default_factory=Counter)


def embed_questions(
    ctxs: Sequence[TraceContext], shared: Batch, revision: str, models: Mapping[str, TopicModel]
) -> QuestionEmbeddings:
    """The questions of a micro-batch as vectors of the encoder `revision`, with one call for those not known yet.

    A question is never cut. Where there is none, or no vector to be had of it, the row is a tombstone. `models` are the
    topic models of this encoder, by application.
    """
    result = QuestionEmbeddings()
    questions = dict.fromkeys(ctx.trace.question for ctx in ctxs)
    vectors = _vectors([text for text in questions if text and text.strip() and len(text) <= MAX_CHARACTERS], shared)
    topics = _topics(ctxs, vectors, models)
    for ctx in ctxs:
        trace, question = ctx.trace, ctx.trace.question or ""
        vector = vectors.get(question, _NONE)
        topic = topics.get((trace.app, question), "")
        if not vector and question.strip():
            result.without_vector["too_long" if len(question) > MAX_CHARACTERS else "encoder_failed"] += 1
        result.rows.append(
            EmbeddingRow(
                ctx.run_id,
                trace.app,
                trace.environment,
                trace.time,
                trace.trace_id,
                ctx.version,
                revision,
                vector,
                topic,
                models[trace.app].version if topic else 0,
                is_deleted=0 if vector else 1,
            )
        )
    return result


def with_topics(ctxs: Sequence[TraceContext], rows: Sequence[EmbeddingRow]) -> list[TraceContext]:
    """The traces with their topic as a segment; one that came with a segment of that name keeps its own."""
    return [
        replace(ctx, trace=replace(ctx.trace, segments={SEGMENT: row.topic, **ctx.trace.segments}))
        if row.topic
        else ctx
        for ctx, row in zip(ctxs, rows, strict=True)
    ]


def round_to_bfloat16(vectors: Vectors) -> Vectors:
    """Each number as the nearest with 8 significant bits, ties to even: what bfloat16 keeps, and half the disk.

    Cosines of unit vectors move by less than 0.001.
    """
    bits = vectors.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (nearest & np.uint32(0xFFFF0000)).view(np.float32)


def _topics(
    ctxs: Sequence[TraceContext], vectors: Mapping[str, Sequence[float]], models: Mapping[str, TopicModel]
) -> dict[tuple[str, str], str]:
    """By application and question, of the vectors as they are stored: whoever reads them places them alike."""
    questions: dict[str, dict[str, Sequence[float]]] = {}
    for ctx in ctxs:
        app, question = ctx.trace.app, ctx.trace.question or ""
        if app in models and question in vectors:
            questions.setdefault(app, {})[question] = vectors[question]
    return {
        (app, question): name
        for app, own in questions.items()
        for question, name in zip(own, models[app].assign(np.array(list(own.values()), np.float32)), strict=True)
    }


def _vectors(questions: Sequence[str], shared: Batch) -> Mapping[str, Sequence[float]]:
    """The vector of each question that has one, as it is stored."""
    found = embed_texts(questions, shared)
    if not found:
        return {}
    every = round_to_bfloat16(np.stack(list(found.values())))
    return {question: array("f", vector.tobytes()) for question, vector in zip(found, every, strict=True)}
