"""Calls that several evaluators need are sent once, and all conversations are held at the same time."""

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.judge.calls import Answer, Asker, Conversation, Done, JudgeCall, JudgeUse, Section, TraceCalls
from ragtide.evaluators.judge.driver import Driver, Held, Key, Replies
from ragtide.evaluators.judge.hashing import HashingJudge
from ragtide.evaluators.judge.replies import Texts
from ragtide.evaluators.judge.steps import together
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.registry import load
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Shared
from tests.evaluators.builtin.golden import traces as golden_traces
from tests.evaluators.builtin.scoring import trace

JUDGES = {id: one for id, one in load().items() if one.judge is not None}


def run(ids: list[str], judge: HashingJudge) -> int:
    plan = [PreparedEvaluator(JUDGES[id], JUDGES[id].params(), "f", ()) for id in ids]
    outcomes = run_all(plan, list(golden_traces().values()), Resources(HashingEncoder(), judge=judge).batch())
    assert not [one for column in outcomes for one in column if isinstance(one, Failed)]
    assert any(isinstance(one, Scored) for column in outcomes for one in column)
    return len(judge.calls)


def test_evaluators_together_save_two_calls_in_five() -> None:
    rag = [
        "answer_correctness",
        "answer_relevance_statements",
        "answer_relevancy",
        "context_precision",
        "context_recall",
    ]
    rag += ["context_relevance", "context_relevancy", "faithfulness", "noise_sensitivity", "ragas"]
    alone = sum(run([id], HashingJudge()) for id in rag)
    judge = HashingJudge()
    shared = run(rag, judge)
    assert len(set(judge.calls)) == shared, "no call is sent twice"
    assert shared <= 0.6 * alone, (shared, alone)


def call(text: str) -> JudgeCall:
    return JudgeCall("statements", (Section("text", text),), Texts)


class SlowJudge(HashingJudge):
    """Replies after a while, from other threads."""

    def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
        threading.Timer(0.2, super().submit, (call, asker, done)).start()


def two_steps(name: str) -> Conversation[tuple[str, ...]]:
    [first] = yield [call(f"{name} one")]
    second, third = yield [call(f"{first.texts[0]} two"), call("the same")]
    return (*second.texts, *third.texts)


def test_conversations_are_held_at_the_same_time() -> None:
    judge, replies = SlowJudge(), dict[Key, Answer]()
    held = [Held(two_steps(f"n{at}"), Asker("e", TraceCalls("shop"))) for at in range(40)]
    start = time.monotonic()
    Driver(judge, replies).hold(held)
    assert time.monotonic() - start < 3, "40 times two steps of 0.2 s"
    assert [one.result for one in held] == [(f"n{at} one two", "the same") for at in range(40)]
    assert len(judge.calls) == 81


def test_a_limit_of_one_application_leaves_equal_calls_of_another() -> None:
    class Limited(HashingJudge):
        def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
            if asker.trace.app == "spent":
                done(NotApplicable("over_budget"))
            else:
                super().submit(call, asker, done)

    replies: Replies = {}
    held = [Held(two_steps("n"), Asker("e", TraceCalls(app))) for app in ("spent", "rich")]
    Driver(Limited(), replies).hold(held)
    assert [one.result for one in held] == [NotApplicable("over_budget"), ("n one two", "the same")]


def test_an_error_and_a_failed_call_end_only_their_own_conversations() -> None:
    class Failing(HashingJudge):
        def submit(self, call: JudgeCall, asker: Asker, done: Done) -> None:
            if "bad" in str(call.sections[0].text):
                done(Failed("judge_reply", "unreadable"))
            else:
                super().submit(call, asker, done)

    closed: list[str] = []

    def failing() -> Conversation[str]:
        try:
            yield [call("good"), call("bad")]
        finally:
            closed.append("yes")
        return "never"

    def crashing() -> Conversation[str]:
        yield [call("good")]
        raise ZeroDivisionError

    def none() -> Conversation[str]:
        yield []
        return "no calls"

    asker = Asker("e", TraceCalls("shop"))
    made: list[Conversation[object]] = [failing(), crashing(), none(), two_steps("x")]
    held = [Held(one, asker) for one in made]
    replies: Replies = {}
    Driver(Failing(), replies).hold(held)
    assert [one.result for one in held] == [
        Failed("judge_reply", "unreadable"),
        None,
        "no calls",
        ("x one two", "the same"),
    ]
    assert closed == ["yes"]
    assert [type(one.error) for one in held] == [type(None), ZeroDivisionError, type(None), type(None)]


def test_together_gives_each_its_own_replies() -> None:
    def found() -> Iterator[object]:
        return (yield from together(two_steps("a"), two_steps("b"), together()))  # type: ignore[return-value]  # mypy: a generator

    held = Held(found(), Asker("e", TraceCalls("shop")))  # type: ignore[arg-type]  # as above
    Driver(HashingJudge(), {}).hold([held])
    assert held.result == [("a one two", "the same"), ("b one two", "the same"), []]


@pytest.mark.parametrize("id", sorted(JUDGES))
def test_scores_do_not_depend_on_who_else_asks(id: str) -> None:
    traces = list(golden_traces().values())

    def outcomes(ids: list[str]) -> list[object]:
        plan = [PreparedEvaluator(JUDGES[one], JUDGES[one].params(), "f", ()) for one in ids]
        return list(run_all(plan, traces, Resources(HashingEncoder(), judge=HashingJudge()).batch())[ids.index(id)])

    assert outcomes([id]) == outcomes(sorted(JUDGES))


def no_generator(row: Any, shared: Shared, params: Any) -> Any:
    """A plain function: it raises before it returns a conversation, or returns something else."""
    if row.answer == "error":
        raise ZeroDivisionError
    return two_steps(row.answer) if row.answer != "list" else iter([[call("a")]])


def test_a_conversation_that_is_none_fails_only_its_record() -> None:
    own = JUDGES["faithfulness"]

    def score(rows: Sequence[Any], shared: Shared, params: Any) -> Iterator[Outcome]:
        for row in rows:
            given = shared.judge(no_generator(row, shared, params))
            yield given if isinstance(given, Outcome) else NotApplicable("never")

    plain = replace(
        own,
        judge=JudgeUse(own.judge.prompts if own.judge else (), no_generator),
        score=score,
    )
    plan = [PreparedEvaluator(plain, own.params(), "f", ()), PreparedEvaluator(own, own.params(), "f", ())]
    traces = [trace(answer=answer, contexts=["a"]) for answer in ("good", "error", "list", "good too")]
    mine, others = run_all(plan, traces, Resources(HashingEncoder(), judge=HashingJudge()).batch())
    assert [getattr(one, "kind", "fine") for one in mine] == ["fine", "crashed", "crashed", "fine"]
    assert not [one for one in others if isinstance(one, Failed)]
