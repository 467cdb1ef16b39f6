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
    """Question, contexts and answer."""

    question: str | None
    answer: str | None
    contexts: tuple[Chunk, ...] | None


METRICS = (
    Metric("question_words", high=inf, optional=True, unit="words", description="words of the question"),
    Metric("answer_words", high=inf, optional=True, unit="words", description="words of the answer"),
    Metric("contexts", high=inf, optional=True, unit="chunks", description="number of retrieved chunks"),
    Metric(
        "context_words", high=inf, optional=True, unit="words", description="words of all chunks with recorded text"
    ),
)


@evaluator(
    "inputs",
    version=1,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Inputs,
    params=NoParams,
    metrics=METRICS,
    budget=Budget(characters=10_000_000),
)
def inputs(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Size of question, contexts and answer in words and characters, number of contexts, and the languages of question
    and answer as categories. There are no thresholds: these metrics are for baselines and drift detection. Words are
    separated by white space.
    """
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
    return Scored(metrics, categories, parts) if metrics else NotApplicable("nothing_recorded")


def _words(text: str) -> int:
    """Count the words of `text.split()` without holding all words of a long text at once."""
    count = 0
    for start in range(0, len(text), PIECE):
        count += len(text[start : start + PIECE].split())
        if start and not text[start - 1].isspace() and not text[start].isspace():
            count -= 1  # one word in two pieces
    return count
