"""Settings of sampling: which share of traces each evaluator scores."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import BaseModel, Field

from ragtide.evaluators.spec import Evaluator, Lane

Rate = Annotated[float, Field(ge=0, le=1)]


class SamplingRule(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """The share of some traces. What is not set matches everything."""

    app: str | None = Field(default=None, description="Application.")
    evaluators: tuple[str, ...] = Field(default=(), description="Ids of evaluators. Empty: all.")
    segments: dict[str, str] = Field(default={}, description="Segments that the trace must have, by name.")
    rate: Rate = Field(description="Share of these traces to evaluate. 0 turns the evaluators off for them.")

    def matches(self, app: str, segments: Mapping[str, str]) -> bool:
        """Whether a trace of the application with these segments is meant."""
        return self.app in (None, app) and self.segments.items() <= segments.items()


class AlwaysSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Traces that are in every sample."""

    errors: bool = Field(default=False, description="Evaluate every trace with an error.")
    thumbs_down: bool = Field(
        default=False,
        description="Have judges score traces that somebody labels with a thumbs-down and that they have not scored. "
        "Such a score is in no window. It needs privacy.store_texts = full.",
    )
    worse_than: dict[str, float] = Field(
        default={},
        description="Lane judge: judge every trace with a worse score than this, by cheap metric, e.g. "
        '"support.support" = 0.3.',
    )


class UnsureSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Scores of a cheap metric that say little, and how much more often their traces are judged."""

    at: float = Field(description="Score that says least, such as the threshold of the metric.")
    within: float = Field(gt=0, description="Distance from `at` where the share is the usual one.")
    times: float = Field(default=4.0, ge=1, le=100, description="Factor of the share at `at`; it falls off linearly.")

    def factor(self, score: float) -> float:
        """Factor of the share of a trace with this score."""
        return 1.0 + (self.times - 1.0) * max(0.0, 1.0 - abs(score - self.at) / self.within)


class SamplingSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Share of traces that is evaluated. The choice depends on the trace id, so that samples of evaluators overlap."""

    lanes: dict[Lane, Rate] = Field(
        default={},
        description="Share of traces to evaluate, by lane, e.g. judge = 0.05. Other lanes evaluate every trace.",
    )
    evaluators: dict[str, Rate] = Field(
        default={}, description="Share of traces to evaluate, by evaluator. Overrides the share of its lane."
    )
    rules: tuple[SamplingRule, ...] = Field(
        default=(),
        description="Shares of some traces: tables with app, evaluators, segments and rate. The first that matches "
        "holds, before `evaluators` and `lanes`.",
    )
    first_per_hour: dict[str, Annotated[int, Field(ge=1, le=1000)]] = Field(
        default={},
        description="Evaluate the first so many traces of every hour, in each process, for each value of a segment, "
        "e.g. tenant = 5, so that rare values are not missed. By segment; evaluators with a share of 0 stay off.",
    )
    unsure: dict[str, UnsureSettings] = Field(
        default={},
        description="Lane judge: judge more of the traces whose cheap score says little, by cheap metric, e.g. "
        '"support.support" = { at = 0.5, within = 0.3, times = 4 }. Of several metrics the largest factor holds.',
    )
    always: AlwaysSettings = Field(
        default=AlwaysSettings(), description="Traces that every evaluator scores whose share is not 0."
    )

    @property
    def cheap_metrics(self) -> dict[str, str]:
        """Metrics that decide which traces are judged, as `evaluator.metric`, with their setting."""
        unsure = dict.fromkeys(self.unsure, "sampling.unsure")
        return unsure | dict.fromkeys(self.always.worse_than, "sampling.always.worse_than")

    def weighs(self, evaluator: Evaluator) -> bool:
        """Whether scores of the evaluator may stand for others, so that they need weights."""
        return any(rate < 1 for rate in self._rates(evaluator))

    def draws(self, evaluator: Evaluator) -> bool:
        """Whether the evaluator scores any trace."""
        return any(rate > 0 for rate in self._rates(evaluator))

    def _rates(self, evaluator: Evaluator) -> Iterator[float]:
        """Yield the shares that some trace of the evaluator may have."""
        yield self.evaluators.get(evaluator.id, self.lanes.get(evaluator.lane, 1.0))
        yield from (rule.rate for rule in self.rules if not rule.evaluators or evaluator.id in rule.evaluators)

    def highest_rate(self, lane: Lane) -> float:
        """Return the highest share of an evaluator of the lane, about."""
        rate = max(self.lanes.get(lane, 1.0), *self.evaluators.values(), *(rule.rate for rule in self.rules), 0.0)
        times = max((unsure.times for unsure in self.unsure.values()), default=1.0) if lane == "judge" else 1.0
        return min(1.0, rate * times)
