"""Settings of windows, rules and jobs. Read by `stream.settings` only."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from evaluators.spec import Rule

Severity = Literal["low", "medium", "high"]
Seconds = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class WindowSettings(BaseModel, extra="forbid", frozen=True):
    """How scores are gathered into windows of event time, and when a window closes."""

    base_s: Seconds = Field(
        default=60, description="Size of the windows that rules judge; hours and days are made of them."
    )
    sizes_s: tuple[Seconds, ...] = Field(
        default=(60, 3600, 86400),
        description="Sizes kept besides the base, each a multiple of the one before; all divide a day.",
    )
    out_of_orderness_s: float = Field(
        default=30.0, ge=0, description="How far event times of a partition may be out of order."
    )
    allowed_lateness_s: float = Field(
        default=3600.0, ge=0, description="Late rows of a window closed so long ago change its numbers and never page."
    )
    heartbeat_timeout_s: float = Field(
        default=30.0, gt=0, description="A partition whose worker was silent for so long is stuck, not idle."
    )
    idle_after_s: float = Field(
        default=10.0,
        ge=0,
        description="A partition with lag 0 and nothing new for so long is idle and holds nothing back.",
    )
    stuck_wait_s: float = Field(
        default=300.0,
        gt=0,
        description="Longest windows wait for a stuck partition; then they close and say incomplete.",
    )
    partition_expiry_s: float = Field(
        default=86400.0, gt=0, description="A partition that no worker has spoken of for so long is gone."
    )
    segments: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Segments that primary metrics are cut by: name = values, the others count as __other__; an empty "
        "list: those with most traces, chosen once a day.",
    )
    segment_values: int = Field(
        default=20, ge=1, le=1000, description="How many values of a segment without listed ones are chosen, per app."
    )

    @model_validator(mode="after")
    def _nested(self) -> "WindowSettings":
        sizes = self.all_sizes_s
        for smaller, larger in pairwise(sizes):
            if larger % smaller:
                raise ValueError(
                    f"sizes_s: {larger} is not a multiple of {smaller}; windows must nest (base_s, sizes_s)"
                )
        if 86400 % sizes[-1]:
            raise ValueError(f"sizes_s: {sizes[-1]} does not divide a day (86400)")
        return self

    @property
    def all_sizes_s(self) -> tuple[int, ...]:
        """Every size that is stored, the base first, ascending."""
        return tuple(sorted({self.base_s, *self.sizes_s}))


class RuleOverride(BaseModel, extra="forbid", frozen=True):
    """What differs from the defaults for one metric; of several that fit a series the most specific field wins."""

    metric: str = Field(description="evaluator.metric, e.g. operations.latency_seconds.")
    app: str | None = Field(default=None, description="Only this app; absent: every app.")
    segment: str | None = Field(default=None, description="Only this segment ('' is the whole); absent: all.")
    segment_value: str | None = Field(default=None, description="Only this value of the segment; absent: all.")
    enabled: bool = Field(default=True, description="False: no rule watches this metric.")
    rule: Rule | None = Field(default=None, description="How a window is judged: mean, share, value or any.")
    min: float | None = Field(default=None, description="Least good value of a record (rule value: of the window).")
    max: float | None = Field(default=None, description="Greatest good value of a record (rule value: of the window).")
    limit: Share | None = Field(
        default=None, description="Rule share: greatest good share of records beyond min or max."
    )
    min_sample: int | None = Field(
        default=None, ge=1, description="Windows are pooled until they have so many scored records."
    )
    k: int | None = Field(default=None, ge=1, description="Opens where k of the last m windows are bad.")
    m: int | None = Field(default=None, ge=1, description="See k.")
    resolve_after: int | None = Field(default=None, ge=1, description="Resolves after so many good windows in a row.")
    severity: Severity | None = Field(default=None, description="Instead of what the share of bad records says.")
    allow_kinds: tuple[str, ...] = Field(
        default=(), description="Rule any: evidence of these kinds does not count, e.g. email."
    )
    allow_texts: tuple[str, ...] = Field(
        default=(),
        description="Rule any: evidence whose text fits one of these patterns does not count, e.g. *@acme.example; "
        "needs stored texts.",
    )


class RuleSettings(BaseModel, extra="forbid", frozen=True):
    """When a window is bad and when bad windows are a problem."""

    primary_only: bool = Field(
        default=True, description="Watch primary metrics; others only where an override names them."
    )
    min_sample: int = Field(default=30, ge=1, description="Windows are pooled until they have so many scored records.")
    k: int = Field(default=3, ge=1, description="A problem opens where k of the last m windows are bad.")
    m: int = Field(default=5, ge=1, description="See k.")
    resolve_after: int = Field(default=5, ge=1, description="It resolves after so many good windows in a row.")
    any_resolve_after_s: float = Field(
        default=3600.0, gt=0, description="Rule any: resolves after so long without a bad record."
    )
    flap_s: float = Field(
        default=1800.0, ge=0, description="Back within so long after its resolution, it is the same episode."
    )
    share_limit: Share = Field(
        default=0.05, description="Rule share: greatest good share of records beyond the threshold."
    )
    fairness_share_limit: Share = Field(default=0.01, description="The same for evaluators of the domain fairness.")
    coverage_limit: Share = Field(
        default=0.2, description="A coverage problem opens where a greater share of the records to be scored was not."
    )
    missing_after_s: float | None = Field(
        default=900.0, gt=0, description="A live app that was busy and is silent for so long is a problem."
    )
    severity_high: Share = Field(default=0.25, description="High from this share of records on the wrong side.")
    severity_medium: Share = Field(default=0.05, description="Medium from this share.")
    update_every_s: float = Field(
        default=300.0, ge=0, description="An open problem's figures are stated anew at most so often."
    )
    overrides: tuple[RuleOverride, ...] = Field(default=(), description="What differs per metric, app and segment.")

    @model_validator(mode="after")
    def _k_of_m(self) -> "RuleSettings":
        for name, k, m in [
            ("rules", self.k, self.m),
            *((o.metric, o.k or self.k, o.m or self.m) for o in self.overrides),
        ]:
            if k > m:
                raise ValueError(f"{name}: k = {k} of m = {m} can never be reached; k must be at most m")
        return self


class JobSettings(BaseModel, extra="forbid", frozen=True):
    """How often the scheduled jobs run."""

    every_s: float = Field(default=10.0, gt=0, description="Roll-up of windows, rules and announcements.")
    reconcile_every_s: float = Field(
        default=60.0,
        gt=0,
        description="Looks for traces sent again with another time or app, and for apps and lanes that stopped.",
    )
    insights_every_s: float = Field(default=3600.0, gt=0, description="Insights.")
    insights_period_s: float = Field(default=86400.0, gt=0, description="The period an insight speaks of.")
    insights_questions: int = Field(
        default=10, ge=1, le=1000, description="How many of the weakest questions are stated."
    )
    insights_min_traces: int = Field(default=3, ge=1, description="Questions asked less often are left out.")
    live_after_s: float = Field(
        default=120.0, gt=0, description="/live fails where a leader has finished no job for so long."
    )
