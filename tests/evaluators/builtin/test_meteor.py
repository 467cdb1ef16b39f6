from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.outcome import NotApplicable
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import outcome, scored

# NLTK 3.10.4, NLTKWordTokenizer, without WordNet: alpha, beta, gamma and the value of each pair.
NLTK: dict[tuple[float, float, float], dict[str, float]] = {
    (0.9, 3.0, 0.5): {
        "paraphrase": 0.7454289732770746,
        "identical": 0.9985422740524781,
        "disjoint": 0.07246376811594203,
        "short": 0.33482142857142855,
        "sentences": 0.6964028776978417,
        "unicode": 0.0,
        "cjk": 0.5,
        "empty": 0.0,
        "word": 0.5,
        "case": 0.8522727272727273,
    },
    (0.5, 3.0, 0.5): {
        "paraphrase": 0.7851851851851851,
        "identical": 0.9985422740524781,
        "disjoint": 0.07692307692307691,
        "short": 0.46875,
        "sentences": 0.717037037037037,
        "unicode": 0.0,
        "cjk": 0.5,
        "empty": 0.0,
        "word": 0.5,
        "case": 0.625,
    },
    (0.9, 1.0, 0.5): {
        "paraphrase": 0.6329113924050633,
        "identical": 0.9285714285714286,
        "disjoint": 0.07246376811594203,
        "short": 0.2678571428571428,
        "sentences": 0.5755395683453237,
        "unicode": 0.0,
        "cjk": 0.5,
        "empty": 0.0,
        "word": 0.5,
        "case": 0.6818181818181818,
    },
    (0.9, 3.0, 0.2): {
        "paraphrase": 0.7538677918424754,
        "identical": 0.9994169096209913,
        "disjoint": 0.11594202898550726,
        "short": 0.34821428571428564,
        "sentences": 0.7102158273381295,
        "unicode": 0.0,
        "cjk": 0.8,
        "empty": 0.0,
        "word": 0.8,
        "case": 0.8863636363636364,
    },
    (0.85, 0.2, 0.6): {
        "paraphrase": 0.3961949525685566,
        "identical": 0.5934334519597114,
        "disjoint": 0.058394160583941604,
        "short": 0.17691468963789833,
        "sentences": 0.36134879101723916,
        "unicode": 0.0,
        "cjk": 0.4,
        "empty": 0.0,
        "word": 0.4,
        "case": 0.4153649234976744,
    },
}


def meteor(answer: str, *expected: str, **params: float) -> float:
    return scored("meteor", params, answer=answer, expected=expected).metrics["meteor"]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("weights", NLTK)
def test_equals_nltk_without_wordnet(weights: tuple[float, float, float], name: str) -> None:
    alpha, beta, gamma = weights
    given = meteor(PAIRS[name].answer, PAIRS[name].reference, alpha=alpha, beta=beta, gamma=gamma)
    assert given == pytest.approx(NLTK[weights][name], abs=1e-9)


class NoWordNet:
    """What NLTK asks of a WordNet, with no word in it."""

    def synsets(self, word: str) -> list[Any]:
        return []


WORDS = st.lists(
    st.sampled_from(
        ["a", "b", "The", "the", "run", "runs", "running", "flies", "fly", "it's", "don't", "x.", "Été", ","]
    ),
    max_size=25,
).map(" ".join)


@settings(deadline=None)
@given(WORDS, st.lists(WORDS.filter(str.strip), min_size=1, max_size=3))
def test_equals_nltk_on_anything(answer: str, references: list[str]) -> None:
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.translate.meteor_score import meteor_score

    tokens = NLTKWordTokenizer().tokenize
    theirs = meteor_score([tokens(text) for text in references], tokens(answer), wordnet=NoWordNet())
    assert meteor(answer, *references) == pytest.approx(theirs, abs=1e-12)


def test_hand_worked() -> None:
    # the, cat and mat. are equal, "sitting" has the stem of "sits": 4 of 5 and of 4 tokens, in two pieces.
    given = meteor("the cat sits here mat", "the cat sitting mat")
    precision, recall = 4 / 5, 4 / 4
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    assert given == pytest.approx((1 - 0.5 * (2 / 4) ** 3) * mean)


def test_the_best_reference_counts() -> None:
    assert meteor("the cat sat", "dogs bark", "the cat sat") == meteor("the cat sat", "the cat sat") > 0.9


def test_the_result_says_that_synonyms_were_not_matched() -> None:
    assert scored("meteor", answer="a", expected=("a",)).categories == {"synonyms": "none"}


@pytest.mark.parametrize(("expected", "reason"), [((), "empty_expected"), ((" ",), "reference_without_words")])
def test_without_a_reference_there_is_no_score(expected: tuple[str, ...], reason: str) -> None:
    assert outcome("meteor", answer="a", expected=expected) == NotApplicable(reason)
