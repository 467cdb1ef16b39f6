"""Perplexity and the GPTScores: arithmetic by hand, and what a plain loop over transformers gives."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.fingerprint import fingerprint
from ragtide.evaluators.gptscore import GptScoreParams, load_template
from ragtide.evaluators.models import load as load_model
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.plan import parameters
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors
from tests.evaluators.builtin.scoring import outcome, scored, trace

REF = ModelRef(Need.LM, "distilgpt2")
LM = sorted(id for id, each in load().items() if each.method == "lm")
FAMILIES = [id for id in LM if id.startswith("gptscore_")]
QUESTION, ANSWER, REFERENCE = "Where is Paris?", "Paris is in France.", "It lies in France, on the Seine."


class Characters:
    """Scores a text by its characters: (sum, count), where the sum is `nats` for each and one more for the prefix."""

    revision = "characters@1"

    def __init__(self, ref: ModelRef) -> None:
        self.asked: list[Ask] = []
        assert ref == REF

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        self.asked += asks
        rows = [[len(ask[-1]) + len("".join(ask[:-1])), len(ask[-1])] for ask in asks]
        return np.array([[np.nan, np.nan] if row[1] > 1_000 else row for row in rows], np.float32)


def test_perplexity_is_the_exponential_of_the_average() -> None:
    metrics = scored("perplexity", model=Characters, answer="four").metrics
    assert metrics == {"perplexity": pytest.approx(math.e)}  # 4 nats of 4 characters


def test_a_rewriting_is_scored_both_ways_and_the_likeliest_reference_counts() -> None:
    instruction = "Rewrite the text below so that it is grammatical and well written."
    around = len(instruction) + len("\n\n") + len("\n\nIn other words, ")

    def way(told: str, tail: str) -> float:
        return (around + len(told) + len(tail)) / len(tail)

    by_hand = [(way(expected, ANSWER) + way(ANSWER, expected)) / 2 for expected in ("short", REFERENCE)]
    assert by_hand[0] > by_hand[1]
    for id in ("gptscore_translation", "gptscore_summary_reference"):
        metrics = scored(id, model=Characters, answer=ANSWER, expected=("short", " ", REFERENCE)).metrics
        assert metrics["fluency"] == pytest.approx(by_hand[1])


def test_a_verdict_and_a_summary_are_scored_after_all_that_is_told() -> None:
    asked: dict[str, list[Ask]] = {}
    for id in ("gptscore_question_answering", "gptscore_summary"):
        model = Characters(REF)
        scored(id, model={REF: model}.__getitem__, question=QUESTION, answer=ANSWER)
        asked[id] = model.asked
    told = (
        "A person asks an assistant.\n\nPerson: Where is Paris?\nAssistant: Paris is in France.\n\n"
        "Question: Are the assistant's responses engaging?\n"
    )
    assert asked["gptscore_question_answering"][1] == (told, "Answer: Yes")
    told = "Summarize the text below without contradicting it anywhere.\n\nWhere is Paris?\n\nTl;dr\n"
    assert asked["gptscore_summary"][2] == (told, ANSWER)


@pytest.mark.parametrize("id", LM)
def test_what_cannot_be_scored_has_no_number(id: str) -> None:
    fields: dict[str, Any] = {"question": QUESTION, "answer": ANSWER, "expected": (REFERENCE,)}
    assert outcome(id, **{**fields, "answer": " \n"}) == NotApplicable("empty_answer")
    if "question" in load()[id].required:
        assert outcome(id, **{**fields, "question": ""}) == NotApplicable("empty_question")
    if "expected" in load()[id].required:
        assert outcome(id, **{**fields, "expected": ()}) == NotApplicable("empty_expected")
        assert outcome(id, **{**fields, "expected": ("", " ")}) == NotApplicable("reference_without_words")
    if id != "gptscore_question_answering":  # what it scores is always there, and short
        assert outcome(id, model=Characters, **{**fields, "answer": "x" * 1_001}) == NotApplicable("too_long")
        assert outcome(id, **{**fields, "answer": "..."}) == NotApplicable("too_short"), "words of the fake model: none"


@pytest.mark.parametrize("id", LM)
def test_the_contract_is_kept(id: str) -> None:
    given = [trace(question=QUESTION, answer=ANSWER, expected=(REFERENCE, "In {France}."), trace_id=n) for n in "ab"]
    check_evaluator(load()[id], given)


@pytest.mark.parametrize("id", FAMILIES)
def test_the_instructions_are_a_part_of_the_fingerprint_and_no_setting(id: str) -> None:
    each = load()[id]
    params = each.params()
    assert isinstance(params, GptScoreParams)
    assert params.instructions == load_template(params.family).hash
    assert set(params.template.instructions) == {metric.key for metric in each.metrics}
    assert len(set(params.template.instructions.values())) == len(each.metrics)

    class Reworded(GptScoreParams, frozen=True, extra="forbid"):
        family = "summary" if id == "gptscore_translation" else "translation"

    assert fingerprint(each, params) != fingerprint(each, Reworded())
    with pytest.raises(ConfigError, match="no such parameter"):
        parameters(each, EvaluatorSettings(params={id: {"instructions": "0"}}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.evaluators.models.tiny_causal import causal

    return causal(tmp_path_factory.mktemp("models") / "gpt2", context=512)


def average(folder: Path, prefix: str, tail: str) -> float:
    """transformers on the whole text, the losses of the tail's tokens averaged."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    encoded = tokenizer(prefix + tail, return_offsets_mapping=True, return_tensors="pt")
    with torch.inference_mode():
        logits = AutoModelForCausalLM.from_pretrained(folder).eval()(encoded["input_ids"]).logits[0, :-1]
    losses = torch.nn.functional.cross_entropy(logits, encoded["input_ids"][0, 1:], reduction="none")
    return float(losses[encoded["offset_mapping"][0, 1:, 1] > len(prefix)].mean())


def metrics(id: str, folder: Path) -> Any:
    return scored(
        id,
        {"model": str(folder)},
        model=lambda ref: load_model(ref, EvaluatorSettings()),
        question=QUESTION,
        answer=ANSWER,
        expected=(REFERENCE,),
    ).metrics


@pytest.mark.models
def test_perplexity_is_that_of_a_plain_loop(folder: Path) -> None:
    expected = math.exp(average(folder, "", ANSWER))
    assert metrics("perplexity", folder)["perplexity"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.models
def test_gptscores_are_those_of_a_plain_loop(folder: Path) -> None:
    told = f"A person asks an assistant.\n\nPerson: {QUESTION}\nAssistant: {ANSWER}\n\n"
    verdict = told + "Question: Are the assistant's responses correct?\n"
    answering = metrics("gptscore_question_answering", folder)["correctness"]
    assert answering == pytest.approx(average(folder, verdict, "Answer: Yes"), rel=1e-4)

    source = f"Summarize the text below so that its main ideas are told.\n\n{QUESTION}\n\nTl;dr\n"
    summary = metrics("gptscore_summary", folder)["informativeness"]
    assert summary == pytest.approx(average(folder, source, ANSWER), rel=1e-4)

    asked = "Rewrite the text below so that it keeps its core information and every fact.\n\n"
    forth = average(folder, f"{asked}{REFERENCE}\n\nIn other words, ", ANSWER)
    back = average(folder, f"{asked}{ANSWER}\n\nIn other words, ", REFERENCE)
    accuracy = metrics("gptscore_translation", folder)["accuracy"]
    assert accuracy == pytest.approx((forth + back) / 2, rel=1e-4)
