"""Settings of windows, rules and jobs. Read by `stream.settings` only."""

from itertools import pairwise
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, Field, model_validator

from drift.app_rules import AppRules, Count, Duration, Share
from drift.per_app import AppDrift, AppWindows
from evaluators.spec import Metric, RuleKind

Severity = Literal["low", "medium", "high"]
Seconds = Annotated[int, Field(ge=1)]
Of = TypeVar("Of", bound=BaseModel)


def laid_over(settings: Of, said: BaseModel | None) -> Of:
    """The settings with those in their place that are said of one application."""
    if said is None:
        return settings
    return settings.model_copy(update={name: getattr(said, name) for name in said.model_fields_set})


class WindowSettings(AppWindows, extra="forbid", frozen=True, allow_inf_nan=False):
    """How scores are gathered into windows of event time, and when a window closes."""

    base_s: Seconds = Field(
        default=60, description="Size of the windows that rules judge; hours and days are made of them."
    )
    sizes_s: tuple[Seconds, ...] = Field(
        default=(3600, 86400),
        description="Sizes kept besides the base, each a multiple of the one before, the first of base_s; all divide a "
        "day.",
    )
    out_of_orderness_s: Duration = Field(
        default=30.0, ge=0, description="How far event times of a partition may be out of order."
    )
    allowed_lateness_s: Duration = Field(
        default=3600.0, ge=0, description="Late rows of a window closed so long ago change its numbers and never page."
    )
    heartbeat_timeout_s: Duration = Field(
        default=30.0, gt=0, description="A partition whose worker was silent for so long is stuck, not idle."
    )
    idle_after_s: Duration = Field(
        default=10.0,
        ge=0,
        description="A partition with lag 0 and nothing new for so long is idle and holds nothing back.",
    )
    stuck_wait_s: Duration = Field(
        default=300.0,
        gt=0,
        description="Longest windows wait for a stuck partition; then they close and say incomplete.",
    )
    partition_expiry_s: Duration = Field(
        default=86400.0, gt=0, description="A partition that no worker has spoken of for so long is gone."
    )
    apps: dict[str, AppWindows] = Field(
        default={},
        description="What differs per app, in tables such as [windows.apps.docs-bot]: segments, in place of all of "
        "those above, and segment_values.",
    )

    def of(self, app: str) -> "WindowSettings":
        """The same, with what is said of this app in place of the defaults."""
        return laid_over(self, self.apps.get(app))

    @model_validator(mode="after")
    def _nested(self) -> "WindowSettings":
        sizes = self.all_sizes_s
        if sizes[0] < self.base_s:
            raise ValueError(
                f"sizes_s: {sizes[0]} is smaller than base_s = {self.base_s}, of which all others are made; "
                f"give sizes_s = {[size for size in self.sizes_s if size >= self.base_s]}"
            )
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


class RuleOverride(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """What differs from the defaults for one metric; of several that fit a series the most specific field wins."""

    metric: str = Field(description="evaluator.metric, e.g. operations.latency_seconds.")
    app: str | None = Field(default=None, description="Only this app; absent: every app.")
    segment: str | None = Field(default=None, description="Only this segment ('' is the whole); absent: all.")
    segment_value: str | None = Field(default=None, description="Only this value of the segment; absent: all.")
    enabled: bool = Field(default=True, description="False: no rule watches this metric.")
    rule: RuleKind | None = Field(default=None, description="How a window is judged: mean, share, value or any.")
    min: float | None = Field(default=None, description="Least good value of a record (rule value: of the window).")
    max: float | None = Field(default=None, description="Greatest good value of a record (rule value: of the window).")
    limit: Share | None = Field(
        default=None, description="Rule share: greatest good share of records beyond min or max."
    )
    failure_limit: Share | None = Field(
        default=None, description="Rule mean: greatest good share of records beyond min or max, whatever the mean."
    )
    min_sample: Count | None = Field(
        default=None, ge=1, description="Windows are pooled until they have so many scored records."
    )
    k: Count | None = Field(default=None, ge=1, description="Opens where k of the last m windows are bad.")
    m: Count | None = Field(default=None, ge=1, description="Of how many windows k must be bad for it to open.")
    resolve_after: Count | None = Field(default=None, ge=1, description="Resolves after so many good windows in a row.")
    severity: Severity | None = Field(default=None, description="Instead of what the share of bad records says.")
    allow_kinds: tuple[str, ...] = Field(
        default=(), description="Rule any: evidence of these kinds does not count, e.g. email."
    )
    allow_texts: tuple[str, ...] = Field(
        default=(),
        description="Rule any: evidence whose text fits one of these patterns does not count, e.g. *@acme.example; "
        "needs stored texts.",
    )


class LimitOverride(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """What differs from the limits of failures and findings; of several that fit the most specific wins."""

    app: str | None = Field(default=None, description="Only this app; absent: every app.")
    evaluator: str | None = Field(default=None, description="Only this evaluator; absent: all.")
    error_limit: Share | None = Field(default=None, description="Instead of rules.error_limit.")
    finding_traces: Count | None = Field(default=None, ge=1, description="Instead of rules.finding_traces.")
    finding_limit: Share | None = Field(default=None, description="Instead of rules.finding_limit.")


class Objective(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """A service-level objective: so great a share of the records is to be good, over so many days."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$",
        description="In problems, e.g. answers-in-time; of several of one name that of an app goes before that of all.",
    )
    enabled: bool = Field(default=True, description="False: it is not watched, for its app or for all.")
    metric: str = Field(description="evaluator.metric, e.g. operations.latency_seconds.")
    app: str | None = Field(default=None, description="Only this app; absent: every app, each by itself.")
    min: float | None = Field(default=None, description="Least good value of a record.")
    max: float | None = Field(
        default=None, description="Greatest good value; without min and max the metric's own threshold is the line."
    )
    target: float = Field(default=0.99, gt=0, lt=1, description="Share of the records that is to be good.")
    period_days: Count = Field(
        default=28,
        ge=3,
        le=365,
        description="The days that the error budget is for; the windows looked at go with them.",
    )

    def lines(self, metric: Metric) -> tuple[float | None, float | None]:
        """Least and greatest good value of a record of this metric."""
        if self.min is not None or self.max is not None:
            return self.min, self.max
        return (metric.threshold, None) if metric.better == "higher" else (None, metric.threshold)


class RuleSettings(AppRules, extra="forbid", frozen=True, allow_inf_nan=False):
    """When a window is bad and when bad windows are a problem."""

    asked_within_s: Duration = Field(
        default=86400.0, gt=0, description="Flips and inconsistency are told of the traces of so long."
    )
    disk_limit: Share = Field(default=0.85, description="Greatest good share of a disk of ClickHouse that is used.")
    dead_letters: Count = Field(
        default=30,
        ge=1,
        description="So many dead letters of a topic in an hour are a problem, where that is 3 times the usual.",
    )
    retention_share: Share = Field(
        default=0.5,
        description="Greatest age of the oldest record that waits for a lane, as a share of its topic's retention; "
        "above it a problem where it does not become younger.",
    )
    overrides: tuple[RuleOverride, ...] = Field(default=(), description="What differs per metric, app and segment.")
    limits: tuple[LimitOverride, ...] = Field(
        default=(), description="What differs of error_limit, finding_traces and finding_limit per app and evaluator."
    )
    objectives: tuple[Objective, ...] = Field(
        default=(), description="Service-level objectives; a problem tells that an error budget burns too fast."
    )

    apps: dict[str, AppRules] = Field(
        default={},
        description="What differs per app, in tables such as [rules.apps.docs-bot]: any of the settings of [rules] but "
        "asked_within_s, those of brokers and disks, and overrides, limits and objectives, which name their app.",
    )

    def of(self, app: str) -> "RuleSettings":
        """The same, with what is said of this app in place of the defaults."""
        return laid_over(self, self.apps.get(app))

    def objective(self, name: str, app: str) -> Objective | None:
        """The one of that name that holds for this app: its own, or that of all; None where it has none."""
        own = [one for one in self.objectives if one.name == name and one.app in (None, app)]
        said = max(own, key=lambda one: one.app is not None, default=None)
        return said if said is not None and said.enabled else None

    @model_validator(mode="after")
    def _objectives_have_names(self) -> "RuleSettings":
        names = [one.name if one.app is None else f"{one.name} of {one.app}" for one in self.objectives]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"rules.objectives: names must differ, but for another app; twice: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _can_hold(self) -> "RuleSettings":
        own = [(f"rules.apps.{app}", self.of(app), (None, app)) for app in self.apps]
        others = {None, *(one.app for one in self.overrides)} - self.apps.keys()
        for name, rules, apps in (("rules", self, tuple(others)), *own):
            if rules.severity_medium > rules.severity_high:
                raise ValueError(
                    f"{name}: severity_medium ({rules.severity_medium}) is above severity_high "
                    f"({rules.severity_high}): nothing would be medium"
                )
            overrides = [o for o in self.overrides if o.app in apps]
            for what, k, m in [
                (name, rules.k, rules.m),
                *((o.metric, o.k or rules.k, o.m or rules.m) for o in overrides),
            ]:
                if k > m:
                    raise ValueError(f"{what}: k = {k} of m = {m} can never be reached; k must be at most m")
        return self


class JobSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How often the scheduled jobs run."""

    every_s: Duration = Field(default=10.0, gt=0, description="Roll-up of windows, rules and announcements.")
    reconcile_every_s: Duration = Field(
        default=60.0,
        gt=0,
        description="Looks for traces sent again with another time or app, and for apps and lanes that stopped.",
    )
    checks_every_s: Duration = Field(
        default=60.0,
        gt=0,
        description="Looks for errors and remarks of evaluators, error budgets that burn, disks and retentions that "
        "run out, dead letters, and jobs that fail.",
    )
    rates_every_s: Duration = Field(
        default=300.0, gt=0, description="Looks at the shares of traces that fail a metric or flip, which are of hours."
    )
    repeats_every_s: Duration = Field(
        default=900.0, gt=0, description="Looks for questions answered inconsistently, of a day."
    )
    insights_every_s: Duration = Field(default=3600.0, gt=0, description="Insights are stated anew so often.")
    insights_period_s: Duration = Field(default=86400.0, ge=60, description="The period an insight speaks of.")
    insights_questions: Count = Field(
        default=10,
        ge=1,
        le=1000,
        description="How many of the weakest questions are stated, and how many weak groups and topics.",
    )
    insights_traces: Count = Field(
        default=20_000, ge=100, le=20_000, description="Weak points of an app are sought in so many traces, by lot."
    )
    insights_min_traces: Count = Field(
        default=3, ge=1, description="Questions asked less often than this are not stated as weak."
    )
    explain_every_s: Duration = Field(
        default=30.0, gt=0, description="Looks for the cause of open problems that have none told yet."
    )
    explain_problems: Count = Field(
        default=20, ge=1, description="The cause of at most so many problems is looked for in one run, newest first."
    )
    explain_s: Duration = Field(
        default=20.0, gt=0, description="A run begins to look for no other problem's cause after so long."
    )
    live_after_s: Duration = Field(
        default=120.0, gt=0, description="/live fails where a leader has finished no job for so long."
    )
    failing_runs: Count = Field(
        default=5, ge=1, description="A job that failed so many times in a row is a problem, until as many went well."
    )
    behind_share: Share = Field(
        default=0.5,
        description="A job that ended less than this share of the runs that its interval asks for is a problem.",
    )


class TopicSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How the topics of questions are found, from stored embeddings; needs ragwatch[insights]."""

    enabled: bool = Field(default=True, description="Whether topics are found, and traces placed in them.")
    every_s: Duration = Field(default=86400.0, gt=0, description="Topics are found anew so often.")
    period_days: Count = Field(default=7, ge=1, description="Days whose questions are looked at.")
    from_questions: Count = Field(
        default=200, ge=20, description="Topics are found for an application with so many questions in period_days."
    )
    questions: Count = Field(
        default=10_000, ge=100, le=20_000, description="How many questions of an application are looked at, by lot."
    )
    least_questions: Count = Field(default=10, ge=5, description="A topic has at least so many different questions.")
    named: bool = Field(
        default=True,
        description="Topics are named by words that many of their questions use, where texts are stored in full or "
        "masked; such names are kept for as long as scores and windows are. False: topics are numbered.",
    )
    word_questions: Count = Field(
        default=10, ge=5, description="A word names a topic only where so many different questions of it use the word."
    )
    seed: Count = Field(
        default=1, ge=0, description="Which questions are drawn by lot, and how their topics are sought."
    )
    refresh_s: Duration = Field(default=60.0, gt=0, description="Workers look for newer topics so often.")


class DriftSettings(AppDrift, extra="forbid", frozen=True, allow_inf_nan=False):
    """How series are watched for changes against what is usual for them."""

    every_s: Duration = Field(default=60.0, gt=0, description="Closed windows are looked at for changes so often.")
    questions_every_s: Duration = Field(
        default=300.0, gt=0, description="What users ask is looked at for changes so often, by its stored vectors."
    )
    history_days: Count = Field(
        default=14, ge=2, le=60, description="Days that baselines are learned from, anew once a day."
    )
    fleet_run_days: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="At most one false problem of all series together in so many days is expected; unset: one of each "
        "series in 1,000 days.",
    )
    apps: dict[str, AppDrift] = Field(
        default={},
        description="What differs per app, in tables such as [drift.apps.docs-bot]: enabled, ignore, margin.",
    )

    def of(self, app: str) -> "DriftSettings":
        """The same, with what is said of this app in place of the defaults."""
        return laid_over(self, self.apps.get(app))

    def watches(self, app: str, metric: str) -> bool:
        """Whether an application's metric is watched."""
        own = self.of(app)
        return own.enabled and metric not in own.ignore

    @property
    def watches_somebody(self) -> bool:
        """Whether any application may be watched."""
        return self.enabled or any(self.of(app).enabled for app in self.apps)

    @property
    def ignored_everywhere(self) -> frozenset[str]:
        """Metrics that are watched for no application."""
        return frozenset(self.ignore).intersection(*(self.of(app).ignore for app in self.apps))
