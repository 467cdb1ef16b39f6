"""The forms of a reply of an agent that checks facts: a request for a tool, or the verdict."""

import math
from typing import Annotated, ClassVar, Literal, Self

from msgspec import Meta

from ragtide.evaluators.judge.replies import JudgeReply

Tool = Literal["search", "calculator"]
_NO_TOOL = ("", "none", "null")


class FactVerdict(JudgeReply, frozen=True):
    """The verdict. The summary comes first, so that the score follows from it."""

    evaluation_summary: str
    evaluation_score: float

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """A score from 0 to 1 with a summary."""
        return _verdict_fault(self.evaluation_summary, self.evaluation_score)

    @classmethod
    def sample(cls, counts: tuple[int, ...], texts: tuple[str, ...], bits: int) -> Self:
        """A random score."""
        return cls("a sample", bits % 101 / 100)


class AgentStep(JudgeReply, frozen=True):
    """Base of steps: a tool with its input, or the verdict. A reply with both is a request: it is not finished."""

    tool: str | None = None
    input: str | None = None
    evaluation_summary: str | None = None
    evaluation_score: float | None = None
    tools: ClassVar[tuple[Tool, ...]] = ()

    @property
    def wanted(self) -> str | None:
        """The tool, or None if the step is the verdict."""
        name = (self.tool or "").strip().lower()
        return None if name in _NO_TOOL else name

    @property
    def verdict(self) -> FactVerdict:
        """The verdict of a step that wants no tool."""
        assert self.evaluation_score is not None, "see `fault`"
        return FactVerdict(self.evaluation_summary or "", self.evaluation_score)

    def fault(self, counts: tuple[int, ...]) -> str | None:
        """A tool that exists, with an input; or a verdict."""
        if self.wanted is None:
            return _verdict_fault(self.evaluation_summary, self.evaluation_score)
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


def _verdict_fault(summary: str | None, score: float | None) -> str | None:
    if score is None:
        return "it has no evaluation_score"
    if not (math.isfinite(score) and 0 <= score <= 1):
        return "its evaluation_score is not from 0 to 1"
    return None if (summary or "").strip() else "it has no evaluation_summary"
