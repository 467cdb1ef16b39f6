"""Reciprocal rank and retrieval ranking: rank metrics against trec_eval and scikit-learn, grades by hand."""

from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.evaluators.outcome import Evidence, NotApplicable, Scored
from ragtide.evaluators.text.ranks import average_precision, ndcg, reciprocal_rank, retrieval_precision
from tests.evaluators.builtin.angles import Angles, cosine
from tests.evaluators.builtin.scoring import chunks, outcome, outcomes, scored, trace

CLOSE = 1e-9
# pytrec-eval-terrier 0.5.11 (map, recip_rank, ndcg) on grades in rank order, all that is relevant among them.
TREC = [
    ((1, 0, 0, 1), 0.75, 1.0, 0.8772153153380493, 0.5),
    ((0, 1, 0, 1), 0.5, 0.5, 0.6509209298071326, 0.5),
    ((0, 0, 0, 0), 0.0, 0.0, 0.0, 0.0),
    ((3, 2, 0, 1), 0.9166666666666666, 1.0, 0.9854419388428785, 0.75),
    ((1, 1, 1, 1), 1.0, 1.0, 1.0, 1.0),
]


@pytest.mark.parametrize(("grades", "precision", "rank", "gain", "share"), TREC)
def test_equals_trec_eval(grades: tuple[float, ...], precision: float, rank: float, gain: float, share: float) -> None:
    relevant = [grade > 0 for grade in grades]
    assert average_precision(relevant) == pytest.approx(precision, abs=CLOSE)
    assert reciprocal_rank(relevant) == rank
    assert ndcg(grades) == pytest.approx(gain, abs=CLOSE)
    assert retrieval_precision(relevant) == share


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=30))
def test_equals_scikit_learn(grades: list[float]) -> None:
    from sklearn.metrics import average_precision_score, ndcg_score

    order = [list(range(len(grades), 0, -1))]
    expected = ndcg_score([grades], order) if any(grades) else 0.0
    assert ndcg(grades) == pytest.approx(expected, abs=CLOSE)
    relevant = [grade > 0.5 for grade in grades]
    expected = average_precision_score(relevant, order[0]) if any(relevant) else 0.0
    assert average_precision(relevant) == pytest.approx(expected, abs=CLOSE)


def test_the_largest_grades_have_a_ratio() -> None:
    assert ndcg([0.0, 1e308, 1e308]) == pytest.approx(ndcg([0, 1, 1]))
    assert ndcg([5e-324]) == 1.0


ANGLES = {"Why?": 0.0, "Right.": 10.0, "Near it.": 40.0, "Nearly.": 48.0, "Off.": 60.0, "Away.": 90.0}
NEAR = "Away. Right."  # its best sentence counts


def angles() -> Angles:
    return Angles(ANGLES)


@pytest.mark.parametrize(
    ("texts", "params", "score"),
    [
        ((NEAR, "Off."), {}, 1.0),
        (("Off.", NEAR), {}, 1 / 2),
        (("", NEAR), {}, 1 / 2),  # an empty chunk holds its rank
        (("Off.", "Near it.", NEAR), {}, 1 / 2),  # cos 40 is 0.77
        (("Off.", "Near it.", NEAR), {"relevant_chunk_threshold": 0.8}, 1 / 3),
        (("Off.", "Away."), {}, 0.0),
        ((*["Off."] * 9, NEAR), {}, 1 / 10),
        ((*["Off."] * 10, NEAR), {}, 0.0),
        (("Off.", NEAR), {"max_rank": 1}, 0.0),
        ((NEAR, None), {}, 1.0),
    ],
)
def test_reciprocal_rank_is_of_the_first_relevant_chunk(
    texts: tuple[str | None, ...], params: dict[str, Any], score: float
) -> None:
    given = scored("context_mrr", params, encoder=angles(), question="Why?", contexts=chunks(*texts))
    assert given.metrics == {"reciprocal_rank": score}


def test_reciprocal_rank_points_at_the_sentence_that_decided() -> None:
    given = scored("context_mrr", encoder=angles(), question="Why?", contexts=chunks("Off.", NEAR))
    [place] = given.evidence
    assert (place.chunk_id, place.start, place.end, place.kind) == ("c2", 6, 12, "first_relevant")
    assert place.score == pytest.approx(cosine(10), abs=1e-6)
    given = scored("context_mrr", encoder=angles(), question="Why?", contexts=chunks("Away.", "Off."))
    assert [(place.chunk_id, place.kind) for place in given.evidence] == [("c2", "most_relevant")]


def test_a_chunk_without_text_may_be_the_first_relevant_one() -> None:
    contexts = chunks("Off.", None, NEAR)
    given = outcome("context_mrr", encoder=angles(), question="Why?", contexts=contexts)
    assert given == NotApplicable("missing_chunk_text")
    given = outcome("retrieval_ranking", encoder=angles(), question="Why?", contexts=contexts)
    assert given == NotApplicable("missing_chunk_text")


def test_ranking_by_the_question_takes_the_best_sentence_of_each_chunk_as_its_grade() -> None:
    given = scored(
        "retrieval_ranking", encoder=angles(), question="Why?", contexts=chunks("Off.", NEAR, "", "Near it.")
    )
    grades = [cosine(60), cosine(10), 0.0, cosine(40)]
    assert given.metrics == {
        "retrieval_precision": 0.5,
        "average_precision": pytest.approx((1 / 2 + 2 / 4) / 2),
        "reciprocal_rank": 0.5,
        "hit_rate": 1.0,
        "ndcg": pytest.approx(ndcg(grades), abs=1e-6),
    }
    assert [(place.chunk_id, place.start, place.kind) for place in given.evidence] == [
        ("c1", 0, "most_relevant"),
        ("c2", 6, "most_relevant"),
        ("c4", 0, "most_relevant"),
    ]


def test_where_nothing_is_relevant_ranking_is_0_whatever_the_order() -> None:
    given = scored("retrieval_ranking", encoder=angles(), question="Why?", contexts=chunks("Off.", "Nearly.", "Away."))
    assert set(given.metrics.values()) == {0.0}
    lower = {"relevant_chunk_threshold": 0.65}
    given = scored("retrieval_ranking", lower, encoder=angles(), question="Why?", contexts=chunks("Off.", "Nearly."))
    assert given.metrics["reciprocal_rank"] == 0.5


def test_recorded_grades_decide_and_nothing_is_embedded() -> None:
    encoder = angles()
    contexts = chunks("Right.", None, "Off.", "Away.")
    given = scored(
        "retrieval_ranking",
        encoder=encoder,
        question="",
        contexts=contexts,
        relevance={"c1": 3.0, "c2": 2, "c4": 1, "z": 9, "c3": -1.0},
    )
    assert encoder.calls == []
    assert given.metrics == {
        "retrieval_precision": 0.75,
        "average_precision": pytest.approx(TREC[3][1], abs=CLOSE),
        "reciprocal_rank": 1.0,
        "hit_rate": 1.0,
        "ndcg": pytest.approx(TREC[3][3], abs=CLOSE),
    }
    assert given.evidence[0] == Evidence("contexts", 0, 6, "c1", kind="graded", score=3.0)
    assert [place.score for place in given.evidence] == [3.0, 0.0, 1.0]


def test_one_batch_takes_graded_and_other_traces() -> None:
    encoder = angles()
    graded = trace(question="Why?", contexts=chunks("Off.", "Right."), relevance={})
    asked = trace(question="Why?", contexts=chunks("Right."))
    given = outcomes("retrieval_ranking", [graded, asked], encoder=encoder)
    assert [set(one.metrics.values()) for one in given if isinstance(one, Scored)] == [{0.0}, {1.0}]
    assert sorted(encoder.calls[0]) == ["Right.", "Why?"]
    assert len(encoder.calls) == 1


@pytest.mark.parametrize("grade", [nan, inf, -inf])
def test_a_grade_that_is_no_number_is_none(grade: float) -> None:
    given = outcome("retrieval_ranking", question="Why?", contexts=chunks("Off."), relevance={"c1": 1.0, "x": grade})
    assert given == NotApplicable("relevance_not_finite")


@pytest.mark.parametrize("id", ["context_mrr", "retrieval_ranking"])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": "Why?", "contexts": chunks("", " 1. ")}, "empty_contexts"),
        ({"question": "Why?", "contexts": chunks(None, None)}, "missing_contexts"),
        ({"question": " ", "contexts": chunks("Off.")}, "empty_question"),
        ({"question": " ", "contexts": ()}, "empty_question"),
        ({"contexts": chunks("Off.")}, "missing_question"),
        ({"question": "Why?"}, "missing_contexts"),
        ({"question": "Why?", "contexts": chunks("It is. " * 3_000)}, "too_long"),
    ],
)
def test_what_cannot_be_ranked_is_not_a_number(id: str, fields: dict[str, Any], reason: str) -> None:
    assert outcome(id, **fields) == NotApplicable(reason)


@pytest.mark.parametrize("id", ["context_mrr", "retrieval_ranking", "context_relevancy_soft"])
def test_a_retrieval_that_found_nothing_is_the_worst_and_one_not_recorded_is_none(id: str) -> None:
    """trec_eval -c counts a query without results so."""
    given = scored(id, question="Why?", contexts=())
    assert set(given.metrics.values()) == {0.0}
    assert given.evidence == ()
    assert outcome(id, question="Why?", contexts=None) == NotApplicable("missing_contexts")


@pytest.mark.parametrize("relevance", [{}, {"c1": 1.0}])
def test_grades_of_chunks_that_were_not_retrieved_give_zero(relevance: dict[str, float]) -> None:
    given = scored("retrieval_ranking", question="Why?", contexts=(), relevance=relevance)
    assert given.metrics == dict.fromkeys(given.metrics, 0.0)
    assert len(given.metrics) == 5


@pytest.mark.parametrize("id", ["groundedness", "faithfulness_nli", "hallucination"])
def test_without_chunks_an_answer_has_no_support_to_measure(id: str) -> None:
    assert outcome(id, question="Why?", answer="It is so.", contexts=()) == NotApplicable("empty_contexts")
