"""What a micro-batch comes to, whatever evaluators do."""

import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ragtide.evaluators.checks import CountingEncoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.outcome import Evidence, Failed, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Budget, Metric, Need, Shared, Vectors, evaluator
from ragtide.evaluators.trace import Chunk
from tests.evaluators.engine.examples import Answer, asked, batch, brevity, nearness, ready, scoring, trace


def test_outcomes_stand_in_the_order_of_evaluators_and_traces() -> None:
    resources = Resources(HashingEncoder())
    traces = [asked(0, "a b", "a b"), trace(1, None, question="q"), trace(2, "one two three"), trace(3, "")]
    plan = ready(brevity, nearness, resources=resources)
    found = run_all(plan, traces, resources.batch())
    assert [prepared.evaluator.id for prepared in plan] == ["brevity", "nearness"]
    assert found[0] == [
        Scored({"brevity": 0.9}),
        NotApplicable("missing_answer"),
        Scored({"brevity": 0.8}),
        NotApplicable("empty"),
    ]
    assert isinstance(found[1][0], Scored)
    assert found[1][0].metrics["nearness"] == pytest.approx(1.0, abs=1e-6)
    assert found[1][1:] == [NotApplicable("missing_contexts"), *[NotApplicable("missing_question")] * 2]


def test_a_task_that_does_not_select_the_evaluator_leaves_none() -> None:
    resources = Resources(HashingEncoder())
    traces = [
        trace(0, question="q", contexts=(Chunk(id="c", text="q"),), task=task)
        for task in (None, "question_answering", "extraction", "agent")
    ]
    [outcomes] = run_all(ready(nearness, resources=resources), traces, resources.batch())
    assert [type(outcome) for outcome in outcomes] == [Scored, Scored, Scored, type(None)]


def test_one_encoder_call_serves_every_evaluator_of_a_batch() -> None:
    encoder = CountingEncoder(HashingEncoder())
    resources = Resources(encoder)

    @evaluator(
        "loud",
        version=1,
        domain="generation",
        method="embedding",
        inputs=Answer,
        metrics=[Metric("norm", high=2.0)],
        needs={Need.EMBEDDING},
        embeds=lambda row, shared, params: [row.answer, *(s.text for s in shared.sentences(row.answer))],
    )
    def loud(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterator[Outcome]:
        """Length of the answer's vector."""
        for row in rows:
            yield Scored({"norm": float(np.linalg.norm(shared.embed([row.answer])))})

    traces = [asked(i, f"question {i}", "the same chunk", f"chunk {i}") for i in range(20)]
    run_all(ready(loud, nearness, resources=resources), traces, resources.batch())
    assert encoder.calls == 1
    run_all(ready(loud, nearness, resources=resources), traces, resources.batch())
    assert encoder.calls == 1, "a second batch of the same texts asks for nothing"


@given(size=st.integers(1, 200), data=st.data())
def test_a_failing_record_is_found_in_log_steps_and_the_rest_stand(size: int, data: st.DataObject) -> None:
    bad = data.draw(st.integers(0, size - 1))
    calls: list[int] = []

    def score(rows: Sequence[Answer]) -> Iterable[Outcome]:
        calls.append(len(rows))
        return [Scored({"value": 1 / int(row.answer)}) for row in rows]

    traces = [trace(i, "0" if i == bad else "2") for i in range(size)]
    [outcomes] = run_all(ready(scoring(score)), traces, batch())
    failed = [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Failed)]
    assert failed == [bad]
    assert all(outcome == Scored({"value": 0.5}) for i, outcome in enumerate(outcomes) if i != bad)
    assert len(calls) <= 2 * math.ceil(math.log2(size)) + 1


def test_what_was_raised_is_told_without_the_records_text() -> None:
    def score(rows: Sequence[Answer]) -> Iterable[Outcome]:
        return [Scored({"value": float(row.answer)}) for row in rows]  # its ValueError quotes the answer

    [[outcome]] = run_all(ready(scoring(score)), [trace(0, "jane@example.org")], batch())
    assert isinstance(outcome, Failed)
    assert outcome.kind == "crashed"
    assert outcome.detail.startswith("ValueError at examples.py:")  # where the evaluator lives
    assert "jane" not in outcome.detail


def test_failures_are_logged_once_a_batch_and_without_text(caplog: pytest.LogCaptureFixture) -> None:
    def score(rows: Sequence[Answer]) -> Iterable[Outcome]:
        raise RuntimeError(rows[0].answer)

    with caplog.at_level(logging.WARNING):
        run_all(ready(scoring(score)), [trace(i, "secret words") for i in range(8)], batch())
    [record] = caplog.records
    assert "custom failed on 8 of 8 records: crashed: RuntimeError at " in record.getMessage()
    assert "secret" not in caplog.text


def test_a_batch_that_fails_where_no_record_does_is_told(caplog: pytest.LogCaptureFixture) -> None:
    [outcomes] = run_all(ready(scoring(lambda rows: [Scored({"value": 1.0})])), [trace(0), trace(1)], batch())
    assert outcomes == [Scored({"value": 1.0})] * 2
    assert "custom failed on records together and on none alone" in caplog.text


@pytest.mark.parametrize("extra", [-1, 1, 10**9])
def test_too_few_and_too_many_outcomes_are_failures(extra: int) -> None:
    def score(rows: Sequence[Answer]) -> Iterator[Outcome]:
        wrong = any(row.answer == "bad" for row in rows)
        for _ in range(len(rows) + (extra if wrong else 0)):
            yield Scored({"value": 0.5})

    [outcomes] = run_all(ready(scoring(score)), [trace(i, "bad" if i == 5 else "good") for i in range(9)], batch())
    word = "fewer" if extra < 0 else "more"
    assert outcomes[5] == Failed("contract", f"gave {word} outcomes than records")
    assert outcomes[:5] + outcomes[6:] == [Scored({"value": 0.5})] * 8


def careless(metrics: Any, **more: Any) -> Scored:
    """As a plug-in makes it that nobody type-checked."""
    return Scored(metrics, **more)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (Scored({"value": math.nan}), "value is nan, outside"),
        (Scored({"value": math.inf}), "value is inf, outside"),
        (Scored({"value": 1.0000001}), "value is 1.0000001, outside"),
        (Scored({"value": -0.1}), "value is -0.1, outside"),
        (Scored({}), "metric value is missing"),
        (careless({"value": None}), "metric value is missing"),
        (careless({"value": "0.5"}), "metric value is a str"),
        (Scored({"value": 0.5, "other": 0.5}), "1 metrics are not declared (valid: value, maybe)"),
        (Scored({"value": 0.5, "maybe": math.nan}), "maybe is nan"),
        (careless({"value": 0.5, "maybe": None}), "maybe is missing"),
        (Scored({"value": 0.5}, parts={"tp": math.inf}), "parts must be finite"),
        (careless({"value": 0.5}, parts={3: 1.0}), "parts must be finite numbers by name"),
        (Scored({"value": 0.5}, categories={"language": "x" * 101}), "categories must be"),
        (Scored({"value": 0.5}, evidence=(Evidence("anwser", 0, 1),)), "evidence must point"),
        (Scored({"value": 0.5}, evidence=(Evidence("answer", 2, 1),)), "evidence must point"),
        (Scored({"value": 0.5}, evidence=(Evidence("answer", 0, 1, score=math.nan),)), "evidence must have"),
        (Scored({"value": 0.5}, findings=(Finding("Not A Slug", ""),)), "its finding's kind is not a slug"),
        (NotApplicable("too short: jane"), "its reason is not a slug"),
        (Failed("oh no", ""), "its kind is not a slug"),
        (0.5, "gave a float, not a Scored"),
        (None, "gave a NoneType"),
    ],
)
def test_what_breaks_the_contract_is_failed_and_never_a_number(wrong: Any, says: str) -> None:
    metrics = [Metric("value", primary=True), Metric("maybe", optional=True)]
    [outcomes] = run_all(
        ready(scoring(lambda rows: [wrong if r.answer == "bad" else Scored({"value": 1.0}) for r in rows], metrics)),
        [trace(0, "good"), trace(1, "bad")],
        batch(),
    )
    assert outcomes[0] == Scored({"value": 1.0})
    assert isinstance(outcomes[1], Failed)
    assert outcomes[1].kind == "contract"
    assert says in outcomes[1].detail


@pytest.mark.parametrize("hopeless", [careless(None), careless([1.0]), careless({"value": 1.0}, evidence=(3,))])
def test_an_outcome_that_cannot_even_be_looked_at_is_failed(hopeless: Scored) -> None:
    [outcomes] = run_all(ready(scoring(lambda rows: [hopeless] * len(rows))), [trace(0)], batch())
    assert isinstance(outcomes[0], Failed)


def test_numbers_of_numpy_become_plain_floats() -> None:
    numbers = careless({"value": np.float32(0.5)}, parts={"tp": np.int64(3)})
    score = scoring(lambda rows: [numbers for _ in rows])
    [[outcome]] = run_all(ready(score), [trace()], batch())
    assert isinstance(outcome, Scored)
    assert (type(outcome.metrics["value"]), type(outcome.parts["tp"])) == (float, float)
    assert outcome == Scored({"value": 0.5}, parts={"tp": 3.0})


@pytest.mark.parametrize("edge", [0.0, 1.0])
def test_edges_of_a_range_are_inside_it(edge: float) -> None:
    [[outcome]] = run_all(ready(scoring(lambda rows: [Scored({"value": edge})])), [trace()], batch())
    assert outcome == Scored({"value": edge})


@pytest.mark.parametrize(
    ("budget", "fits", "too_long"),
    [
        (Budget(characters=10), "x" * 10, "x" * 11),
        (Budget(sentences=2), "One. Two.", "One. Two. Three."),
        (Budget(tokens=3), "a b c", "a b c d"),
    ],
)
def test_input_beyond_the_budget_is_not_applicable(budget: Budget, fits: str, too_long: str) -> None:
    score = scoring(lambda rows: [Scored({"value": 1.0}) for _ in rows], budget=budget)
    [outcomes] = run_all(ready(score), [trace(0, too_long), trace(1, fits, question="not an input " * 99)], batch())
    assert outcomes == [NotApplicable("too_long"), Scored({"value": 1.0})]


def test_a_text_that_cannot_be_named_for_embedding_costs_its_own_record_only() -> None:
    def embeds(row: Answer, shared: Shared, params: BaseModel) -> list[str]:
        return [row.answer[int(row.answer)]]

    @evaluator(
        "named",
        version=1,
        domain="generation",
        method="embedding",
        inputs=Answer,
        metrics=[Metric("value")],
        needs={Need.EMBEDDING},
        embeds=embeds,
    )
    def named(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Iterator[Outcome]:
        """Nothing much."""
        yield from (Scored({"value": 1.0}) for _ in rows)

    resources = Resources(HashingEncoder())
    [outcomes] = run_all(ready(named, resources=resources), [trace(0, "0"), trace(1, "9")], resources.batch())
    assert outcomes[0] == Scored({"value": 1.0})
    assert isinstance(outcomes[1], Failed)
    assert outcomes[1].detail.startswith("IndexError at test_run.py:")


@dataclass(frozen=True)
class Particular:
    answer: str

    def __post_init__(self) -> None:
        if self.answer == "bad":
            raise ValueError(self.answer)


def test_inputs_that_refuse_a_record_cost_that_record_only() -> None:
    @evaluator(
        "particular", version=1, domain="generation", method="rule", inputs=Particular, metrics=[Metric("value")]
    )
    def particular(rows: Sequence[Particular], shared: Shared, params: BaseModel) -> Iterator[Outcome]:
        """Takes what it takes."""
        yield from (Scored({"value": 1.0}) for _ in rows)

    [outcomes] = run_all(ready(particular), [trace(0, "bad"), trace(1, "good")], batch())
    assert isinstance(outcomes[0], Failed)
    assert outcomes[0].detail.startswith("ValueError at test_run.py:")
    assert outcomes[1] == Scored({"value": 1.0})


class PickyEncoder(HashingEncoder):
    def encode(self, texts: Sequence[str]) -> Any:
        if any("poison" in text for text in texts):
            raise RuntimeError(texts[0])
        return super().encode(texts)


def test_a_text_that_the_encoder_cannot_take_costs_its_own_record_only() -> None:
    resources = Resources(PickyEncoder())
    traces = [asked(i, f"question {i}", "poison" if i == 3 else "chunk") for i in range(8)]
    [outcomes] = run_all(ready(nearness, resources=resources), traces, resources.batch())
    assert [i for i, outcome in enumerate(outcomes) if isinstance(outcome, Failed)] == [3]
    assert sum(isinstance(outcome, Scored) for outcome in outcomes) == 7


class PanicException(BaseException):
    """As libraries in Rust raise it: no `Exception`, and a class that nobody can import."""


def test_the_panic_of_a_native_library_costs_its_own_record_only() -> None:
    def score(rows: Sequence[Answer]) -> Iterable[Outcome]:
        if any(row.answer == "bad" for row in rows):
            raise PanicException
        return [Scored({"value": 0.5}) for _ in rows]

    class Panics(HashingEncoder):
        def encode(self, texts: Sequence[str]) -> Vectors:
            if "bad" in texts:
                raise PanicException
            return super().encode(texts)

    [outcomes] = run_all(ready(scoring(score)), [trace(0, "good"), trace(1, "bad")], batch())
    assert [type(outcome) for outcome in outcomes] == [Scored, Failed]
    resources = Resources(Panics())
    traces = [asked(0, "question", "good"), asked(1, "question", "bad")]
    [outcomes] = run_all(ready(nearness, resources=resources), traces, resources.batch())
    assert [type(outcome) for outcome in outcomes] == [Scored, Failed]


def test_no_traces_and_no_evaluators_are_fine() -> None:
    assert run_all(ready(brevity), [], batch()) == [[]]
    assert run_all((), [trace()], batch()) == []


def test_an_interrupt_is_not_swallowed() -> None:
    def score(rows: Sequence[Answer]) -> Iterable[Outcome]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(ready(scoring(score)), [trace()], batch())
