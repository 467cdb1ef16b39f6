import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.outcome import NotApplicable
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import outcome, scored

# Hugging Face's evaluate (a7dd338).
HUGGING_FACE = {
    "paraphrase": 58.84920634920635,
    "identical": 100.0,
    "disjoint": 46.547619047619044,
    "short": 41.550925925925924,
    "sentences": 44.8984348984349,
}


def sari(question: str, answer: str, *expected: str) -> float:
    return scored("sari", question=question, answer=answer, expected=expected).metrics["sari"]


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_equals_hugging_face(name: str) -> None:
    pair = PAIRS[name]
    assert sari(pair.source, pair.answer, pair.reference) == pytest.approx(HUGGING_FACE[name], abs=1e-9)


def test_equals_the_published_example() -> None:
    given = sari(
        "About 95 species are currently accepted .",
        "About 95 you now get in .",
        "About 95 species are currently known .",
        "About 95 species are now accepted .",
        "95 species are now accepted .",
    )
    assert given == pytest.approx(26.953601953601954, abs=1e-9)


def test_an_empty_answer_is_hugging_faces() -> None:
    """One empty token, as `"".split(" ")` gives there: nothing is kept, and what is added is wrong."""
    source = "About 95 species are currently accepted."
    assert sari(source, "", "About 95 species are accepted.") == pytest.approx(15.218253968253967, abs=1e-9)
    assert sari("a b", "", "a") == pytest.approx(79.16666666666666, abs=1e-9)


def test_a_blank_reference_is_left_out() -> None:
    """Hugging Face counts it, and gives 67.15277777777779."""
    texts = ("About 95 species are currently accepted.", "95 species are accepted.", "About 95 species are accepted.")
    assert sari(*texts, " ") == sari(*texts) == pytest.approx(75.82972582972583, abs=1e-9)


def test_hand_worked() -> None:
    # Single tokens: source a b, answer a c, references a c and a d.
    # Kept: a, 2 of 2 in the references; to keep is a. Deleted: b, rightly. Added: c, one of the c and d to add.
    # Pairs: source a-b, answer a-c, references a-c and a-d: nothing kept and nothing to keep, which is 1; a-b deleted;
    # a-c added, of a-c and a-d. Longer runs: nothing anywhere, which is 1 throughout.
    given = scored("sari", question="a b", answer="a c", expected=("a c", "a d"))
    added = 2 * 1 * 0.5 / (1 + 0.5)
    assert given.parts == {"kept": 1.0, "added": pytest.approx((added + added + 1 + 1) / 4), "deleted": 1.0}
    assert given.metrics["sari"] == pytest.approx(100 * (2 + (added + 1) / 2) / 3)


DISTINCT = st.lists(st.sampled_from("abcdef"), min_size=1, unique=True).map(" ".join)


@given(DISTINCT, DISTINCT)
def test_the_wanted_answer_is_the_best(source: str, wanted: str) -> None:
    assert sari(source, wanted, wanted) == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("question", "expected", "reason"),
    [("", ("a",), "empty_question"), ("a", (), "empty_expected"), ("a", ("",), "reference_without_words")],
)
def test_without_source_or_reference_there_is_no_score(question: str, expected: tuple[str, ...], reason: str) -> None:
    assert outcome("sari", question=question, answer="a", expected=expected) == NotApplicable(reason)
