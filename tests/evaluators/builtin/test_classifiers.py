"""Toxicity, bias and hallucination: what the model says is the score; what it cannot take is none."""

from typing import Any

import pytest

from ragtide.evaluators.builtin.toxicity import LABELS
from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.registry import load
from tests.evaluators.builtin.answers import TOO_LONG, Answers, answers
from tests.evaluators.builtin.scoring import chunks, outcome, scored, trace

CLASSIFIERS = ("toxicity", "fairness_bias", "hallucination")
ANSWER = "You fool. It is in the manual."


def test_toxicity_is_a_probability_for_each_of_detoxifys_labels() -> None:
    given = scored("toxicity", {"locate": False}, model=answers({(ANSWER,): 0.5}), answer=ANSWER, question="You!")
    assert list(given.metrics) == list(LABELS)
    assert list(given.metrics.values()) == [0.5 / 2**i for i in range(6)]
    assert given.evidence == ()


def test_the_questions_toxicity_is_scored_where_it_is_wanted_and_there() -> None:
    said = answers({(ANSWER,): 0.5, ("You!",): 0.25, ("You!!",): TOO_LONG})
    wanted = {"scan_question": True, "locate": False}
    assert scored("toxicity", wanted, model=said, answer=ANSWER, question="You!").metrics["question_toxicity"] == 0.25
    for question in (None, " ", "You!!"):
        metrics = scored("toxicity", wanted, model=said, answer=ANSWER, question=question).metrics
        assert list(metrics) == list(LABELS)


@pytest.mark.parametrize(("id", "kind"), [("toxicity", "toxicity"), ("fairness_bias", "biased")])
def test_the_worst_sentence_is_pointed_at(id: str, kind: str) -> None:
    said = answers({(ANSWER,): 0.75, ("You fool.",): 0.875, ("It is in the manual.",): 0.125})
    given = scored(id, model=said, answer=ANSWER)
    assert given.evidence == (Evidence("answer", 0, 9, kind=kind, score=0.875),)
    assert scored(id, model=answers({("...",): 0.5}), answer="...").evidence == ()
    untold = answers({(ANSWER,): 0.75, ("You fool.",): TOO_LONG, ("It is in the manual.",): TOO_LONG})
    assert scored(id, model=untold, answer=ANSWER).evidence == ()


def test_fairness_bias_is_the_probability_of_the_biased_class() -> None:
    given = scored("fairness_bias", {"locate": False}, model=answers({(ANSWER,): 0.75}), answer=ANSWER)
    assert given.metrics == {"fairness_bias": 0.75}


def test_hallucination_is_the_consistency_of_contexts_and_answer() -> None:
    said = answers({("First.\nSecond.", "It is."): 0.625})
    contexts = chunks("First.", None, " ", "Second.")
    given = scored("hallucination", {"locate": False}, model=said, answer="It is.", contexts=contexts)
    assert given.metrics == {"hallucination": 0.625}


@pytest.mark.parametrize("id", CLASSIFIERS)
@pytest.mark.parametrize("answer", ["", " \n"])
def test_an_empty_answer_is_not_a_number(id: str, answer: str) -> None:
    assert outcome(id, answer=answer, contexts=chunks("It is.")) == NotApplicable("empty_answer")


@pytest.mark.parametrize(
    ("contexts", "reason"),
    [
        (None, "missing_contexts"),
        ((), "empty_contexts"),
        (chunks(None), "missing_contexts"),
        (chunks(" "), "empty_contexts"),
    ],
)
def test_an_answer_without_contexts_has_no_consistency(contexts: Any, reason: str) -> None:
    assert outcome("hallucination", answer="It is.", contexts=contexts) == NotApplicable(reason)


@pytest.mark.parametrize("id", CLASSIFIERS)
def test_what_the_model_cannot_take_whole_is_too_long(id: str) -> None:
    said = answers({("It is.",): TOO_LONG, ("So.", "It is."): TOO_LONG})
    assert outcome(id, model=said, answer="It is.", contexts=chunks("So.")) == NotApplicable("too_long")


@pytest.mark.parametrize("id", ["toxicity", "fairness_bias"])
def test_nothing_but_the_answer_is_asked_where_no_more_is_wanted(id: str) -> None:
    asked: list[Answers] = []

    def made(ref: Any) -> Answers:
        asked.append(Answers(ref, {}))
        return asked[-1]

    scored(id, {"locate": False}, model=made, answer=ANSWER, question="You!", contexts=chunks("So."))
    assert [model.asked for model in asked] == [[(ANSWER,)]]


@pytest.mark.parametrize("id", CLASSIFIERS)
def test_it_keeps_the_contract_whatever_it_is_told_to_look_at(id: str) -> None:
    evaluator = load()[id]
    wanted = {name: name != "locate" for name in ("scan_question", "locate") if name in evaluator.params.model_fields}
    for params in ({}, wanted):
        check_evaluator(evaluator, [trace(answer=ANSWER, contexts=chunks("So."))], evaluator.params(**params))


def test_hallucination_points_at_the_weakest_sentence_and_its_nearest_chunk() -> None:
    first, second = "The red light blinks. Hold the button.", "Paris is large."
    answer = "Paris is large. Hold the red button."
    whole, of_second, of_first = (f"{first}\n{second}", answer), (second, second), (first, "Hold the red button.")
    said = answers({whole: 0.75, of_second: 0.875, of_first: 0.625})
    given = scored("hallucination", model=said, answer=answer, contexts=chunks(first, None, second))
    assert given.evidence == (
        Evidence("answer", 16, 36, kind="weakest", score=0.625),
        Evidence("contexts", 0, 38, "c1", kind="nearest_chunk", score=0.625),
    )
    untold = answers({whole: 0.75, of_second: TOO_LONG, of_first: TOO_LONG})
    assert scored("hallucination", model=untold, answer=answer, contexts=chunks(first, second)).evidence == ()


def test_looking_for_it_costs_no_more_than_the_whole() -> None:
    asked: list[Answers] = []

    def made(ref: Any) -> Answers:
        asked.append(Answers(ref, {}))
        return asked[-1]

    context = "The red light blinks. " * 40
    scored("hallucination", model=made, answer="It blinks. It is blue. Nobody knows why.", contexts=chunks(context))
    [whole, *others] = asked[0].asked
    assert others == [(context, "It is blue.")], "the first of those that share no word with it"
    assert sum(len(text) for ask in others for text in ask) <= sum(map(len, whole))
