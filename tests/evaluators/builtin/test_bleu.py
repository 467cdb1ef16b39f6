from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import exp
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ragtide.evaluators.outcome import NotApplicable
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import outcome, scored

ORDERS = (1, 2, 3, 4)
# Hugging Face's evaluate (a7dd338), tokenizer_13a: BLEU-1 to BLEU-4 with smoothing, then without.
HUGGING_FACE = {
    "paraphrase": (
        (0.758518162281409, 0.6853271541184209, 0.5882671606296717, 0.5154486831107657),
        (0.7430381997858699, 0.6552980970848462, 0.5300277142349968, 0.42383656282787796),
    ),
    "identical": ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
    "disjoint": (
        (0.2418519213973183, 0.18471745612895352, 0.17942700998037595, 0.1869843520537038),
        (0.141080287481769, 0.0, 0.0, 0.0),
    ),
    "short": (
        (0.1353352832366127, 0.1353352832366127, 0.1353352832366127, 0.1353352832366127),
        (0.1353352832366127, 0.1353352832366127, 0.0, 0.0),
    ),
    "sentences": (
        (0.6207085198026818, 0.4976739896042623, 0.41399506464540586, 0.3584892329815312),
        (0.5985403583811576, 0.4629664590938787, 0.3681340683822938, 0.30315070099566327),
    ),
    "unicode": ((0.2, 0.223606797749979, 0.25543647746451775, 0.3021375397356768), (0.0, 0.0, 0.0, 0.0)),
    "cjk": ((1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0, 0.0)),
    "word": ((1.0, 1.0, 1.0, 1.0), (1.0, 0.0, 0.0, 0.0)),
    "case": ((0.4, 0.316227766016838, 0.32182979486854335, 0.35930411196308426), (0.25, 0.0, 0.0, 0.0)),
}


def bleu(answer: str, *expected: str, smooth: bool) -> list[float]:
    metrics = scored("bleu", {"smooth": smooth}, answer=answer, expected=expected).metrics
    return [metrics[f"bleu_{order}"] for order in ORDERS]


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_equals_hugging_face(name: str) -> None:
    pair, (smooth, plain) = PAIRS[name], HUGGING_FACE[name]
    assert bleu(pair.answer, pair.reference, smooth=True) == pytest.approx(smooth, abs=1e-12)
    assert bleu(pair.answer, pair.reference, smooth=False) == pytest.approx(plain, abs=1e-12)


WORDS = st.lists(st.sampled_from(["a", "b", "c", "The", "dog", "runs.", "$5", "1,5", "Été"]), min_size=1, max_size=25)
REFERENCES = st.lists(WORDS, min_size=1, max_size=3)


@cache
def sacrebleu(order: int) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(smooth_method="none", max_ngram_order=order)


@settings(deadline=None)
@given(WORDS, REFERENCES)
def test_equals_sacrebleu_without_smoothing(answer: list[str], references: list[list[str]]) -> None:
    ours, texts = " ".join(answer), [" ".join(reference) for reference in references]
    theirs = [sacrebleu(order).sentence_score(ours, texts).score / 100 for order in ORDERS]
    assert bleu(ours, *texts, smooth=False) == pytest.approx(theirs, abs=1e-9)


def one_more(precisions: Sequence[Fraction], **_: Any) -> list[Fraction]:
    """NLTK has no smoothing that adds one at the first order too; a Fraction of its own keeps its denominator."""
    return [
        Fraction(precision.numerator + 1, precision.denominator + 1)  # of NLTK's unreduced fractions
        for precision in precisions
    ]


@settings(deadline=None)
@given(WORDS, REFERENCES)
@example(["a", "b", "c"], [["a", "b"], ["a", "b", "c", "c"]])  # as near in length: the shorter counts
def test_equals_nltk_with_one_added(answer: list[str], references: list[list[str]]) -> None:
    from nltk.translate.bleu_score import sentence_bleu

    from ragtide.evaluators.text.tokenisers import mteval

    ours, texts = " ".join(answer), [" ".join(reference) for reference in references]
    tokens, theirs = mteval(ours), [mteval(text) for text in texts]
    assume(len(tokens) >= max(ORDERS))  # NLTK counts one n-gram of an order that the answer has none of
    assume(any(token in reference for token in tokens for reference in theirs))  # where there is none it gives 0
    weights = [tuple(1 / order for _ in range(order)) for order in ORDERS]
    expected = sentence_bleu(theirs, tokens, weights, smoothing_function=one_more)
    assert bleu(ours, *texts, smooth=True) == pytest.approx(expected, abs=1e-12)


def test_hand_worked() -> None:
    # Tokens: a b c d, of which the references hold a (both), b (once) and c. Pairs: a-b. Nearest length is 3.
    given = scored("bleu", {"smooth": False, "max_order": 2}, answer="a b c d", expected=("a b a", "c a b b d d d"))
    assert given.parts == {"precision_1": 1.0, "precision_2": pytest.approx(1 / 3)}
    assert given.metrics == {"bleu_1": pytest.approx(1.0), "bleu_2": pytest.approx((1 / 3) ** 0.5)}


def test_an_answer_shorter_than_its_reference_pays() -> None:
    assert bleu("a b", "a b c", smooth=True)[0] == pytest.approx(exp(1 - 3 / 2))


def test_an_empty_answer_shares_nothing() -> None:
    assert bleu("", "Paris.", smooth=True) == [0.0] * 4


@pytest.mark.parametrize(("expected", "reason"), [((), "empty_expected"), ((" ",), "reference_without_words")])
def test_without_a_reference_there_is_no_score(expected: tuple[str, ...], reason: str) -> None:
    assert outcome("bleu", answer="a", expected=expected) == NotApplicable(reason)
