"""The formulas of judge evaluators, from verdicts that the tests write."""

from typing import Any

import pytest

from ragtide.evaluators.judge.replies import Texts, Verdict, Verdicts
from ragtide.evaluators.outcome import Failed, NotApplicable, Scored
from tests.evaluators.builtin.scoring import chunks, outcomes, trace
from tests.evaluators.judge.scripted import Rule, ScriptedJudge, grade, judged, lines, metrics, picks, stated, yes_if

ANSWER = "The shop is in Rome.\nIt opens at nine.\nIt sells bread.\nIt is old."
STATED = {"statements": lines, "support": stated("claims")}


def test_faithfulness_is_the_share_of_statements_that_the_contexts_support() -> None:
    contexts = chunks("The shop is in Rome. Many are.", "It opens at nine.\nIt sells bread.")
    assert metrics("faithfulness", STATED, answer=ANSWER, contexts=contexts) == {"faithfulness": 3 / 4}
    assert metrics("faithfulness", STATED, answer="No.", contexts=contexts) == {"faithfulness": 0.0}


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [("ynny", 0.75), ("nyny", 0.5), ("nnnn", 0.0), ("yyyy", 1.0), ("nnny", 0.25)],
)
def test_context_precision_is_as_worked_in_the_catalogue(verdicts: str, expected: float) -> None:
    contexts = chunks(*(f"{verdict} chunk." for verdict in verdicts))
    rules = {"chunk_use": picks(lambda text: text.startswith("y"), lambda text: False)}
    found = judged("context_precision", rules, question="Q?", contexts=contexts, expected=("R.",))
    assert isinstance(found, Scored)
    assert found.metrics == {"context_precision": expected, "statement_precision": 0.0}
    assert [(one.chunk_id, one.kind) for one in found.evidence] == [
        (f"c{at}", "useful" if verdict == "y" else "not_useful") for at, verdict in enumerate(verdicts, start=1)
    ]


def test_context_precision_counts_sentences_any_reference_and_the_first_chunks() -> None:
    contexts = chunks("One helps. Two does not.", "Three helps.", "Four does not.")

    def rule(call: Any) -> object:
        wanted = "One" if call.sections[1].text == "A." else "Three"
        return picks(lambda text: wanted in text, lambda text: wanted in text)(call)

    def found(**params: object) -> dict[str, float]:
        return dict(
            metrics(
                "context_precision",
                {"chunk_use": rule},
                params,
                question="Q?",
                contexts=contexts,
                expected=("A.", "B."),
            )
        )

    assert found() == {"context_precision": 1.0, "statement_precision": 2 / 4}
    assert found(top_n=1) == {"context_precision": 1.0, "statement_precision": 1 / 2}


def test_context_recall_takes_the_best_reference_by_sentences_or_statements() -> None:
    contexts = chunks("The shop is in Rome.", "It opens at nine.")
    expected = ("It is closed.", "The shop is in Rome. It opens at nine. It is old.")
    assert metrics("context_recall", STATED, contexts=contexts, expected=expected) == {"context_recall": 2 / 3}
    as_lines = ("The shop is in Rome. It opens at nine.\nIt is old.",)
    assert metrics("context_recall", STATED, {"unit": "statements"}, contexts=contexts, expected=as_lines) == {
        "context_recall": 0.0
    }


def test_answer_correctness_is_the_f1_of_statements_and_the_similarity() -> None:
    answer, reference = "A is one.\nB is two.\nC is three.", "A is one.\nB is two.\nD is four.\nE is five."
    facts = 2 / (2 + 0.5 * (1 + 2))
    only = {"factuality_weight": 1, "similarity_weight": 0}
    assert metrics("answer_correctness", STATED, only, answer=answer, expected=(reference,)) == pytest.approx(
        {"answer_correctness": facts, "factuality": facts}
    )
    same = metrics("answer_correctness", STATED, answer=answer, expected=("D is four.", answer))
    assert same == pytest.approx({"answer_correctness": 1.0, "factuality": 1.0})
    assert metrics("answer_correctness", STATED, only, answer="X.", expected=("Y.",))["factuality"] == 0.0
    near = metrics("answer_correctness", STATED, answer=answer, expected=(reference,))
    assert 0.75 * facts < near["answer_correctness"] < 0.75 * facts + 0.25


def test_answer_relevancy_is_the_mean_similarity_of_generated_questions() -> None:
    rules: dict[str, Rule] = {
        "questions": lambda call: Texts(("When does it open?", "When does it open?", "  ", "Why?"))
    }
    same = metrics("answer_relevancy", rules, {"questions": 2}, question="When does it open?", answer="At nine.")
    assert same == pytest.approx({"answer_relevancy": 1.0})
    mixed = metrics("answer_relevancy", rules, {"questions": 3}, question="When does it open?", answer="At nine.")
    assert mixed["answer_relevancy"] < 1.0


def test_shares_of_statements_entities_chunks_and_sentences() -> None:
    contexts = chunks("Rome is hot. Rome is old.", "Bread is good.", "")
    relevance = {"statements": lines, "relevance": yes_if("statements", lambda item, call: "nine" in item)}
    assert metrics("answer_relevance_statements", relevance, question="When?", answer=ANSWER) == {
        "answer_relevance": 0.25
    }
    assert metrics(
        "noise_sensitivity", STATED, answer=ANSWER, contexts=contexts, expected=("It is old.", "It sells bread.")
    ) == {"noise_sensitivity": 0.5}
    against = {"contradiction": yes_if("texts", lambda item, call: "Bread" in item)}
    found = judged("hallucination_contradiction", against, answer="Bread is bad.", contexts=contexts)
    assert isinstance(found, Scored)
    assert found.metrics == {"contradicted_contexts": pytest.approx(1 / 3)}
    assert [one.chunk_id for one in found.evidence] == ["c2"]
    reading = {"chunk_relevance": picks(lambda text: "Rome" in text, lambda text: "old" in text)}
    assert metrics("context_relevancy", reading, question="Q?", contexts=contexts) == {
        "context_relevancy": pytest.approx(1 / 3)
    }
    assert metrics("context_relevance", reading, question="Q?", contexts=contexts) == {
        "context_relevance": pytest.approx(1 / 3)
    }
    entities = {"entities": lambda call: Texts(("Rome", "Milan", "Rome")), "presence": stated("entities")}
    assert metrics("context_entities_recall", entities, contexts=contexts, expected=("Rome and Milan.",)) == {
        "context_entities_recall": 0.5
    }


def test_ragas_is_the_harmonic_mean_of_its_parts_and_makes_no_calls_of_its_own() -> None:
    rules = {
        **STATED,
        "questions": lambda call: Texts(("Where is it?",) * 3),
        "chunk_use": picks(lambda text: "nine" in text, lambda text: False),
    }
    fields: dict[str, Any] = {
        "question": "Where is it?",
        "answer": "The shop is in Rome.\nIt is old.",
        "contexts": chunks("The shop is in Rome.", "It opens at nine."),
        "expected": ("The shop is in Rome. It opens at nine. It is red. It is big.",),
    }
    assert metrics("ragas", rules, **fields)["ragas"] == pytest.approx(4 / (1 / 0.5 + 1 / 1.0 + 1 / 0.5 + 1 / 0.5))
    none = {**rules, "chunk_use": picks(lambda text: False, lambda text: False)}
    assert metrics("ragas", none, **fields) == {"ragas": 0.0}
    assert judged("ragas", {**rules, "statements": lambda call: Texts(())}, **fields) == NotApplicable("no_statements")


@pytest.mark.parametrize(("id", "key"), [("bias_opinions", "bias"), ("toxicity_opinions", "toxicity")])
def test_opinions_are_listed_and_then_judged(id: str, key: str) -> None:
    rules = {"opinions": lines, key: yes_if("opinions", lambda item, call: "bad" in item)}
    assert metrics(id, rules, answer="This is bad.\nThat is good.\nAll is well.\nSome is bad.") == {key: 0.5}
    assert metrics(id, {"opinions": lambda call: Texts(())}, answer="It is noon.") == {key: 0.0}


@pytest.mark.parametrize(
    ("id", "prompt", "name"),
    [
        ("contact_information", "contact", "texts"),
        ("sexism", "sexism", "texts"),
        ("stereotypes", "stereotypes", "parts"),
        ("summarization_judge", "summary_quality", "summaries"),
    ],
)
@pytest.mark.parametrize("verdict", [True, False])
def test_checks_pass_by_the_verdict(id: str, prompt: str, name: str, verdict: bool) -> None:
    rules = {prompt: yes_if(name, lambda item, call: verdict)}
    passes = verdict if id == "summarization_judge" else not verdict
    found = metrics(id, rules, question="Q?", answer="An answer.", expected=("A reference.",))
    assert found == {"passes": passes, "failures": not passes, "generation_failures": not passes}


def test_one_good_reference_is_enough_for_a_summary() -> None:
    rules = {"summary_quality": yes_if("summaries", lambda item, call: call.sections[0].text == "Good.")}
    assert metrics("summarization_judge", rules, answer="S.", expected=("Bad.", "Good."))["passes"] == 1.0


def test_what_the_question_holds_counts_apart() -> None:
    rules = {"sexism": yes_if("texts", lambda item, call: "women" in item)}
    found = metrics("sexism", rules, {"scan_question": True}, question="Why are women so?", answer="They are not.")
    assert found == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0, "question_failures": 1.0}


def test_a_majority_of_votes_decides_on_each_category() -> None:
    def votes(call: Any) -> Verdicts:
        said = {4: True, 6: call.vote != 2, 7: call.vote == 1}  # toxic by all, sexual by two, violent by one of three
        return Verdicts(tuple(Verdict(number, said.get(number, False)) for number in range(1, 11)))

    judge = ScriptedJudge({"safety": votes})
    [found] = outcomes("safety_critic", [trace(answer="Some answer.")], judge=judge)
    assert isinstance(found, Scored)
    assert {key for key, value in found.metrics.items() if value} == {"toxic", "sexual"}
    assert found.metrics["safe"] == 0.0
    assert len(found.metrics) == 11
    assert [call.vote for call in judge.calls] == [1, 2, 3]
    few = metrics("safety_critic", {"safety": votes}, {"categories": ["violent"]}, answer="Some answer.")
    assert few == {"safe": 1.0, "violent": 0.0}


def test_a_grade_is_the_judges() -> None:
    assert metrics("summary_coherence", {"summary_coherence": grade(4)}, question="Text.", answer="S.") == {
        "summary_coherence": 4.0
    }


@pytest.mark.parametrize(
    ("id", "fields", "reason"),
    [
        ("faithfulness", {"answer": "A.", "contexts": ()}, "empty_contexts"),
        ("faithfulness", {"answer": "A.", "contexts": chunks("  ")}, "empty_contexts"),
        ("faithfulness", {"answer": "A.", "contexts": chunks(None)}, "missing_contexts"),
        ("faithfulness", {"answer": " ", "contexts": chunks("C.")}, "no_statements"),
        ("context_recall", {"contexts": chunks("C."), "expected": ()}, "empty_expected"),
        ("context_precision", {"question": "Q", "contexts": (), "expected": ("R.",)}, "empty_contexts"),
        ("answer_correctness", {"answer": "A.", "expected": ("  ",)}, "reference_without_words"),
        ("answer_relevancy", {"answer": "A.", "question": " "}, "empty_question"),
        ("context_relevance", {"question": "", "contexts": chunks("C.")}, "empty_question"),
        ("bias_opinions", {"answer": "\n"}, "empty_answer"),
        ("summary_coherence", {"question": "Q", "answer": "x" * 100_001}, "too_long"),
    ],
)
def test_what_cannot_be_judged_is_not_applicable_and_costs_no_call(
    id: str, fields: dict[str, object], reason: str
) -> None:
    judge = ScriptedJudge({})
    assert outcomes(id, [trace(**fields)], judge=judge) == [NotApplicable(reason)]
    assert judge.calls == []


def test_a_call_that_failed_fails_the_evaluators_that_need_it_and_no_others() -> None:
    failed = Failed("judge_timeout", "endpoint big: no answer within 60 s")
    rules = {**STATED, "support": lambda call: failed}
    good, bad = trace(answer="\n", contexts=chunks("C.")), trace(answer="A.", contexts=chunks("C."))
    assert outcomes("faithfulness", [good, bad], judge=ScriptedJudge(rules)) == [NotApplicable("no_statements"), failed]
