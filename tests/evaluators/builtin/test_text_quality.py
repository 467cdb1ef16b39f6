import pytest

from ragtide.evaluators.outcome import NotApplicable
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import outcome, scored

# f1_score of SuperGLUE's ReCoRD, as Hugging Face's evaluate (a7dd338) carries it.
RECORD = {
    "paraphrase": 0.6666666666666665,
    "identical": 1.0,
    "disjoint": 0.0,
    "short": 0.5714285714285715,
    "sentences": 0.47619047619047616,
    "unicode": 0.0,
    "cjk": 1.0,
    "empty": 0.0,
    "word": 1.0,
    "case": 1.0,
}


@pytest.mark.parametrize("name", RECORD)
def test_equals_record(name: str) -> None:
    given = scored("text_quality", answer=PAIRS[name].answer, expected=(PAIRS[name].reference,))
    assert given.metrics["f1"] == pytest.approx(RECORD[name], abs=1e-12)


def test_hand_worked() -> None:
    # "cat cat sat" of which cat and sat are in "cat sat down now".
    given = scored("text_quality", answer="The cat, a cat sat!", expected=("Cat sat down; now.",))
    assert given.metrics == {
        "f1": pytest.approx(2 * (2 / 3) * (2 / 4) / (2 / 3 + 2 / 4)),
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 4),
    }


def test_the_reference_with_the_best_f1_counts() -> None:
    given = scored("text_quality", answer="one two", expected=("one", "one two three four five", "three"))
    assert given.metrics == {"f1": pytest.approx(2 / 3), "precision": 0.5, "recall": 1.0}


@pytest.mark.parametrize(("expected", "reason"), [((), "empty_expected"), (("The!", ""), "reference_without_words")])
def test_without_a_reference_there_is_no_score(expected: tuple[str, ...], reason: str) -> None:
    assert outcome("text_quality", answer="the", expected=expected) == NotApplicable(reason)
