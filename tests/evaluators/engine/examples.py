"""Small evaluators to drive the engine with, and traces for them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, prepare
from ragtide.evaluators.resources import Batch, Resources
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Budget, Evaluator, Metric, Need, Shared, evaluator
from ragtide.evaluators.trace import Chunk, Trace


@dataclass(frozen=True, slots=True)
class Answer:
    answer: str


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    contexts: tuple[Chunk, ...]


class Limit(BaseModel, frozen=True, extra="forbid"):
    limit: int = Field(default=10, ge=1, le=1000, description="Words of a full score.")


@evaluator(
    "brevity",
    version=1,
    domain="generation",
    method="rule",
    inputs=Answer,
    params=Limit,
    metrics=[Metric("brevity", threshold=0.5, primary=True)],
)
def brevity(rows: Sequence[Answer], shared: Shared, params: Limit) -> Iterator[Outcome]:
    """One word scores 1, `limit` words or more 0."""
    for row in rows:
        words = len(row.answer.split())
        yield Scored({"brevity": max(0.0, 1 - (words - 1) / params.limit)}) if words else NotApplicable("empty")


def _asked_texts(row: Asked, shared: Shared, params: BaseModel) -> Iterator[str]:
    yield row.question
    for chunk in row.contexts:
        yield chunk.text or ""


@evaluator(
    "nearness",
    version=3,
    domain="retrieval",
    method="embedding",
    inputs=Asked,
    metrics=[Metric("nearness", low=-1.0, threshold=0.5, primary=True)],
    needs={Need.EMBEDDING},
    embeds=_asked_texts,
    tasks=("question_answering", "extraction"),
)
def nearness(rows: Sequence[Asked], shared: Shared, params: BaseModel) -> Iterator[Outcome]:
    """Mean cosine similarity of question and chunks."""
    for row in rows:
        if not row.contexts:
            yield NotApplicable("empty_contexts")
            continue
        question, *chunks = shared.embed(list(_asked_texts(row, shared, params)))
        mean = float(sum(min(1.0, float(question @ chunk)) for chunk in chunks) / len(chunks))
        yield Scored({"nearness": max(-1.0, mean)})


def scoring(
    score: Callable[[Sequence[Answer]], Iterable[Any]],
    metrics: Sequence[Metric] = (Metric("value", primary=True),),
    budget: Budget | None = None,
) -> Evaluator:
    """An evaluator "custom" of the answer whose function is `score`."""

    def custom(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterable[Outcome]:
        """Given by a test."""
        return score(rows)

    return evaluator(
        "custom", version=1, domain="generation", method="rule", inputs=Answer, metrics=metrics, budget=budget
    )(custom)


def ready(*evaluators: Evaluator, resources: Resources | None = None) -> tuple[PreparedEvaluator, ...]:
    """The evaluators prepared with default settings."""
    encoder = resources.encoder if resources else None
    return prepare({e.id: e for e in evaluators}, EvaluatorSettings(), None, encoder).prepared


def batch() -> Batch:
    return Resources().batch()


def trace(i: int = 0, answer: str | None = "an answer", **fields: Any) -> Trace:
    return Trace(trace_id=f"t{i}", time=datetime(2026, 1, 1, tzinfo=UTC), app="app", answer=answer, **fields)


def asked(i: int, question: str, *chunks: str) -> Trace:
    return trace(i, question=question, contexts=tuple(Chunk(id=f"c{n}", text=text) for n, text in enumerate(chunks)))
