import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.fragments import fragments, tokens_to_letters
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import chunks, outcome, scored

# Newsroom's Fragments as SummEval (81b59ad) carries it, on pieces between blanks: coverage, density, compression.
NEWSROOM = {
    "paraphrase": (0.8333333333333334, 1.1666666666666667, 1.8333333333333333),
    "identical": (0.6666666666666666, 1.0, 1.6666666666666667),
    "disjoint": (0.0, 0.0, 2.0),
    "short": (1.0, 2.0, 5.0),
    "sentences": (0.7272727272727273, 1.2727272727272727, 1.6363636363636365),
}
# SummEval's data_stats_metric: shares of novel and of repeated n-grams of order 1, 2 and 3, distinct ones counted.
SUMMEVAL: dict[str, tuple[tuple[float, float] | None, ...]] = {
    "paraphrase": ((0.2, 0.2), (0.8, 0.0), (1.0, 0.0)),
    "identical": ((0.3333333333333333, 0.0), (0.8, 0.0), (1.0, 0.0)),
    "disjoint": ((1.0, 0.0), (1.0, 0.0), (1.0, 0.0)),
    "short": ((0.0, 0.0), (0.0, 0.0), None),
    "sentences": (
        (0.3333333333333333, 0.1111111111111111),
        (0.7777777777777778, 0.1111111111111111),
        (0.8888888888888888, 0.0),
    ),
}


@pytest.mark.parametrize("name", NEWSROOM)
def test_fragments_equal_newsrooms(name: str) -> None:
    given = scored("content_analysis", answer=PAIRS[name].answer, question=PAIRS[name].source).metrics
    assert (given["coverage"], given["density"], given["compression"]) == pytest.approx(NEWSROOM[name], abs=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", SUMMEVAL)
def test_ngrams_equal_summevals(name: str, order: int) -> None:
    given = scored("content_analysis", {"ngram": order}, answer=PAIRS[name].answer, question=PAIRS[name].source).metrics
    expected = SUMMEVAL[name][order - 1]
    if expected is None:
        assert given.keys() == {"coverage", "density", "compression"}
    else:
        assert (given["abstractness"], given["repetitiveness"]) == pytest.approx(expected, abs=1e-12)


def plainly(text: str, source: str) -> list[int]:
    """The greedy fragments as they are defined, in cubic time."""
    lengths, start = [], 0
    while start < len(text):
        longest = max(size for size in range(len(text) - start + 1) if text[start : start + size] in source)
        lengths += [longest] if longest else []
        start += max(longest, 1)
    return lengths


@given(st.text("abc", max_size=40), st.text("abcd", max_size=40))
def test_fragments_are_the_longest_from_left_to_right(text: str, source: str) -> None:
    assert fragments(text, source) == plainly(text, source)


def test_a_fragment_ends_with_its_chunk() -> None:
    pair = tokens_to_letters(["a", "b", "c", "d"], [["x", "a", "b"], ["c", "d", "a"]])
    assert fragments(pair.text, pair.source) == [2, 2]
    given = scored("content_analysis", {"ngram": 2}, answer="A b c d", contexts=chunks("x a b", None, "c d a"))
    assert given.metrics == {
        "coverage": 1.0,
        "density": (2 * 2 + 2 * 2) / 4,
        "compression": 6 / 4,
        "abstractness": pytest.approx(1 / 3),  # b c
        "repetitiveness": 0.0,
    }


def test_the_question_is_the_source_where_no_context_is_known() -> None:
    for contexts in (None, (), chunks(None)):
        given = scored("content_analysis", answer="a b", contexts=contexts, question="a c")
        assert given.metrics["coverage"] == 0.5
    given = scored("content_analysis", answer="a b", contexts=chunks("x"), question="a c")
    assert given.metrics["coverage"] == 0.0


def test_repetitions_need_no_source() -> None:
    given = scored("content_analysis", {"ngram": 1}, answer="a b a c")
    assert given.metrics == {"repetitiveness": pytest.approx(1 / 3)}


@pytest.mark.parametrize(
    ("answer", "reason"), [(" ", "empty_answer"), ("a b", "nothing_to_compare"), ("a " * 20_000, "too_long")]
)
def test_what_cannot_be_told_is_no_score(answer: str, reason: str) -> None:
    contexts = chunks("a b " * 20_000) if reason == "too_long" else None
    assert outcome("content_analysis", answer=answer, contexts=contexts) == NotApplicable(reason)


def test_gathering_the_sources_ngrams_gives_what_looking_for_each_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    answer, contexts = "a b c d e f a b x", chunks("a b c", "d e f a", "b x")
    one_by_one = scored("content_analysis", answer=answer, contexts=contexts)
    monkeypatch.setattr("ragtide.evaluators.builtin.content_analysis.MAX_SEARCHED", 0)
    assert scored("content_analysis", answer=answer, contexts=contexts) == one_by_one
