"""Settings of windows, rules, jobs, topics and anomalies. Read by `ragtide.stream.settings.loader` only.

A table `[SECTION.apps.NAME]` has any of the settings that may differ by application, each in place of the default."""

from itertools import pairwise
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BaseModel, Field, model_validator

from ragtide.drift.detection_settings import AppDrift, KnownEvent
from ragtide.drift.rule_settings import AppRules, Count, Duration, Share
from ragtide.evaluators.spec import Metric, RuleKind


class AppWindows(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How windows are split into segments. For one app, only what is set overrides the default."""

    segments: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Segments that split primary metrics: name = values. Unlisted values count as __other__. An empty "
        "list picks the values with the most traces, once a day.",
    )
    segment_values: Count = Field(
        default=20, ge=1, le=1000, description="Number of values to pick per app, for a segment without listed values."
    )


Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # the least severe first
Seconds = Annotated[int, Field(ge=1)]
Of = TypeVar("Of", bound=BaseModel)


def overlay(settings: Of, override: BaseModel | None) -> Of:
    """Return the settings with those of one application in their place."""
    if override is None:
        return settings
    return settings.model_copy(update={name: getattr(override, name) for name in override.model_fields_set})


class WindowSettings(AppWindows, extra="forbid", frozen=True, allow_inf_nan=False):
    """Sizes of windows, segments, and when a window closes."""

    base_s: Seconds = Field(
        default=60, description="Size, in seconds, of the windows that rules evaluate. Larger windows are made of them."
    )
    sizes_s: tuple[Seconds, ...] = Field(
        default=(3600, 86400),
        description="Larger window sizes, in seconds. Each must be a multiple of the one before (the first of base_s) "
        "and divide a day.",
    )
    out_of_orderness_s: Duration = Field(
        default=30.0, ge=0, description="Maximum seconds that event times within a partition may be out of order."
    )
    allowed_lateness_s: Duration = Field(
        default=3600.0,
        ge=0,
        description="Seconds after a window closes in which late rows can change its verdict. Later rows change its "
        "numbers only.",
    )
    heartbeat_timeout_s: Duration = Field(
        default=30.0, gt=0, description="Seconds without a worker's heartbeat after which a partition is stuck."
    )
    idle_after_s: Duration = Field(
        default=10.0,
        ge=0,
        description="Seconds without lag or new records after which a partition is idle and holds no window back.",
    )
    stuck_wait_s: Duration = Field(
        default=300.0,
        gt=0,
        description="Maximum seconds that windows wait for a stuck partition. Then they close, marked incomplete.",
    )
    partition_expiry_s: Duration = Field(
        default=86400.0, gt=0, description="Seconds without a heartbeat after which a partition is ignored."
    )
    apps: dict[str, AppWindows] = Field(
        default={},
        description="Overrides by app, in tables such as [windows.apps.docs-bot]: segments, which replaces all of the "
        "above, and segment_values.",
    )

    def of(self, app: str) -> "WindowSettings":
        """Return the settings of this application."""
        return overlay(self, self.apps.get(app))

    @model_validator(mode="after")
    def _sizes_nest(self) -> "WindowSettings":
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
    """Overrides for one metric. If several match a series, each field comes from the most specific one that sets it."""

    metric: str = Field(description="evaluator.metric, e.g. operations.latency_seconds.")
    app: str | None = Field(default=None, description="Only this app. If absent, all.")
    segment: str | None = Field(default=None, description="Only this segment; '' is the total. If absent, all.")
    segment_value: str | None = Field(default=None, description="Only this value of the segment. If absent, all.")
    enabled: bool = Field(default=True, description="false turns all rules of this metric off.")
    rule: RuleKind | None = Field(
        default=None, description=f"How a window is evaluated, one of: {', '.join(get_args(RuleKind))}."
    )
    min: float | None = Field(default=None, description="Smallest good value of a record (rule value: of the window).")
    max: float | None = Field(default=None, description="Largest good value of a record (rule value: of the window).")
    limit: Share | None = Field(
        default=None, description="Rule share: largest acceptable share of records beyond min or max."
    )
    failure_limit: Share | None = Field(
        default=None, description="Rule mean: largest acceptable share of records beyond min or max, whatever the mean."
    )
    min_sample: Count | None = Field(
        default=None, ge=1, description="Windows are pooled until they have this many scored records."
    )
    k: Count | None = Field(default=None, ge=1, description="A problem opens if k of the last m windows are bad.")
    m: Count | None = Field(default=None, ge=1, description="Number of last windows of which k must be bad.")
    resolve_after: Count | None = Field(default=None, ge=1, description="Good windows in a row that resolve a problem.")
    severity: Severity | None = Field(default=None, description="Severity, instead of the one by share of bad records.")
    allow_kinds: tuple[str, ...] = Field(default=(), description="Rule any: kinds of evidence to ignore, e.g. email.")
    allow_texts: tuple[str, ...] = Field(
        default=(),
        description="Rule any: patterns of evidence texts to ignore, e.g. *@acme.example. Needs stored texts.",
    )


class LimitOverride(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Overrides of the limits of failures and findings. If several match, the most specific one wins."""

    app: str | None = Field(default=None, description="Only this app. If absent, all.")
    evaluator: str | None = Field(default=None, description="Only this evaluator. If absent, all.")
    error_limit: Share | None = Field(default=None, description="In place of rules.error_limit.")
    finding_traces: Count | None = Field(default=None, ge=1, description="In place of rules.finding_traces.")
    finding_limit: Share | None = Field(default=None, description="In place of rules.finding_limit.")


class Objective(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """A service-level objective: the share of records that must be good over a number of days."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$",
        description="Name in problems, e.g. answers-in-time. An app's objective overrides the one for all apps.",
    )
    enabled: bool = Field(default=True, description="false turns the objective off, for its app or for all.")
    metric: str = Field(description="evaluator.metric, e.g. operations.latency_seconds.")
    app: str | None = Field(default=None, description="Only this app. If absent, every app on its own.")
    min: float | None = Field(default=None, description="Smallest good value of a record.")
    max: float | None = Field(
        default=None, description="Largest good value. Without min and max, the metric's own threshold applies."
    )
    target: float = Field(default=0.99, gt=0, lt=1, description="Share of records that must be good.")
    period_days: Count = Field(
        default=28,
        ge=3,
        le=365,
        description="Days that the error budget covers. The burn-rate windows scale with it.",
    )

    def bounds(self, metric: Metric) -> tuple[float | None, float | None]:
        """Return the smallest and the largest good value of a record of this metric."""
        if self.min is not None or self.max is not None:
            return self.min, self.max
        return (metric.threshold, None) if metric.better == "higher" else (None, metric.threshold)


class RuleSettings(AppRules, extra="forbid", frozen=True, allow_inf_nan=False):
    """When a window is bad and when bad windows are a problem."""

    repeats_within_s: Duration = Field(
        default=86400.0, gt=0, description="Flips and inconsistency are computed over the traces of this many seconds."
    )
    disk_limit: Share = Field(default=0.85, description="Largest acceptable used share of a ClickHouse disk.")
    dead_letters: Count = Field(
        default=30,
        ge=1,
        description="A problem opens if a topic has this many dead letters in an hour, and 3 times the usual.",
    )
    retention_share: Share = Field(
        default=0.5,
        description="Largest acceptable age of a lane's oldest unread record, as a share of the topic's retention. "
        "Above it, a problem opens unless the lane is catching up.",
    )
    judge_shift: Share = Field(
        default=0.05,
        description="Smallest shift of a judge on canaries that opens a problem, as a share of the metric's range.",
    )
    fleet_share: Share = Field(
        default=0.5,
        description="Share of the applications with traffic that must change within an hour, at least three of them, "
        "for one problem of them all.",
    )
    overrides: tuple[RuleOverride, ...] = Field(default=(), description="Overrides by metric, app and segment.")
    limits: tuple[LimitOverride, ...] = Field(
        default=(), description="Overrides of error_limit, finding_traces and finding_limit by app and evaluator."
    )
    objectives: tuple[Objective, ...] = Field(
        default=(), description="Service-level objectives. A problem opens if an error budget burns too fast."
    )

    apps: dict[str, AppRules] = Field(
        default={},
        description="Overrides by app, in tables such as [rules.apps.docs-bot]. Not possible there: repeats_within_s, "
        "disk_limit, dead_letters, retention_share, judge_shift, fleet_share, overrides, limits, objectives. The last "
        "three name their app.",
    )

    def of(self, app: str) -> "RuleSettings":
        """Return the settings of this application."""
        return overlay(self, self.apps.get(app))

    def objective(self, name: str, app: str) -> Objective | None:
        """Return the objective of that name for this application: its own or that of all; None if there is none."""
        own = [one for one in self.objectives if one.name == name and one.app in (None, app)]
        override = max(own, key=lambda one: one.app is not None, default=None)
        return override if override is not None and override.enabled else None

    @model_validator(mode="after")
    def _objectives_have_names(self) -> "RuleSettings":
        names = [one.name if one.app is None else f"{one.name} of {one.app}" for one in self.objectives]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"rules.objectives: names must differ, but for another app; twice: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def _is_satisfiable(self) -> "RuleSettings":
        own = [(f"rules.apps.{app}", self.of(app), (None, app)) for app in self.apps]
        others = {None, *(one.app for one in self.overrides)} - self.apps.keys()
        for name, rules, apps in (("rules", self, tuple(others)), *own):
            if rules.severity_warning > rules.severity_critical:
                raise ValueError(
                    f"{name}: severity_warning ({rules.severity_warning}) is above severity_critical "
                    f"({rules.severity_critical}): nothing would be a warning"
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

    every_s: Duration = Field(
        default=10.0, gt=0, description="Seconds between roll-ups, rules, fleet_change, label joins and notifications."
    )
    reconcile_every_s: Duration = Field(
        default=60.0,
        gt=0,
        description="Seconds between checks for silent apps, stalled lanes, and traces sent again with another time, "
        "app, environment or `probe`.",
    )
    checks_every_s: Duration = Field(
        default=60.0,
        gt=0,
        description="Seconds between checks of evaluator errors and remarks, error budgets, disks, retention, dead "
        "letters and jobs.",
    )
    rates_every_s: Duration = Field(
        default=300.0, gt=0, description="Seconds between checks of failure rates and flip rates."
    )
    repeats_every_s: Duration = Field(
        default=900.0,
        gt=0,
        description="Seconds between checks for inconsistent answers to repeated questions, and of judges on canaries.",
    )
    insights_every_s: Duration = Field(default=3600.0, gt=0, description="Seconds between updates of insights.")
    insights_period_s: Duration = Field(default=86400.0, ge=60, description="Seconds of traffic per insight.")
    insights_questions: Count = Field(
        default=10,
        ge=1,
        le=1000,
        description="Maximum number of weak questions, of weak groups and of weak topics to report.",
    )
    insights_traces: Count = Field(
        default=20_000,
        ge=100,
        le=20_000,
        description="Number of randomly sampled traces per app to find weak points in.",
    )
    insights_min_traces: Count = Field(
        default=3, ge=1, description="Minimum number of traces of a question that is reported as weak."
    )
    explain_every_s: Duration = Field(default=30.0, gt=0, description="Seconds between searches for likely causes.")
    explain_problems: Count = Field(
        default=20, ge=1, description="Maximum number of problems per run whose cause is searched for, newest first."
    )
    explain_s: Duration = Field(
        default=20.0, gt=0, description="Seconds after which a run starts no further search for a cause."
    )
    group_wait_s: Duration = Field(
        default=30.0,
        ge=0,
        description="Seconds from the opening of a problem to its announcement: time to find the problem that explains "
        "it. Leaks are announced at once.",
    )
    live_after_s: Duration = Field(
        default=120.0, gt=0, description="Seconds without a finished job after which /live of the leader fails."
    )
    failing_runs: Count = Field(
        default=5, ge=1, description="Failed runs of a job in a row that open a problem; as many good ones resolve it."
    )
    behind_share: Share = Field(
        default=0.5,
        description="A problem opens if a job ends less than this share of the runs that its interval asks for.",
    )


class TopicSettings(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How topics of questions are found, from stored vectors. Needs ragtide[insights]."""

    enabled: bool = Field(default=True, description="Find topics of questions and assign traces to them.")
    every_s: Duration = Field(default=86400.0, gt=0, description="Seconds between fits of an application's topics.")
    period_days: Count = Field(default=7, ge=1, description="Days of questions that topics are fitted on.")
    from_questions: Count = Field(
        default=200, ge=20, description="Minimum number of questions within period_days for which topics are fitted."
    )
    questions: Count = Field(
        default=10_000,
        ge=100,
        le=20_000,
        description="Maximum number of randomly sampled questions per app to fit topics on.",
    )
    min_questions: Count = Field(default=10, ge=5, description="Minimum number of different questions of a topic.")
    named: bool = Field(
        default=True,
        description="Name topics by words that many of their questions use, if texts are stored in full or masked. "
        "Names are kept as long as scores and windows. If false, topics are numbered.",
    )
    word_questions: Count = Field(
        default=10, ge=5, description="A word names a topic only if this many of its different questions use it."
    )
    seed: Count = Field(default=1, ge=0, description="Random seed of the sample and of the clustering.")
    refresh_s: Duration = Field(default=60.0, gt=0, description="Seconds between a worker's checks for newer topics.")


class DriftSettings(AppDrift, extra="forbid", frozen=True, allow_inf_nan=False):
    """How series are tested for changes from their baselines."""

    every_s: Duration = Field(default=60.0, gt=0, description="Seconds between scans of closed windows for changes.")
    questions_every_s: Duration = Field(
        default=300.0, gt=0, description="Seconds between checks of question vectors for changes."
    )
    history_days: Count = Field(
        default=14, ge=2, le=60, description="Days of history that baselines are learned from, once a day."
    )
    fleet_run_days: float | None = Field(
        default=None,
        gt=0,
        le=1_000_000,
        description="Days in which at most one false problem is expected over all series together. If unset, one per "
        "series in 1,000 days.",
    )
    calendar: tuple[KnownEvent, ...] = Field(
        default=(), description="Known events, in tables [[drift.calendar]]: times left out of change detection."
    )
    apps: dict[str, AppDrift] = Field(
        default={},
        description="Overrides by app, in tables such as [drift.apps.docs-bot]: enabled, ignore, margin, time_zone, "
        "holidays, dates.",
    )

    def of(self, app: str) -> "DriftSettings":
        """Return the settings of this application."""
        return overlay(self, self.apps.get(app))

    def monitors(self, app: str, metric: str) -> bool:
        """Tell whether an application's metric is monitored."""
        own = self.of(app)
        return own.enabled and metric not in own.ignore

    @property
    def monitors_any_app(self) -> bool:
        """Whether any application is monitored."""
        return self.enabled or any(self.of(app).enabled for app in self.apps)

    @property
    def ignored_everywhere(self) -> frozenset[str]:
        """Metrics that no application monitors."""
        return frozenset(self.ignore).intersection(*(self.of(app).ignore for app in self.apps))
