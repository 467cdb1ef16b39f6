"""`check_evaluator` passes what is sound and finds what is not; every registered evaluator passes it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from pydantic import BaseModel

from ragtide.evaluators.checks import check_evaluator, same
from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Evidence, Failed, Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator, models_of
from ragtide.evaluators.registry import load
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Evaluator, Metric, Need, Shared, evaluator
from ragtide.evaluators.trace import Chunk, Latency, Tokens, Trace
from tests.evaluators.builtin import golden
from tests.evaluators.engine.examples import Answer, asked, brevity, nearness, scoring, trace

IDS = sorted(load())
NUMBERS = itertools.count()
EVERY: dict[str, Evaluator] = {**load(), "brevity": brevity, "nearness": nearness}


@cache
def resources() -> Resources:
    refs = {ref for one in EVERY.values() for ref in models_of(one, one.params())}
    return Resources(HashingEncoder(), models={ref: HashingModel(ref) for ref in refs}, judge=HashingJudge())


@pytest.mark.parametrize("id", sorted(EVERY))
def test_every_evaluator_keeps_the_contract(id: str) -> None:
    """Some look at traces of a kind only, which no specimen is."""
    check_evaluator(EVERY[id], tuple(golden.traces().values()))


sentences = st.sampled_from(
    ["The router resets.", "Hold the button!", "It repeats. It repeats.", "jane@example.org", "1. One", "a", "", " ..."]
)
anything = st.text(st.characters() | st.sampled_from("\ud800\udfff\0.!? \n@1"), max_size=60)
written = st.lists(sentences, max_size=4).map(" ".join) | anything
maybe = st.none() | written
chunks = st.builds(
    Chunk, id=st.sampled_from(["a", "b"]), text=maybe, score=st.none() | st.floats(-5, 5), rank=st.none() | st.just(1)
)
traces = st.builds(
    Trace,
    trace_id=st.uuids().map(str),
    time=st.just(trace().time),
    app=st.just("app"),
    question=maybe,
    answer=maybe,
    contexts=st.none() | st.lists(chunks, max_size=3).map(tuple),
    expected=st.none() | st.lists(written, max_size=2).map(tuple),
    condition=st.none() | st.sampled_from(['"router" OR regexp("[.!]")', 'NOT "a"', '"a" AND NOT b', "((", ""]),
    constraints=st.none() | st.sampled_from([("router",), (["a", "REGEXP:b"],), (3,), ()]),
    latency=st.none() | st.builds(Latency, total_s=st.none() | st.floats(0, 100)),
    tokens=st.none() | st.builds(Tokens, input=st.none() | st.integers(0, 10**6)),
    cost_usd=st.none() | st.floats(0, 10),
    task=st.none() | st.sampled_from(["question_answering", "summarization", "agent"]),
)


@pytest.mark.parametrize("id", sorted(EVERY))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=st.lists(traces, max_size=6))
def test_a_batch_gives_what_its_traces_give_alone(id: str, batch: list[Trace]) -> None:
    plan = [PreparedEvaluator(EVERY[id], EVERY[id].params(), "f", EVERY[id].tasks)]
    [whole] = run_all(plan, batch, resources().batch())
    alone = [run_all(plan, [one], resources().batch())[0][0] for one in batch]
    assert all(same(a, b) for a, b in zip(whole, alone, strict=True)), list(zip(whole, alone, strict=True))
    assert not any(isinstance(outcome, Failed) and outcome.kind in ("crashed", "contract") for outcome in whole)


def test_one_batch_of_all_evaluators_is_what_each_gives_alone() -> None:
    batch = [asked(i, f"Question {i}?", "A chunk.", f"Chunk {i}. It has two.") for i in range(5)] + [trace(9)]
    plan = [PreparedEvaluator(e, e.params(), "f", ()) for e in EVERY.values()]
    together = run_all(plan, batch, resources().batch())
    for prepared, outcomes in zip(plan, together, strict=True):
        [alone] = run_all([prepared], batch, resources().batch())
        assert all(same(a, b) for a, b in zip(outcomes, alone, strict=True))


@pytest.mark.onnx
def test_a_batch_gives_what_its_traces_give_alone_with_the_real_encoder_too() -> None:
    """Its vectors move in the seventh digit with the batch they are in."""
    encoder = load_encoder(EncoderSettings(backend="onnx"))
    steps = "1. Hold the button.\n2. Wait ten seconds."
    batch = [
        structs.replace(
            asked(i, f"How do I reset router {i}?", steps, f"Router {i} is grey. " * (i + 1)),
            answer=f"{steps}\n3. Let router {i} go.",
            expected=("Hold it for ten seconds.",),
        )
        for i in range(8)
    ]
    embedding = [one for one in EVERY.values() if one.needs == {Need.EMBEDDING} and one.method == "embedding"]
    assert len(embedding) >= 9
    plan = [PreparedEvaluator(evaluator, evaluator.params(), "f", ()) for evaluator in embedding]
    whole = run_all(plan, batch, Resources(encoder).batch())
    alone = [run_all(plan, [one], Resources(encoder).batch()) for one in batch]
    for at in range(len(plan)):
        assert all(isinstance(outcome, Scored) for outcome in whole[at])
        assert all(same(a, b[at][0]) for a, b in zip(whole[at], alone, strict=True))


def broken(score: Any) -> Evaluator:
    return scoring(score, [Metric("value", high=1e9)])


def of(value: float) -> Scored:
    return Scored({"value": value})


@dataclass(frozen=True)
class Chunks:
    contexts: tuple[Chunk, ...]


def greedy() -> Evaluator:
    return replace(nearness, embeds=lambda row, shared, params: [row.question])


def meddling() -> Evaluator:
    @evaluator("m", version=1, domain="retrieval", method="rule", inputs=Chunks, metrics=[Metric("value")])
    def meddle(rows: Sequence[Chunks], shared: Shared, params: BaseModel) -> Iterator[Outcome]:
        """Writes to its input."""
        for row in rows:
            for chunk in row.contexts:
                metadata: Any = chunk.metadata
                metadata["seen"] = True
            yield of(1.0)

    return meddle


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (broken(lambda rows: [1 / 0 for _ in rows]), "crashed: ZeroDivisionError"),
        (broken(lambda rows: [of(float("nan")) for _ in rows]), "contract: metric value is nan"),
        (broken(lambda rows: [of(len(rows)) for _ in rows]), "another outcome alone"),
        (broken(lambda rows: [of(i) for i, _ in enumerate(rows)]), "another outcome in reverse order"),
        (broken(lambda rows: [of(float(next(NUMBERS))) for _ in rows]), "another outcome a second time"),
        (
            broken(lambda rows: [Scored({"value": 0.0}, findings=(Finding("x", row.answer[:80]),)) for row in rows]),
            "the outcome quotes the trace",
        ),
        (broken(lambda rows: [NotApplicable("never") for _ in rows]), "it scored none of the traces"),
        (broken(lambda rows: [of(1.0)]), "failed on a batch and on none"),
        (greedy(), "a batch needed"),
        (replace(nearness, embeds=None), "a batch needed"),
        (meddling(), "it changed its inputs"),
        (replace(brevity, version=0), "version must be 1"),
        (replace(nearness, needs=frozenset[Need]()), "method embedding needs"),
    ],
)
def test_what_is_wrong_is_found(wrong: Evaluator, says: str) -> None:
    with pytest.raises(AssertionError) as error:
        check_evaluator(wrong)
    assert says in str(error.value)
    assert f"evaluator {wrong.id!r} breaks its contract:\n- " in str(error.value)


def test_traces_of_ones_own_are_checked_too() -> None:
    def score(rows: Sequence[Answer]) -> Iterator[Outcome]:
        for row in rows:
            yield of(1.0) if row.answer == "mine" else NotApplicable("not_mine")

    with pytest.raises(AssertionError, match="scored none"):
        check_evaluator(scoring(score))
    check_evaluator(scoring(score), traces=[trace(0, "mine")])


def test_same_is_strict_but_for_rounding() -> None:
    one = Scored({"a": 0.5}, {"l": "en"}, {"tp": 1.0}, (Evidence("answer", 0, 1, score=0.5),), (Finding("x", "y"),))
    assert same(one, replace(one, metrics={"a": 0.5 + 1e-7}, evidence=(Evidence("answer", 0, 1, score=0.5 + 1e-7),)))
    assert same(NotApplicable("x"), NotApplicable("x"))
    assert same(None, None)
    for other in (
        replace(one, metrics={"a": 0.501}),
        replace(one, metrics={"b": 0.5}),
        replace(one, parts={"tp": 2.0}),
        replace(one, categories={"l": "de"}),
        replace(one, evidence=(Evidence("answer", 0, 2, score=0.5),)),
        replace(one, evidence=()),
        replace(one, findings=()),
        NotApplicable("x"),
        None,
    ):
        assert not same(one, other)
