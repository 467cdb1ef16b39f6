"""Similarity to reference answers: arithmetic against given vectors, and values of sentence-transformers' MiniLM."""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any

import numpy as np
import pytest

from ragtide.evaluators import check_evaluator
from ragtide.evaluators.builtin.sentence_similarity import jaccard, tokens
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.models import Models
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Evidence, NotApplicable, Scored
from ragtide.evaluators.plan import prepare, wanted_encoders
from ragtide.evaluators.registry import load
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors
from tests.evaluators.builtin.angles import Angles, cosine
from tests.evaluators.builtin.pairs import PAIRS
from tests.evaluators.builtin.scoring import outcome, scored, trace

WHOLE = ("answer_semantic_similarity", "sentence_similarity")
EVERY = (*WHOLE, "answer_semantic_sentence_similarity")
CLOSE = 1e-6
TOLERANCE = 1e-4
ANGLES = {
    "It is red. It is far.": 0.0,
    "It is blue.": 100.0,
    "It is red.": 10.0,
    "It is far.": 60.0,
    "It is near. It is hot.": 30.0,
    "It is near.": 70.0,
    "It is hot.": 180.0,
    "42": 0.0,
}
ANSWER = "It is red. It is far."
EXPECTED = ("It is blue.", " ", "It is near. It is hot.")


def test_the_nearest_reference_counts() -> None:
    given = scored("answer_semantic_similarity", encoder=Angles(ANGLES), answer=ANSWER, expected=EXPECTED)
    score = given.metrics["answer_similarity"]
    assert score == pytest.approx(cosine(30), abs=CLOSE)
    # References are counted one after another: 11 characters, 1, then this one's 22.
    assert given.evidence == (Evidence("expected", 12, 34, kind="most_similar", score=score),)


def test_words_are_those_of_the_reference_nearest_in_meaning() -> None:
    given = scored("sentence_similarity", encoder=Angles(ANGLES), answer=ANSWER, expected=EXPECTED)
    # it, is, red., far. against it, is, near., hot.
    assert given.metrics == {"cosine": pytest.approx(cosine(30), abs=CLOSE), "jaccard": 2 / 6}
    assert [(place.field, place.start, place.end) for place in given.evidence] == [("expected", 12, 34)]


def test_a_negative_cosine_is_0() -> None:
    encoder = Angles({"A": 0.0, "B": 120.0})
    assert scored("answer_semantic_similarity", encoder=encoder, answer="A", expected=("B",)).metrics == {
        "answer_similarity": 0.0
    }


def test_sentences_are_compared_with_those_of_the_best_reference() -> None:
    given = scored("answer_semantic_sentence_similarity", encoder=Angles(ANGLES), answer=ANSWER, expected=EXPECTED)
    # "It is blue." is 90 and 40 degrees away, "It is near." 60 and 10: the second reference has the better mean.
    assert given.metrics == {
        "mean_answer_similarity": pytest.approx((cosine(60) + cosine(10)) / 2, abs=CLOSE),
        "min_answer_similarity": pytest.approx(cosine(60), abs=CLOSE),
    }
    score = given.metrics["min_answer_similarity"]
    assert given.evidence == (
        Evidence("answer", 0, 10, kind="least_similar", score=score),
        Evidence("expected", 12, 23, kind="most_similar", score=score),
    )


class Told:
    """A cross-encoder of which every score is told."""

    revision = "told@1"

    def __init__(self, scores: Mapping[Ask, float]) -> None:
        self.scores = scores

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        return np.array([[self.scores[ask]] for ask in asks], np.float32)


CROSS_ENCODER = {"cross_encoder": "cross-encoder/stsb-roberta-base"}


def test_a_cross_encoder_reads_answer_and_reference_at_once_and_nothing_is_embedded() -> None:
    encoder, told = Angles({}), Told({(ANSWER, EXPECTED[0]): 0.75, (ANSWER, EXPECTED[2]): 0.5})
    refs: list[ModelRef] = []

    def model(ref: ModelRef) -> Told:
        refs.append(ref)
        return told

    given = scored(
        "answer_semantic_similarity",
        CROSS_ENCODER,
        encoder=encoder,
        model=model,
        answer=ANSWER,
        expected=EXPECTED,
    )
    assert given.metrics == {"answer_similarity": 0.75}
    assert given.evidence == (Evidence("expected", 0, 11, kind="most_similar", score=0.75),)
    assert refs == [ModelRef(Need.CLASSIFIER, "cross-encoder/stsb-roberta-base")]
    assert encoder.calls == []


def test_a_reference_that_the_cross_encoder_cannot_read_whole_may_be_the_best() -> None:
    told = Told({(ANSWER, EXPECTED[0]): 0.75, (ANSWER, EXPECTED[2]): nan})
    given = outcome(
        "answer_semantic_similarity", CROSS_ENCODER, model=lambda ref: told, answer=ANSWER, expected=EXPECTED
    )
    assert given == NotApplicable("too_long")


def test_more_pairs_than_a_model_is_asked_to_read_are_too_long_for_the_cross_encoder_alone() -> None:
    answer, expected = "x" * 1_000, tuple(f"reference {i}" for i in range(200))
    asked = Told({})  # knows no pair: it would fail if it were asked
    given = outcome(
        "answer_semantic_similarity", CROSS_ENCODER, model=lambda ref: asked, answer=answer, expected=expected
    )
    assert given == NotApplicable("too_long")
    texts = dict.fromkeys((answer, *expected), 0.0)
    same = scored("answer_semantic_similarity", encoder=Angles(texts), answer=answer, expected=expected)
    assert same.metrics["answer_similarity"] == pytest.approx(1)


def test_with_a_cross_encoder_it_keeps_its_contract() -> None:
    evaluator = load()["answer_semantic_similarity"]
    check_evaluator(evaluator, params=evaluator.params(**CROSS_ENCODER))


@pytest.mark.parametrize("id", EVERY)
@pytest.mark.parametrize(
    ("answer", "expected", "reason"),
    [
        ("It is.", (), "empty_expected"),
        ("It is.", (" ", ""), "reference_without_words"),
        (" \n", ("It is.",), None),
        ("It is.", None, "missing_expected"),
        ("It is. " * 3_000, ("It is.",), "too_long"),
    ],
)
def test_what_cannot_be_compared_is_not_a_number(id: str, answer: str, expected: Any, reason: str | None) -> None:
    reason = reason or ("empty_answer" if id in WHOLE else "too_short")
    assert outcome(id, answer=answer, expected=expected) == NotApplicable(reason)


def test_without_sentences_there_are_only_texts_to_compare() -> None:
    encoder = Angles(ANGLES)
    assert scored("sentence_similarity", encoder=encoder, answer="42", expected=("42",)).metrics["jaccard"] == 1.0
    given = outcome("answer_semantic_sentence_similarity", encoder=encoder, answer="42", expected=("42",))
    assert given == NotApplicable("too_short")
    given = outcome("answer_semantic_sentence_similarity", encoder=encoder, answer="It is red.", expected=("42",))
    assert given == NotApplicable("reference_without_words")


# Plain sets, and sentence-transformers 6.2.0 with all-MiniLM-L6-v2 (model.safetensors 53aa5117).
JACCARD = {
    "paraphrase": 0.5714285714285714,
    "identical": 1.0,
    "disjoint": 0.0,
    "short": 0.16666666666666666,
    "sentences": 0.3125,
    "unicode": 0.0,
    "cjk": 1.0,
    "empty": 0.0,
    "word": 1.0,
    "case": 0.25,
}
COSINE = {
    "paraphrase": 0.9278936982154846,
    "identical": 1.0,
    "disjoint": 0.0,  # -0.0125
    "short": 0.6277998089790344,
    "sentences": 0.8267284631729126,
    "unicode": 1.0,
    "cjk": 1.0,
    "word": 1.0,
    "case": 0.9313881397247314,
}


@pytest.mark.parametrize("name", JACCARD)
def test_jaccard_is_that_of_sets(name: str) -> None:
    pair = PAIRS[name]
    assert jaccard(tokens(pair.answer), tokens(pair.reference)) == pytest.approx(JACCARD[name], abs=1e-9)


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder(EncoderSettings(backend="onnx"))


@pytest.mark.onnx
@pytest.mark.parametrize("name", COSINE)
def test_cosines_of_minilm(minilm: Encoder, name: str) -> None:
    pair = PAIRS[name]
    fields: dict[str, Any] = {"answer": pair.answer, "expected": (pair.reference,)}
    for id, key in zip(WHOLE, ("answer_similarity", "cosine"), strict=True):
        assert scored(id, encoder=minilm, **fields).metrics[key] == pytest.approx(COSINE[name], abs=TOLERANCE)


@pytest.mark.onnx
def test_sentences_of_minilm(minilm: Encoder) -> None:
    answer = "Paris is the capital of France. It has two million people. The Eiffel Tower is there."
    expected = ("The capital of France is Paris.",)
    given = scored("answer_semantic_sentence_similarity", encoder=minilm, answer=answer, expected=expected)
    assert given.metrics == {
        "mean_answer_similarity": pytest.approx(0.474360853433609, abs=TOLERANCE),
        "min_answer_similarity": pytest.approx(0.1619562804698944, abs=TOLERANCE),
    }
    weak = given.evidence[0]
    assert answer[weak.start : weak.end] == "It has two million people."


def test_with_a_cross_encoder_no_encoder_is_needed() -> None:
    id = "answer_semantic_similarity"
    settings = EvaluatorSettings(enabled=(id,), params={id: {"cross_encoder": "a/cross"}})
    assert wanted_encoders(load(), settings, None) == ()
    ref = ModelRef(Need.CLASSIFIER, "a/cross")
    [prepared] = prepare(load(), settings, None, None, Models({ref: HashingModel(ref)})).prepared
    [[given]] = run_all(
        [prepared], [trace(answer="It is.", expected=("So.",))], Resources(models={ref: HashingModel(ref)}).batch()
    )
    assert isinstance(given, Scored)
    assert given.metrics["answer_similarity"] == pytest.approx(HashingModel(ref).answer([("It is.", "So.")])[0, 0])
