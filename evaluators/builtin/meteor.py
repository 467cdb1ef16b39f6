from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from pydantic import BaseModel, Field, field_validator

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Shared, evaluator
from ragtide.evaluators.text.porter import stem
from ragtide.evaluators.text.references import no_reference
from ragtide.evaluators.text.synonyms import synonyms, what_is_missing
from ragtide.evaluators.text.tokenisers import treebank

MAX_STEPS = 1_000_000  # tokens of the answer x references: about 0.5 s
MAX_LOOKUPS = 20_000  # tokens of an answer whose synonyms are looked up, each about 50 µs
Match = tuple[int, int]  # places of a token in the answer and in the reference
Form = tuple[int, str]  # a place, and the token or the stem there
Stems = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """The weights of Lavie and Agarwal (2007), section 2."""

    alpha: float = Field(0.9, gt=0, lt=1, description="Weight of recall against precision.")
    beta: float = Field(3.0, ge=0, description="Exponent of the fragmentation penalty.")
    gamma: float = Field(0.5, ge=0, le=1, description="Maximum fragmentation penalty.")
    synonyms: bool = Field(False, description="Also match synonyms. Requires NLTK and its WordNet data.")

    @field_validator("synonyms")
    @classmethod
    def _is_installed(cls, wanted: bool) -> bool:
        missing = what_is_missing() if wanted else None
        if missing:
            raise ValueError(missing)
        return wanted


METRICS = (
    Metric(
        "meteor",
        primary=True,
        description="weighted harmonic mean of precision and recall, times 1 - fragmentation penalty",
    ),
)


@evaluator(
    "meteor",
    version=2,
    domain="summarization",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
    budget=Budget(characters=500_000),
)
def meteor(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """METEOR of the answer against its best reference, with the parameters alpha, beta and gamma. It matches equal
    tokens, then equal Porter stems, each from the end of the text, as NLTK 3.10 does. Tokens with an apostrophe beside
    a combining mark are those of NLTK 3.9. With `synonyms` it also matches synonyms of WordNet; the category `synonyms`
    is none or wordnet. An answer equal to its reference scores below 1 (0.5 for one word) because of METEOR's penalty.
    """
    answer = shared.once(treebank, row.answer)
    references = [tokens for tokens in (shared.once(treebank, text) for text in row.expected) if tokens]
    if not references:
        return no_reference(row.expected)
    if len(answer) * len(references) > MAX_STEPS or (params.synonyms and len(answer) > MAX_LOOKUPS):
        return NotApplicable("too_long")
    stems = cache(stem)  # per record: each token is stemmed once for all references
    best = max(_score(answer, reference, params, stems) for reference in references)
    return Scored({"meteor": best}, categories={"synonyms": "wordnet" if params.synonyms else "none"})


def _score(answer: Sequence[str], reference: Sequence[str], params: Params, stems: Stems) -> float:
    matches = _align(answer, reference, params.synonyms, stems)
    if not matches:
        return 0.0
    precision, recall = len(matches) / len(answer), len(matches) / len(reference)
    mean = precision * recall / (params.alpha * precision + (1 - params.alpha) * recall)
    pieces = 1 + sum(one[0] + 1 != next[0] or one[1] + 1 != next[1] for one, next in pairwise(matches))
    penalty: float = params.gamma * (pieces / len(matches)) ** params.beta
    return (1 - penalty) * mean


def _align(answer: Sequence[str], reference: Sequence[str], use_synonyms: bool, stems: Stems) -> list[Match]:
    """Match tokens of the answer with tokens of the reference, in the order of the answer."""
    equal = _match(list(enumerate(answer)), enumerate(reference))
    left, right = _unmatched_stems(equal, answer, reference, stems)
    found = equal + _match(left, right)
    if use_synonyms:
        left, right = _unmatched_stems(found, answer, reference, stems)
        found += _match_synonyms(left, right)
    return sorted(found)


def _unmatched_stems(
    found: Sequence[Match], answer: Sequence[str], reference: Sequence[str], stems: Stems
) -> tuple[list[Form], list[Form]]:
    """Return the stems of unmatched tokens. NLTK looks up synonyms of stems, too, not of words."""
    matched, matched_in_reference = {match[0] for match in found}, {match[1] for match in found}
    left = [(place, stems(token)) for place, token in enumerate(answer) if place not in matched]
    right = [(place, stems(token)) for place, token in enumerate(reference) if place not in matched_in_reference]
    return left, right


def _match(answer: Sequence[Form], reference: Iterable[Form]) -> list[Match]:
    """Pairs of equal forms, the last of the answer with the last of the reference."""
    places = _places(reference)
    return [(place, places[form].pop()) for place, form in reversed(answer) if places.get(form)]


def _match_synonyms(answer: Sequence[Form], reference: Iterable[Form]) -> list[Match]:
    """Pairs of synonyms, the last of the answer with the last of the reference that is one."""
    places = _places(reference)
    found = []
    for place, form in reversed(answer):
        candidates = [each for each in synonyms(form) if places.get(each)]
        if candidates:
            found.append((place, places[max(candidates, key=lambda each: places[each][-1])].pop()))
    return found


def _places(forms: Iterable[Form]) -> defaultdict[str, list[int]]:
    places = defaultdict[str, list[int]](list)
    for place, form in forms:
        places[form].append(place)
    return places
