from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic import BaseModel, Field

from evaluators.outcome import NotApplicable, Outcome, Scored
from evaluators.porter import stem
from evaluators.spec import Budget, Metric, Shared, evaluator
from evaluators.tokenisers import treebank

STEPS = 1_000_000  # tokens of the answer x references: some 0.5 s
Match = tuple[int, int]  # places of a token in the answer and in the reference


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and what it should have been."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """The weights of Lavie and Agarwal (2007), section 2."""

    alpha: float = Field(0.9, gt=0, lt=1, description="Weight of recall against precision.")
    beta: float = Field(3.0, ge=0, description="Exponent of the penalty for matches in pieces.")
    gamma: float = Field(0.5, ge=0, le=1, description="Greatest penalty for matches in pieces.")


METRICS = (
    Metric("meteor", primary=True, description="mean of precision and recall, less where matches are in pieces"),
)


@evaluator(
    "meteor",
    version=1,
    domain="summarization",
    method="ngram",
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=500_000),
)
def meteor(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """METEOR of the answer against the best of the references, with the parameters alpha, beta and gamma. Equal tokens
    are matched, then equal Porter stems, each from the text's end, as NLTK 3.10 does; synonyms are not, which the
    category `synonyms` says. An answer equal to its reference is not 1 (0.5 for one word): that is METEOR's penalty.
    """
    for row in rows:
        yield _meteor(row, shared, params)


def _meteor(row: Inputs, shared: Shared, params: Params) -> Outcome:
    answer = shared.once(treebank, row.answer)
    references = [tokens for tokens in (shared.once(treebank, text) for text in row.expected) if tokens]
    if not references:
        return NotApplicable("reference_without_words" if row.expected else "empty_expected")
    if len(answer) * len(references) > STEPS:
        return NotApplicable("too_long")
    best = max(_score(answer, reference, params) for reference in references)
    return Scored({"meteor": best}, categories={"synonyms": "none"})


def _score(answer: Sequence[str], reference: Sequence[str], params: Params) -> float:
    matches = _aligned(answer, reference)
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(answer), len(matches) / len(reference)
    mean = precision * recall / (params.alpha * precision + (1 - params.alpha) * recall)
    pieces = 1 + sum(one[0] + 1 != next[0] or one[1] + 1 != next[1] for one, next in pairwise(matches))
    penalty: float = params.gamma * (pieces / len(matches)) ** params.beta
    return (1 - penalty) * mean


def _aligned(answer: Sequence[str], reference: Sequence[str]) -> list[Match]:
    """Which token of the answer is which of the reference, in the order of the answer."""
    equal = _matched(list(enumerate(answer)), enumerate(reference))
    met, meant = {match[0] for match in equal}, {match[1] for match in equal}
    left = [(place, stem(token)) for place, token in enumerate(answer) if place not in met]
    right = [(place, stem(token)) for place, token in enumerate(reference) if place not in meant]
    return sorted(equal + _matched(left, right))


def _matched(answer: Sequence[tuple[int, str]], reference: Iterable[tuple[int, str]]) -> list[Match]:
    """Pairs of equal forms, the last of the answer with the last of the reference."""
    places = defaultdict[str, list[int]](list)
    for place, form in reference:
        places[form].append(place)
    return [(place, places[form].pop()) for place, form in reversed(answer) if places.get(form)]
