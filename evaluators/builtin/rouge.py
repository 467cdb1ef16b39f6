import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from pydantic import BaseModel, Field

from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Metric, Shared, evaluator
from ragtide.evaluators.text.ngrams import common, intersection
from ragtide.evaluators.text.overlap import Overlap, overlap
from ragtide.evaluators.text.porter import stem
from ragtide.evaluators.text.references import no_reference
from ragtide.evaluators.text.subsequence import lcs_length, lcs_positions

RougeType = Literal["rouge_1", "rouge_2", "rouge_l", "rouge_lsum"]
ALL: tuple[RougeType, ...] = ("rouge_1", "rouge_2", "rouge_l", "rouge_lsum")
TOKEN = re.compile("[a-z0-9]+")
# An exact longest common subsequence is quadratic: 10,000 by 10,000 tokens take about 10 ms, all pairs of lines about
# 100 ns per token and line.
MAX_CELLS = 100_000_000
MAX_LINE_STEPS = 1_000_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer and its references."""

    answer: str
    expected: tuple[str, ...]


class Params(BaseModel, frozen=True, extra="forbid"):
    """Tokens, and the scores to compute."""

    use_stemmer: bool = Field(False, description="Compare Porter stems of words with more than three letters.")
    rouge_types: tuple[RougeType, ...] = Field(ALL, min_length=1, description="ROUGE scores to compute.")


class Text(NamedTuple):
    """Tokens of a text: ASCII letters and digits. `lines` are the sentences of ROUGE-Lsum.

    `legible` is False if most letters are not ASCII: the tokens then leave out most of the text.
    """

    tokens: list[str]
    lines: list[tuple[str, ...]]  # tuples: the garbage collector passes over those of many thousand lines
    words: Counter[str]
    pairs: Counter[tuple[str, str]]
    legible: bool


def _metric(key: RougeType, description: str) -> Metric:
    described = f"F1 of {description}; absent if not in rouge_types"
    return Metric(key, threshold=0.75, primary=key == "rouge_l", optional=True, description=described)


METRICS = (
    _metric("rouge_1", "single words"),
    _metric("rouge_2", "word pairs"),
    _metric("rouge_l", "the longest common subsequence"),
    _metric("rouge_lsum", "the union of the lines' longest common subsequences"),
)


@evaluator(
    "rouge",
    version=2,
    domain="summarization",
    method="ngram",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=METRICS,
)
def rouge(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """F1 of ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum against the best reference. The parts are precision and recall.
    ROUGE-Lsum takes lines as sentences. Tokens are those of rouge_score, ASCII letters and digits: texts with mostly
    other letters cannot be compared, by a few digits in them least of all.
    """
    tokenise = read_stems if params.use_stemmer else read
    answer = shared.once(tokenise, row.answer)
    references = [text for text in (shared.once(tokenise, text) for text in row.expected) if text.tokens]
    references = [reference for reference in references if reference.legible]
    if not references:
        return no_reference(row.expected)  # a reference in another script has no tokens: 0 would be invented
    if not answer.legible:
        return NotApplicable("answer_in_other_script")
    if _too_long(answer, references, params.rouge_types):
        return NotApplicable("too_long")
    metrics: dict[str, float] = {}
    parts: dict[str, float] = {}
    for key in params.rouge_types:
        best = max((OVERLAPS[key](answer, reference) for reference in references), key=lambda each: each.f1)
        metrics[key] = best.f1
        parts[f"{key}_precision"] = best.precision
        parts[f"{key}_recall"] = best.recall
    return Scored(metrics, parts=parts)


def read(text: str) -> Text:
    """Tokenise as rouge_score 0.1.2 does."""
    lines = [tuple(tokens) for tokens in map(TOKEN.findall, text.lower().split("\n")) if tokens]
    return _text(lines, legible=_is_legible(text))


def read_stems(text: str) -> Text:
    """Tokenise as rouge_score does with use_stemmer: tokens of more than three letters become stems."""
    plain = read(text)
    lines = [tuple(stem(token) if len(token) > 3 else token for token in line) for line in plain.lines]
    return _text(lines, legible=plain.legible)


def _text(lines: list[tuple[str, ...]], legible: bool) -> Text:
    tokens = [token for line in lines for token in line]
    return Text(tokens, lines, Counter(tokens), Counter(pairwise(tokens)), legible)


def _is_legible(text: str) -> bool:
    """Whether at least half of the letters are ASCII."""
    if text.isascii():
        return True
    letters = "".join(filter(str.isalpha, text))
    return 2 * len(letters.encode("ascii", "ignore")) >= len(letters)


def _too_long(answer: Text, references: Sequence[Text], types: Sequence[RougeType]) -> bool:
    cells = steps = 0
    for reference in references:
        cells += len(answer.tokens) * len(reference.tokens)
        steps += len(answer.tokens) * len(reference.lines) + len(reference.tokens) * len(answer.lines)
    return ("rouge_l" in types and cells > MAX_CELLS) or (
        "rouge_lsum" in types and (cells > MAX_CELLS or steps > MAX_LINE_STEPS)
    )


def _single_words(answer: Text, reference: Text) -> Overlap:
    hits = common(answer.words, reference.words)
    return overlap(hits, len(answer.tokens), len(reference.tokens))


def _word_pairs(answer: Text, reference: Text) -> Overlap:
    hits = common(answer.pairs, reference.pairs)
    return overlap(hits, len(answer.tokens) - 1, len(reference.tokens) - 1)


def _longest(answer: Text, reference: Text) -> Overlap:
    return overlap(lcs_length(answer.tokens, reference.tokens), len(answer.tokens), len(reference.tokens))


def _longest_of_lines(answer: Text, reference: Text) -> Overlap:
    """ROUGE-Lsum (Lin 2004, section 3.2). Each token counts as often as it is in both texts, as in ROUGE-1.5.5."""
    if len(answer.lines) == 1 and len(reference.lines) == 1:
        return _longest(answer, reference)  # the same number
    left = intersection(answer.words, reference.words)
    vocabularies = [(line, frozenset(line)) for line in answer.lines]
    hits = 0
    for line in reference.lines:
        matched: set[int] = set()
        for other, words in vocabularies:
            if not words.isdisjoint(line):
                matched.update(lcs_positions(line, other))
        for position in sorted(matched):
            token = line[position]
            if left[token]:
                left[token] -= 1
                hits += 1
    return overlap(hits, len(answer.tokens), len(reference.tokens))


OVERLAPS: dict[RougeType, Callable[[Text, Text], Overlap]] = {
    "rouge_1": _single_words,
    "rouge_2": _word_pairs,
    "rouge_l": _longest,
    "rouge_lsum": _longest_of_lines,
}
