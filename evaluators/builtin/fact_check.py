from dataclasses import dataclass

from pydantic import BaseModel, Field

from ragtide.evaluators.judge.calculator import NotCalculable, calculate
from ragtide.evaluators.judge.calls import Conversation, JudgeCall, JudgeUse, SearchCall, Section
from ragtide.evaluators.judge.fact_replies import FactVerdict, Tool, step_with
from ragtide.evaluators.outcome import NotApplicable, Outcome, Scored
from ragtide.evaluators.spec import Budget, Metric, Need, Shared, evaluator

LONGEST_QUERY = 300  # characters that a search engine gets
LONGEST_SUMMARY = 2_000  # characters that are kept
BOTH: tuple[Tool, ...] = ("search", "calculator")


@dataclass(frozen=True, slots=True)
class Inputs:
    """The question and its answer."""

    question: str
    answer: str


class Params(BaseModel, frozen=True, extra="forbid"):
    """What the agent has, and how much it may do."""

    tools: tuple[Tool, ...] = Field(
        BOTH, min_length=1, description="Tools of the agent. search needs evaluators.judge.search.url."
    )
    max_steps: int = Field(8, ge=1, le=50, description="Uses of tools, after which the agent must give its verdict.")
    max_records_per_hour: int | None = Field(
        100,
        ge=1,
        description="Records that a process checks in an hour, of each application. Further ones are throttled.",
    )


def _converse(row: Inputs, shared: Shared, params: Params) -> Conversation[Outcome]:
    if not row.answer.strip():
        return NotApplicable("empty_answer")
    if not row.question.strip():
        return NotApplicable("empty_question")
    known = [Section("question", row.question), Section("answer", row.answer)]
    form = step_with(params.tools)
    for number in range(1, params.max_steps + 1):
        left = Section("steps left", str(params.max_steps - number + 1))
        [step] = yield [JudgeCall("fact_check", (*known, left), form)]
        if step.wanted is None:
            return _scored(step.verdict)
        asked = " ".join(step.input.split())
        found = yield from _use(step.wanted, asked)
        known += [
            Section(f"request {number}", (step.wanted, asked[:LONGEST_QUERY])),
            Section(f"result {number}", found),
        ]
    [verdict] = yield [JudgeCall("fact_check", tuple(known), FactVerdict)]
    return _scored(verdict)


def _use(tool: str, asked: str) -> Conversation[tuple[str, ...]]:
    """Use a tool and return what it finds, or why it finds nothing: the agent may ask otherwise."""
    if tool == "calculator":
        try:
            return (calculate(asked),)
        except NotCalculable as fault:
            return (f"no result: {fault}",)
    if len(asked) > LONGEST_QUERY:
        return (f"no result: the query is longer than {LONGEST_QUERY} characters",)
    [results] = yield [SearchCall(asked)]
    return results.texts or ("no page was found",)


def _scored(verdict: FactVerdict) -> Scored:
    summary = " ".join(verdict.evaluation_summary.split())
    return Scored({"fact_check": verdict.evaluation_score}, explanation=summary[:LONGEST_SUMMARY])


@evaluator(
    "fact_check",
    version=1,
    domain="generation",
    method="agent",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=[
        Metric(
            "fact_check",
            threshold=0.75,
            primary=True,
            description="share of the checked claims that an agent finds right",
        )
    ],
    needs={Need.JUDGE},
    judge=JudgeUse(
        ("fact_check",),
        _converse,
        records_per_hour=lambda params: params.max_records_per_hour,
        searches=lambda params: "search" in params.tools,
    ),
    budget=Budget(characters=40_000),  # every step sends them again
)
def fact_check(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """An agent checks the facts of the answer with a search engine and a calculator, step by step, and scores it from 0
    to 1. Its summary is the explanation of the score.
    """
    return shared.judge(_converse(row, shared, params))
