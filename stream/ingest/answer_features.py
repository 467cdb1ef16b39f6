"""Features of answers that make answers to one question comparable: a vector, and hashes of claims."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice

import numpy as np

from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.claims.reading import claims_of
from ragtide.evaluators.claims.stance import stance_of
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Batch
from ragtide.evaluators.runtime.memory_chunks import memory_chunks
from ragtide.evaluators.spec import SHARED, Sentence, Vectors
from ragtide.evaluators.trace import Trace
from ragtide.sinks.rows import EmbeddingRow
from ragtide.stream.ingest.embed_texts import embed_texts
from ragtide.stream.ingest.question_hash import QuestionHash
from ragtide.stream.ingest.rows import TraceContext
from ragtide.stream.ingest.sampling import is_sampled

MAX_CLAIMS = 64  # of an answer, at most
MAX_CHARACTERS = 500_000  # characters of an answer; one that is longer, or of more sentences, has no vector
MAX_SENTENCES = 2_000
_DIGITS = 8  # 32 bits, of the few values that the answers to one question state
_MAX_INT8 = 127
_NONE = array("b")


@dataclass(frozen=True, slots=True)
class AnswerColumns:
    """Fills the columns `answer` and `answer_claims` of `embeddings`, if the settings ask for it.

    Encodes only answers whose sentences an evaluator embeds too: they cost no call of the encoder. Which these
    are is told by base rates: sampling rules and always-judge rules may make it a few more or less.
    """

    compare_by_default: bool  # for apps without a setting
    apps: Mapping[str, bool]
    rate: float  # of traces whose answers are encoded
    hash_text: QuestionHash

    @classmethod
    def of(
        cls, rules: RuleSettings, plan: Iterable[tuple[PreparedEvaluator, float]], hash_text: QuestionHash
    ) -> "AnswerColumns":
        """Make it from the settings; off if questions have no hash. `plan`: each evaluator with its sampling rate."""
        known = bool(hash_text("any"))
        return cls(
            known and rules.compare_answers,
            {app: known and rules.of(app).compare_answers for app in rules.apps},
            max((rate for prepared, rate in plan if _embeds_answers(prepared)), default=0.0),
            hash_text,
        )

    def fill(self, rows: Sequence[EmbeddingRow], ctxs: Sequence[TraceContext], shared: Batch) -> list[EmbeddingRow]:
        """Fill the rows of these traces, in order. A row without a vector of the question stays as it is."""
        compared = [not row.is_deleted and self.apps.get(row.app, self.compare_by_default) for row in rows]
        in_sample = [yes and is_sampled(row.trace_id, self.rate) for row, yes in zip(rows, compared, strict=True)]
        answers = [ctx.trace.answer or "" if yes else "" for ctx, yes in zip(ctxs, in_sample, strict=True)]
        vectors = dict(_answer_vectors(list(dict.fromkeys(answers)), shared))
        return [
            row._replace(
                answer=vectors.get(answer, _NONE), answer_claims=_claim_hashes(ctx.trace, shared, self.hash_text)
            )
            if yes
            else row
            for row, ctx, answer, yes in zip(rows, ctxs, answers, compared, strict=True)
        ]


def direction(vector: Vectors) -> Sequence[int]:
    """Scale the vector to integers with a maximum of 127 or -127; empty for a vector of length 0."""
    greatest = np.abs(vector).max()
    return array("b", np.rint(vector * (_MAX_INT8 / greatest)).astype(np.int8).tobytes()) if greatest else _NONE


def _embeds_answers(prepared: PreparedEvaluator) -> bool:
    evaluator = prepared.evaluator
    reads = {field.name for field in fields(evaluator.inputs)}
    return evaluator.embeds is not None and prepared.encoder == SHARED and "answer" in reads


def _claim_hashes(trace: Trace, shared: Batch, hash_text: QuestionHash) -> list[str]:
    question, answer = trace.question or "", trace.answer or ""
    stated: list[tuple[str, str]] = sorted(shared.once(claims_of, answer) - shared.once(claims_of, question))
    if stance := stance_of(question, next((one.text for one in _sentences(answer, shared)), "")):
        stated.insert(0, ("stance", stance))
    return [f"{kind}:{hash_text(f'{kind} {value}')[:_DIGITS]}" for kind, value in islice(stated, MAX_CLAIMS)]


def _answer_vectors(answers: Sequence[str], shared: Batch) -> Iterator[tuple[str, Sequence[int]]]:
    """Vectors of answers whose sentences all have one, with one call of the encoder for as many as fit into memory."""
    texts = [[one.text for one in _sentences(answer, shared)] for answer in answers]
    sizes = [{text: shared.size_of_text(text) for text in some if len(some) <= MAX_SENTENCES} for some in texts]
    for portion in memory_chunks(sizes, shared.most_bytes):
        shared.make_room_for_vectors(portion.size_bytes)
        vectors = embed_texts(portion.keys, shared)
        for at in portion.traces:
            if sizes[at] and all(text in vectors for text in sizes[at]):
                yield answers[at], direction(np.mean([vectors[text] for text in texts[at]], axis=0))


def _sentences(answer: str, shared: Batch) -> Sequence[Sentence]:
    return shared.sentences(answer) if len(answer) <= MAX_CHARACTERS else ()
