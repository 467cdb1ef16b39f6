from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, NoParams, Shared, evaluator
from ragtide.evaluators.text.languages import language_of
from ragtide.evaluators.text.recorded_chunks import recorded_texts
from ragtide.evaluators.trace import Chunk

PIECE = 50_000  # characters


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything users and the retriever sent in, and the answer."""

    question: str | None
    answer: str | None
    contexts: tuple[Chunk, ...] | None


METRICS = (
    Metric("question_words", high=inf, optional=True, unit="words", description="separated by white space"),
    Metric("answer_words", high=inf, optional=True, unit="words", description="separated by white space"),
    Metric("contexts", high=inf, optional=True, unit="chunks", description="how many chunks were retrieved"),
    Metric("context_words", high=inf, optional=True, unit="words", description="over all chunks whose text is known"),
)


@evaluator(
    "inputs",
    version=1,
    domain="generation",
    method="rule",
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    budget=Budget(characters=10_000_000),
)
def inputs(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """Size and make of question, contexts and answer: words and characters, number of contexts, language of question
    and answer as categories. Nothing is judged; baselines and drift rules watch it.
    """
    for row in rows:
        metrics: dict[str, float] = {}
        parts: dict[str, float] = {}
        categories: dict[str, str] = {}
        for name, text in (("question", row.question), ("answer", row.answer)):
            if text is not None:
                metrics[f"{name}_words"] = float(shared.once(_words, text))
                parts[f"{name}_characters"] = float(len(text))
                categories[f"{name}_language"] = language_of(text)
        if row.contexts is not None:
            metrics["contexts"] = float(len(row.contexts))
        texts = recorded_texts(row.contexts)
        if texts is not None:
            metrics["context_words"] = float(sum(shared.once(_words, text) for text in texts))
            parts["context_characters"] = float(sum(map(len, texts)))
        yield Scored(metrics, categories, parts) if metrics else NotApplicable("nothing_recorded")


def _words(text: str) -> int:
    """As many as `text.split()` gives, without holding those of a long text at once."""
    count = 0
    for start in range(0, len(text), PIECE):
        count += len(text[start : start + PIECE].split())
        if start and not text[start - 1].isspace() and not text[start].isspace():
            count -= 1  # one word in two pieces
    return count
