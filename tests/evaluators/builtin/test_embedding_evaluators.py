"""Groundedness and the two relevancies: arithmetic against given vectors, and values against sentence-transformers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.outcome import Evidence, Failed, NotApplicable, Scored
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors
from tests.evaluators.builtin.angles import Angles, cosine
from tests.evaluators.builtin.scoring import chunks, outcome, outcomes, scored, trace

MODEL = ("groundedness", "answer_relevancy_sentence", "context_relevancy_soft")


CLOSE = 1e-6
ANSWER = "It is red. It is far."
CONTEXTS = chunks("Mars is red. Mars is a planet.", None, "", "Venus is hot.")
ENCODER = {
    "What is Mars?": 0.0,
    "It is red.": 10.0,
    "It is far.": 60.0,
    "Mars is red.": 20.0,
    "Mars is a planet.": 90.0,
    "Venus is hot.": 170.0,
}


def test_groundedness_is_the_worst_sentences_best_support() -> None:
    given = scored("groundedness", encoder=Angles(ENCODER), answer=ANSWER, contexts=CONTEXTS)
    # It is red: best 10 degrees away. It is far: 40 and 30 degrees away, so cos 30.
    assert given.metrics == {"groundedness": pytest.approx(cosine(30), abs=CLOSE)}
    score = given.metrics["groundedness"]
    assert given.evidence == (
        Evidence("answer", 11, 21, kind="least_grounded", score=score),
        Evidence("contexts", 13, 30, chunk_id="c1", kind="best_support", score=score),
    )


def test_answer_relevancy_is_max_and_mean_over_sentences() -> None:
    given = scored("answer_relevancy_sentence", encoder=Angles(ENCODER), question="What is Mars?", answer=ANSWER)
    assert given.metrics == {
        "answer_relevancy": pytest.approx(cosine(10), abs=CLOSE),
        "mean_answer_relevancy": pytest.approx((cosine(10) + cosine(60)) / 2, abs=CLOSE),
    }
    assert [(place.start, place.end, place.kind) for place in given.evidence] == [
        (0, 10, "most_relevant"),
        (11, 21, "least_relevant"),
    ]


def test_context_relevancy_is_max_and_mean_over_chunks_with_text() -> None:
    given = scored("context_relevancy_soft", encoder=Angles(ENCODER), question="What is Mars?", contexts=CONTEXTS)
    # Chunk 1: its best sentence is 20 degrees away. Chunk 4: 170 degrees, a negative cosine, which counts as 0.
    assert given.metrics == {
        "recall_relevancy": pytest.approx(cosine(20), abs=CLOSE),
        "precision_relevancy": pytest.approx(cosine(20) / 2, abs=CLOSE),
    }
    assert [(place.chunk_id, place.start, place.end) for place in given.evidence] == [("c1", 0, 12), ("c4", 0, 13)]


def test_opposite_vectors_score_zero_and_equal_ones_at_most_one() -> None:
    encoder = Angles({"A is b.": 0.0, "C is d.": 180.0})
    assert scored("groundedness", encoder=encoder, answer="A is b.", contexts=chunks("C is d.")).metrics == {
        "groundedness": 0.0
    }
    again = scored("groundedness", encoder=encoder, answer="A is b.", contexts=chunks("A is b.")).metrics
    assert 1 - CLOSE <= again["groundedness"] <= 1.0


@pytest.mark.parametrize("id", MODEL)
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": "Why?", "answer": "It is so.", "contexts": ()}, "empty_contexts"),
        ({"question": "Why?", "answer": "It is so.", "contexts": chunks(None, None)}, "missing_contexts"),
        ({"question": "Why?", "answer": "It is so.", "contexts": chunks("", " 1. ")}, "empty_contexts"),
        ({"question": " ", "answer": "It is so.", "contexts": chunks("It is.")}, "empty_question"),
        ({"question": "Why?", "answer": " ?! 42", "contexts": chunks("It is.")}, "too_short"),
    ],
)
def test_what_cannot_be_embedded_is_not_a_number(id: str, fields: dict[str, Any], reason: str) -> None:
    concerns = {
        "groundedness": {"empty_contexts", "missing_contexts", "too_short"},
        "answer_relevancy_sentence": {"empty_question", "too_short"},
        "context_relevancy_soft": {"empty_contexts", "missing_contexts", "empty_question"},
    }
    given = outcome(id, **fields)
    retrieved_nothing = id == "context_relevancy_soft" and fields["contexts"] == ()  # 0, see test_ranking
    if reason in concerns[id] and not retrieved_nothing:
        assert isinstance(given, NotApplicable)
        assert given.reason == reason
    else:
        assert not isinstance(given, NotApplicable)


def test_an_answer_too_short_to_embed_is_a_finding() -> None:
    given = outcome("groundedness", answer="42", contexts=chunks("It is 42."))
    assert isinstance(given, NotApplicable)
    assert [finding.kind for finding in given.findings] == ["answer_too_short"]


@pytest.mark.parametrize("id", MODEL)
def test_one_encoder_call_for_a_batch(id: str) -> None:
    encoder = Angles(ENCODER)
    same = trace(question="What is Mars?", answer=ANSWER, contexts=CONTEXTS)
    assert len(set(map(repr, outcomes(id, [same, same, same], encoder=encoder)))) == 1
    assert len(encoder.calls) == 1
    assert len(encoder.calls[0]) == len(set(encoder.calls[0]))


@pytest.mark.parametrize("id", MODEL)
def test_more_sentences_than_the_budget_are_too_long(id: str) -> None:
    long = "This is a sentence. " * 3_000
    assert outcome(id, question="Why?", answer=long, contexts=chunks(long)) == NotApplicable("too_long")


# sentence-transformers 6.2.0 with all-MiniLM-L6-v2 (model.safetensors 53aa5117): cosines of the pairs, 1e-4.
QUESTION = "What is the capital of France?"
PARIS = "Paris is the capital of France. It has two million people. The Eiffel Tower is there."
RETRIEVED = chunks(
    "France is a country in Europe. Its capital is Paris.", "Berlin is the capital of Germany.", "Bananas are yellow."
)
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder(EncoderSettings(backend="onnx"))


@pytest.mark.onnx
def test_groundedness_of_minilm(minilm: Encoder) -> None:
    given = scored("groundedness", encoder=minilm, answer=PARIS, contexts=RETRIEVED)
    assert given.metrics["groundedness"] == pytest.approx(0.2510085105895996, abs=TOLERANCE)
    weak = given.evidence[0]
    assert PARIS[weak.start : weak.end] == "It has two million people."


@pytest.mark.onnx
def test_answer_relevancy_of_minilm(minilm: Encoder) -> None:
    metrics = scored("answer_relevancy_sentence", encoder=minilm, question=QUESTION, answer=PARIS).metrics
    assert metrics["answer_relevancy"] == pytest.approx(0.856069803237915, abs=TOLERANCE)
    assert metrics["mean_answer_relevancy"] == pytest.approx(0.43880829215049744, abs=TOLERANCE)


@pytest.mark.onnx
def test_context_relevancy_of_minilm(minilm: Encoder) -> None:
    metrics = scored("context_relevancy_soft", encoder=minilm, question=QUESTION, contexts=RETRIEVED).metrics
    relevancy = [0.8193652629852295, 0.40335988998413086, -0.0068026352673769]  # the last is clipped to 0
    assert metrics["recall_relevancy"] == pytest.approx(relevancy[0], abs=TOLERANCE)
    assert metrics["precision_relevancy"] == pytest.approx((relevancy[0] + relevancy[1] + 0) / 3, abs=TOLERANCE)


@pytest.mark.parametrize(
    ("id", "fields"),
    [
        ("groundedness", {"answer": ANSWER, "contexts": CONTEXTS}),
        ("answer_relevancy_sentence", {"question": "Why?", "answer": ANSWER}),
        ("context_relevancy_soft", {"question": "Why?", "contexts": CONTEXTS}),
        ("context_mrr", {"question": "Why?", "contexts": chunks("Mars is red.")}),
        ("retrieval_ranking", {"question": "Why?", "contexts": chunks("Mars is red.")}),
        ("answer_semantic_similarity", {"answer": ANSWER, "expected": ("It is blue.",)}),
        ("answer_semantic_sentence_similarity", {"answer": ANSWER, "expected": ("It is blue.",)}),
        ("sentence_similarity", {"answer": ANSWER, "expected": ("It is blue.",)}),
        ("step_alignment", {"answer": "1. Turn it on.\n2. Wait.", "contexts": chunks("1. Start it.\n2. Wait.")}),
    ],
)
def test_a_vector_that_is_no_number_is_no_score(id: str, fields: dict[str, Any]) -> None:
    class Overflowing(HashingEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            return super().encode(texts) * np.float32(np.nan)

    assert isinstance(outcome(id, **fields), Scored)
    given = outcome(id, encoder=Overflowing(), **fields)
    assert isinstance(given, Failed)
    assert given.kind == "crashed"
    assert given.detail.startswith("FloatingPointError")
