"""The forms of a reply of an agent that checks facts: a request for a tool, or the verdict."""

import math
from typing import Annotated, ClassVar, Literal, Self

from msgspec import Meta

from ragtide.evaluators.judge.replies import JudgeReply

Tool = Literal["search", "calculator"]
NO_SCORE_REASONS = ("no_claims", "not_confirmed")
_NOTHING = ("", "none", "null")
_NoScoreReason = Annotated[str, Meta(extra_json_schema={"enum": list(NO_SCORE_REASONS)})]


class FactVerdict(JudgeReply, frozen=True):
    """The verdict. The summary comes first, so that the score follows from it. No claim that is right or wrong: no
    score, and the reason.
    """

    evaluation_summary: str
    evaluation_score: float | None = None
    no_score_reason: _NoScoreReason | None = None
    single_object: ClassVar[bool] = True  # as of steps

    @property
    def unscored(self) -> str | None:
        """The reason that there is no score, or None if there is one."""
        return _word(self.no_score_reason)

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """A summary with a score from 0 to 1, or with the reason that there is none."""
        score, reason = self.evaluation_score, self.unscored
        if score is None and reason is None:
            return "it has no evaluation_score and no no_score_reason"
        if score is None and reason not in NO_SCORE_REASONS:
            return f"its no_score_reason is not one of {', '.join(NO_SCORE_REASONS)}"
        if score is not None and reason is not None:
            return "it has an evaluation_score and a no_score_reason"
        if score is not None and not (math.isfinite(score) and 0 <= score <= 1):
            return "its evaluation_score is not from 0 to 1"
        return None if self.evaluation_summary.strip() else "it has no evaluation_summary"

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """A random score."""
        return cls("a sample", bits % 101 / 100)


class AgentStep(JudgeReply, frozen=True):
    """Base of steps: a tool with its input, or the verdict. A reply with both is a request: it is not finished.

    A reply of several objects is none: the model made up the result of its request, and a verdict on it.
    """

    tool: str | None = None
    input: str | None = None
    evaluation_summary: str | None = None
    evaluation_score: float | None = None
    no_score_reason: _NoScoreReason | None = None
    tools: ClassVar[tuple[Tool, ...]] = ()
    single_object: ClassVar[bool] = True

    @property
    def wanted(self) -> str | None:
        """The tool, or None if the step is the verdict."""
        return _word(self.tool)

    @property
    def verdict(self) -> FactVerdict:
        """The verdict of a step that wants no tool."""
        return FactVerdict(self.evaluation_summary or "", self.evaluation_score, self.no_score_reason)

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """A tool that exists, with an input; or a verdict."""
        if self.wanted is None:
            return self.verdict.fault(counts)
        if self.wanted not in self.tools:
            return f"its tool is not one of {', '.join(self.tools)}"
        return None if (self.input or "").strip() else "its tool has no input"

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """A random tool, or a random score."""
        if bits & 1:
            return cls(cls.tools[bits // 2 % len(cls.tools)], "2 * 3")
        return cls(evaluation_summary="a sample", evaluation_score=bits % 101 / 100)


class SearchOrCalculate(AgentStep, frozen=True):
    """A step with both tools."""

    tool: Annotated[str, Meta(extra_json_schema={"enum": ["search", "calculator"]})] | None = None
    tools: ClassVar[tuple[Tool, ...]] = ("search", "calculator")


class Search(AgentStep, frozen=True):
    """A step that may search."""

    tool: Annotated[str, Meta(extra_json_schema={"enum": ["search"]})] | None = None
    tools: ClassVar[tuple[Tool, ...]] = ("search",)


class Calculate(AgentStep, frozen=True):
    """A step that may calculate."""

    tool: Annotated[str, Meta(extra_json_schema={"enum": ["calculator"]})] | None = None
    tools: ClassVar[tuple[Tool, ...]] = ("calculator",)


def step_with(tools: tuple[Tool, ...]) -> type[AgentStep]:
    """Return the form of a step with these tools, at least one."""
    forms: tuple[type[AgentStep], ...] = (SearchOrCalculate, Search, Calculate)
    return next(form for form in forms if set(form.tools) == set(tools))


def _word(text: str | None) -> str | None:
    word = (text or "").strip().lower()
    return None if word in _NOTHING else word
