from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.text.fragments import TokenLetters, fragments, tokens_to_letters
from ragtide.evaluators.text.recorded_chunks import recorded_texts
from ragtide.evaluators.text.tokenisers import lower_case_words
from ragtide.evaluators.trace import Chunk

FEW = 1_000_000  # letters read to look for n-grams in the source one by one; beyond, its own n-grams are gathered
CELLS = 400_000_000  # tokens of the answer x tokens of the source: at worst some 0.6 s


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it was made from."""

    answer: str
    contexts: tuple[Chunk, ...] | None
    question: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """What is compared."""

    ngram: int = Field(3, ge=1, le=10, description="Tokens of an n-gram of abstractness and repetitiveness.")


METRICS = (
    Metric("coverage", primary=True, optional=True, description="share of the answer's tokens inside copied fragments"),
    Metric(
        "density",
        high=inf,
        better="lower",
        optional=True,
        description="squared lengths of the copied fragments / tokens of the answer",
    ),
    Metric("compression", high=inf, optional=True, description="tokens of the source / tokens of the answer"),
    Metric(
        "abstractness",
        better="lower",
        optional=True,
        description="share of the answer's distinct n-grams that the source lacks; absent where it has none",
    ),
    Metric(
        "repetitiveness",
        better="lower",
        optional=True,
        description="share of the answer's distinct n-grams that occur twice or more; absent where it has none",
    ),
)


@evaluator(
    "content_analysis",
    version=1,
    domain="summarization",
    method="ngram",
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    tasks=("summarization",),
    budget=Budget(characters=2_000_000),
)
def content_analysis(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """How the answer was made from the contexts (from the question where there are none): coverage, density and
    compression by extractive fragments (Grusky 2018), abstractness and repetitiveness by distinct n-grams, as SummEval
    counts them. Tokens are lower-case pieces between blanks; nothing reaches over the end of a chunk.
    """
    for row in rows:
        yield _content(row, shared, params)


def _content(row: Inputs, shared: Shared, params: Params) -> Outcome:
    answer = shared.once(lower_case_words, row.answer)
    if not answer:
        return NotApplicable("empty_answer")
    texts = recorded_texts(row.contexts) or (() if row.question is None else (row.question,))
    sources = [shared.once(lower_case_words, text) for text in texts]
    size = sum(map(len, sources))
    if len(answer) * size > CELLS:
        return NotApplicable("too_long")
    pair = tokens_to_letters(answer, sources)
    metrics = _copy_metrics(pair, size / len(answer)) if size else {}
    metrics |= _by_ngrams(pair, params.ngram, bool(size))
    return Scored(metrics) if metrics else NotApplicable("nothing_to_compare")


def _copy_metrics(pair: TokenLetters, compression: float) -> dict[str, float]:
    lengths = fragments(pair.text, pair.source)
    return {
        "coverage": sum(lengths) / len(pair.text),
        "density": sum(length * length for length in lengths) / len(pair.text),
        "compression": compression,
    }


def _by_ngrams(pair: TokenLetters, order: int, has_source: bool) -> dict[str, float]:
    counts = Counter(_ngrams(pair.text, order))
    if not counts:
        return {}
    metrics = {"repetitiveness": sum(count > 1 for count in counts.values()) / len(counts)}
    if has_source:
        known = pair.source if len(counts) * len(pair.source) <= FEW else frozenset(_ngrams(pair.source, order))
        metrics["abstractness"] = sum(ngram not in known for ngram in counts) / len(counts)
    return metrics


def _ngrams(letters: str, order: int) -> Iterator[str]:
    return (letters[start : start + order] for start in range(len(letters) - order + 1))
