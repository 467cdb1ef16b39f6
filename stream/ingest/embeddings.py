"""Make the rows of `embeddings`: one per trace, a tombstone if its question has no vector.

So a newer message without a question takes the vector of an older one out, as it takes its place in other tables.
A question with a vector is placed in a topic where its application has a topic model.
"""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from ragtide.drift.topics import TOPIC, TopicModel
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.rows import EmbeddingRow
from ragtide.stream.ingest.embed_texts import embed_texts
from ragtide.stream.ingest.rows import TraceContext

MAX_CHARACTERS = 500_000  # characters of a question, as many as the evaluators that embed take
_NONE = array("f")


@dataclass(slots=True)
class QuestionEmbeddings:
    """Rows in the order of the traces, and counts of questions without vector: `too_long` or `encoder_failed`."""

    rows: list[EmbeddingRow] = field(default_factory=list)
    without_vector: Counter[str] = field(default_factory=Counter)


def embed_questions(
    ctxs: Sequence[TraceContext], shared: Batch, revision: str, models: Mapping[str, TopicModel]
) -> QuestionEmbeddings:
    """Embed the questions of a micro-batch with the encoder `revision`, with one call for those not cached.

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
    """Add the topic as a segment to the traces; a trace with its own segment of that name keeps it."""
    return [
        replace(ctx, trace=replace(ctx.trace, segments={TOPIC: row.topic, **ctx.trace.segments})) if row.topic else ctx
        for ctx, row in zip(ctxs, rows, strict=True)
    ]


def round_to_bfloat16(vectors: Vectors) -> Vectors:
    """Round each number to 8 significant bits, ties to even: the precision of bfloat16, and half the disk.

    Cosines of unit vectors move by less than 0.001.
    """
    bits = vectors.view(np.uint32)
    nearest = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return (nearest & np.uint32(0xFFFF0000)).view(np.float32)


def _topics(
    ctxs: Sequence[TraceContext], vectors: Mapping[str, Sequence[float]], models: Mapping[str, TopicModel]
) -> dict[tuple[str, str], str]:
    """Topics by application and question, from the vectors as stored: every reader gets the same topics."""
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
    """Vectors by question, as stored."""
    found = embed_texts(questions, shared)
    if not found:
        return {}
    every = round_to_bfloat16(np.stack(list(found.values())))
    return {question: array("f", vector.tobytes()) for question, vector in zip(found, every, strict=True)}
