from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.text.fragments import TokenLetters, fragments, tokens_to_letters
from ragtide.evaluators.text.recorded_chunks import recorded_texts
from ragtide.evaluators.text.tokenisers import lower_case_words
from ragtide.evaluators.trace import Chunk

MAX_SEARCHED = (
    1_000_000  # letters read to search the source for n-grams one by one; beyond, it collects those of the source
)
MAX_CELLS = 400_000_000  # tokens of the answer x tokens of the source: at worst about 0.6 s


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its sources."""

    answer: str
    contexts: tuple[Chunk, ...] | None
    question: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """Length of the n-grams."""

    ngram: int = Field(3, ge=1, le=10, description="Tokens in an n-gram, for abstractness and repetitiveness.")


METRICS = (
    Metric("coverage", primary=True, optional=True, description="share of the answer's tokens in copied fragments"),
    Metric(
        "density",
        high=inf,
        better="lower",
        optional=True,
        description="sum of squared lengths of copied fragments / tokens of the answer",
    ),
    Metric("compression", high=inf, optional=True, description="tokens of the source / tokens of the answer"),
    Metric(
        "abstractness",
        better="lower",
        optional=True,
        description="share of the answer's distinct n-grams that are not in the source; absent if it has no n-grams",
    ),
    Metric(
        "repetitiveness",
        better="lower",
        optional=True,
        description="share of the answer's distinct n-grams that occur more than once; absent if it has no n-grams",
    ),
)


@evaluator(
    "content_analysis",
    version=1,
    domain="summarization",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    tasks=("summarization",),
    budget=Budget(characters=2_000_000),
)
def content_analysis(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """How the answer summarises the contexts, or the question if there are no contexts. Coverage, density and
    compression use extractive fragments (Grusky 2018). Abstractness and repetitiveness use distinct n-grams, as in
    SummEval. Tokens are lower-case words between white space. No fragment or n-gram spans two chunks.
    """
    answer = shared.once(lower_case_words, row.answer)
    if not answer:
        return NotApplicable("empty_answer")
    texts = recorded_texts(row.contexts) or (() if row.question is None else (row.question,))
    sources = [shared.once(lower_case_words, text) for text in texts]
    size = sum(map(len, sources))
    if len(answer) * size > MAX_CELLS:
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
        known = (
            pair.source if len(counts) * len(pair.source) <= MAX_SEARCHED else frozenset(_ngrams(pair.source, order))
        )
        metrics["abstractness"] = sum(ngram not in known for ngram in counts) / len(counts)
    return metrics


def _ngrams(letters: str, order: int) -> Iterator[str]:
    return (letters[start : start + order] for start in range(len(letters) - order + 1))
