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
# sentence_bleu of sacrebleu 2.6.0, BLEU-1 to BLEU-4: with exponential smoothing, then without.
SACREBLEU: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "paraphrase": (
        (0.7430381997858698, 0.6552980970848461, 0.5300277142349967, 0.42383656282787785),
        (0.7430381997858698, 0.6552980970848461, 0.5300277142349967, 0.42383656282787785),
    ),
    "identical": ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
    "disjoint": (
        (0.141080287481769, 0.10928032077900922, 0.08580788060576847, 0.06870636427700047),
        (0.141080287481769, 0.0, 0.0, 0.0),
    ),
    "short": (
        (0.13533528323661276, 0.13533528323661276, 0.13533528323661276, 0.13533528323661276),
        (0.13533528323661276, 0.13533528323661276, 0.13533528323661276, 0.13533528323661276),
    ),
    "sentences": (
        (0.5985403583811575, 0.4629664590938787, 0.3681340683822937, 0.3031507009956632),
        (0.5985403583811575, 0.4629664590938787, 0.3681340683822937, 0.3031507009956632),
    ),
    "unicode": ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    "cjk": ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
    "empty": ((0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
    "word": ((1.0, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0)),
    "case": (
        (0.24999999999999997, 0.20412414523193145, 0.1733403185876586, 0.1597357760615681),
        (0.24999999999999997, 0.0, 0.0, 0.0),
    ),
}


def bleu(answer: str, *expected: str, smooth: bool) -> list[float]:
    metrics = scored("bleu", {"smooth": smooth}, answer=answer, expected=expected).metrics
    return [metrics[f"bleu_{order}"] for order in ORDERS]


@pytest.mark.parametrize("name", PAIRS)
def test_equals_sacrebleu_on_fixed_texts(name: str) -> None:
    pair, (smooth, plain) = PAIRS[name], SACREBLEU[name]
    assert bleu(pair.answer, pair.reference, smooth=True) == pytest.approx(smooth, abs=1e-12)
    assert bleu(pair.answer, pair.reference, smooth=False) == pytest.approx(plain, abs=1e-12)


WORDS = st.lists(st.sampled_from(["a", "b", "c", "The", "dog", "runs.", "$5", "1,5", "Été"]), min_size=1, max_size=25)
REFERENCES = st.lists(WORDS, min_size=1, max_size=3)


@cache
def sacrebleu(order: int, method: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(smooth_method=method, max_ngram_order=order, effective_order=True)


@settings(deadline=None)
@given(WORDS, REFERENCES, st.booleans())
@example(["a", "b", "c"], [["a", "b"], ["a", "b", "c", "c"]], True)  # as near in length: the shorter counts
def test_equals_sacrebleu(answer: list[str], references: list[list[str]], smooth: bool) -> None:
    ours, texts = " ".join(answer), [" ".join(reference) for reference in references]
    method = "exp" if smooth else "none"
    theirs = [sacrebleu(order, method).sentence_score(ours, texts).score / 100 for order in ORDERS]
    assert bleu(ours, *texts, smooth=smooth) == pytest.approx(theirs, abs=1e-9)


@settings(deadline=None)
@given(WORDS, REFERENCES)
def test_equals_nltk_with_its_geometric_smoothing(answer: list[str], references: list[list[str]]) -> None:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    from ragtide.evaluators.text.tokenisers import mteval

    ours, texts = " ".join(answer), [" ".join(reference) for reference in references]
    tokens, theirs = mteval(ours), [mteval(text) for text in texts]
    assume(len(tokens) >= max(ORDERS))  # NLTK counts orders longer than the answer
    weights = [tuple(1 / order for _ in range(order)) for order in ORDERS]
    expected = sentence_bleu(theirs, tokens, weights, smoothing_function=SmoothingFunction().method3)
    assert bleu(ours, *texts, smooth=True) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize(("answer", "expected"), [("No", "Yes"), ("Paris", "Rome"), ("1912", "1914"), ("No no", "Yes")])
def test_a_wrong_short_answer_scores_zero(answer: str, expected: str, smooth: bool) -> None:
    assert bleu(answer, expected, smooth=smooth) == [0.0] * 4


def test_orders_longer_than_the_answer_do_not_count() -> None:
    given = scored("bleu", answer="New York", expected=("New York",))
    assert given.metrics == {f"bleu_{order}": 1.0 for order in ORDERS}
    assert given.parts == {"precision_1": 1.0, "precision_2": 1.0}
    # One of two words, half a match of one pair: BLEU-2 is the root of 1/2 x 1/2, and so are the longer ones.
    assert bleu("New Jersey", "New York", smooth=True) == pytest.approx([0.5, 0.5, 0.5, 0.5])


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
