"""Faithfulness by entailment: hand-worked shares, attributions by position, and what cannot be told."""

from typing import Any

import pytest

from ragtide.evaluators.builtin.faithfulness_nli import MAX_ATTRIBUTED
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Ask
from tests.evaluators.builtin.answers import TOO_LONG, entails
from tests.evaluators.builtin.scoring import chunks, outcome, scored, trace

ID = "faithfulness_nli"
ANSWER = "It is red. It is far. It is wet."
CONTEXTS = chunks("Mars is red. Mars is a planet.", None, "", "Venus is far.")
SAID: dict[Ask, float] = {
    ("Mars is red.", "It is red."): 0.75,
    ("Mars is a planet.", "It is red."): 0.25,
    ("Venus is far.", "It is red."): 0.625,
    ("Mars is a planet.", "It is far."): 0.125,
    ("Venus is far.", "It is far."): 0.5,
    ("Mars is a planet.", "It is wet."): 0.375,
}


def test_the_share_of_sentences_that_some_context_sentence_entails() -> None:
    given = scored(ID, model=entails(SAID), answer=ANSWER, contexts=CONTEXTS)
    assert given.metrics == {"faithfulness": pytest.approx(2 / 3)}  # 0.5 is enough
    strict = scored(ID, {"threshold": 0.51}, model=entails(SAID), answer=ANSWER, contexts=CONTEXTS)
    assert strict.metrics == {"faithfulness": pytest.approx(1 / 3)}


def test_attributions_are_the_best_support_of_each_sentence_and_what_else_entails_it() -> None:
    given = scored(ID, model=entails(SAID), answer=ANSWER, contexts=CONTEXTS)
    assert given.evidence == (
        Evidence("answer", 0, 10, kind="supported", score=0.75),
        Evidence("contexts", 0, 12, "c1", kind="support", score=0.75),
        Evidence("contexts", 0, 13, "c4", kind="support", score=0.625),
        Evidence("answer", 11, 21, kind="supported", score=0.5),
        Evidence("contexts", 0, 13, "c4", kind="support", score=0.5),
        Evidence("answer", 22, 32, kind="unsupported", score=0.375),
        Evidence("contexts", 13, 30, "c1", kind="support", score=0.375),
    )
    one = scored(ID, {"attributions": 1}, model=entails(SAID), answer=ANSWER, contexts=CONTEXTS)
    assert one.evidence == tuple(place for i, place in enumerate(given.evidence) if i != 2)


def test_only_the_most_similar_context_sentences_are_asked() -> None:
    # The fake encoder's vectors are near where words are shared: "Mars is red." shares two with the answer.
    fields: dict[str, Any] = {"answer": "It is red.", "contexts": chunks("Mars is red. Venus grew warm. Rain fell.")}
    said: dict[Ask, float] = {("Mars is red.", "It is red."): 0.25, ("Rain fell.", "It is red."): 1.0}
    assert scored(ID, {"top_k": 0}, model=entails(said), **fields).metrics == {"faithfulness": 1.0}
    pruned = scored(ID, {"top_k": 1}, model=entails(said), **fields)
    assert pruned.metrics == {"faithfulness": 0.0}
    assert pruned.evidence[1] == Evidence("contexts", 0, 12, "c1", kind="support", score=0.25)


def test_a_long_answers_weakest_sentences_are_attributed() -> None:
    sentences = [f"Number {i} is here." for i in range(MAX_ATTRIBUTED + 10)]
    said: dict[Ask, float] = {("It is so.", sentence): float(i < 10) for i, sentence in enumerate(sentences)}
    given = scored(ID, model=entails(said), answer=" ".join(sentences), contexts=chunks("It is so."))
    attributed = [place for place in given.evidence if place.field == "answer"]
    assert len(attributed) == MAX_ATTRIBUTED
    assert {place.score for place in attributed} == {0.0}
    assert [place.start for place in attributed] == sorted(place.start for place in attributed)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"answer": "It is so."}, "missing_contexts"),
        ({"answer": "It is so.", "contexts": ()}, "empty_contexts"),
        ({"answer": "It is so.", "contexts": chunks(None, None)}, "missing_contexts"),
        ({"answer": "It is so.", "contexts": chunks("", " 1. ")}, "empty_contexts"),
        ({"answer": " ?! 42", "contexts": chunks("It is.")}, "too_short"),
        ({"answer": "It is so. " * 3_000, "contexts": chunks("It is.")}, "too_long"),
    ],
)
def test_what_cannot_be_asked_is_not_a_number(fields: dict[str, Any], reason: str) -> None:
    assert outcome(ID, **fields) == NotApplicable(reason)


def test_pairs_of_too_many_characters_or_too_long_a_sentence_are_not_scored() -> None:
    fields: dict[str, Any] = {"answer": "It is red.", "contexts": chunks("Mars is red.")}
    assert scored(ID, {"max_characters": 22}, **fields)
    assert outcome(ID, {"max_characters": 21}, **fields) == NotApplicable("too_long")
    long = entails({("Mars is red.", "It is red."): TOO_LONG})
    assert outcome(ID, model=long, **fields) == NotApplicable("too_long")


def test_it_keeps_the_contract_pruned_or_not() -> None:
    evaluator = load()[ID]
    for top_k in (0, 1, 8):
        check_evaluator(evaluator, [trace(answer=ANSWER, contexts=CONTEXTS)], evaluator.params(top_k=top_k))


def test_it_is_the_plain_loop_over_all_pairs() -> None:
    contexts = chunks("The light is green. Hold the button.", "Nobody knows the light. Press and hold it now.")
    answer = "Hold the button now. The green light shows it. Cats are quiet."
    params: Any = load()[ID].params()
    encoder, [ref] = HashingEncoder(), (load()[ID].models or (lambda _: []))(params)
    premises = ["The light is green.", "Hold the button.", "Nobody knows the light.", "Press and hold it now."]
    supported = 0
    for hypothesis in ("Hold the button now.", "The green light shows it.", "Cats are quiet."):
        best = 0.0
        for premise in premises:
            [row] = HashingModel(ref).answer([(premise, hypothesis)])
            best = max(best, float(row[0]))
        supported += best >= 0.5
    assert 0 < supported < 3
    assert scored(ID, encoder=encoder, answer=answer, contexts=contexts).metrics == {"faithfulness": supported / 3}
