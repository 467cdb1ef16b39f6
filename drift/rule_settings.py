"""Settings of rules that may differ by application."""

from typing import Annotated

from pydantic import BaseModel, Field

Share = Annotated[float, Field(ge=0, le=1)]
Duration = Annotated[float, Field(le=366 * 86400)]  # seconds; what is longer overflows times
Count = Annotated[int, Field(le=1_000_000_000)]


class AppRules(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """When a window of an app is bad, and when bad windows are a problem; of one app only what is set counts."""

    primary_only: bool = Field(
        default=True, description="Evaluate rules on primary metrics only. Other metrics need an override."
    )
    min_sample: Count = Field(
        default=30, ge=1, description="Windows are pooled until they have at least this many scored records."
    )
    k: Count = Field(default=2, ge=1, description="A problem opens if k of the last m windows are bad.")
    m: Count = Field(
        default=3, ge=1, description="Number of last windows of which k must be bad for a problem to open."
    )
    chance: float = Field(
        default=0.001,
        gt=0,
        le=1,
        description="Significance level of rule breaches: a problem opens only if a series exactly at its limit would "
        "breach this rarely by chance. 1 turns the test off.",
    )
    resolve_after: Count = Field(
        default=5, ge=1, description="A problem resolves after this many good windows in a row."
    )
    any_resolve_after_s: Duration = Field(
        default=3600.0, gt=0, description="Rule any: a problem resolves after this many seconds without a bad record."
    )
    flap_s: Duration = Field(
        default=1800.0,
        ge=0,
        description="A problem that returns within this many seconds after it resolved continues the same episode.",
    )
    flapping_openings: Count = Field(
        default=3, ge=1, description="A problem flaps if it opens more often than this within flapping_within_s."
    )
    flapping_within_s: Duration = Field(
        default=21600.0, gt=0, description="Seconds over which flapping_openings counts."
    )
    flapping_quiet_s: Duration = Field(
        default=3600.0, ge=0, description="A flapping problem resolves only after this many seconds without a breach."
    )
    share_limit: Share = Field(
        default=0.05, description="Rule share: largest acceptable share of records beyond the threshold."
    )
    fairness_share_limit: Share = Field(
        default=0.01, description="Used in place of share_limit for evaluators of the domain fairness."
    )
    failure_limit: Share = Field(
        default=0.5,
        description="Rule mean: largest acceptable share of records beyond the threshold, whatever the mean.",
    )
    coverage_limit: Share = Field(
        default=0.2,
        description="Largest acceptable share of applicable records without a score. Above it, a coverage problem "
        "opens.",
    )
    error_limit: Share = Field(
        default=0.05, description="Largest acceptable share of traces on which an evaluator fails, for any reason."
    )
    finding_traces: Count = Field(
        default=10,
        ge=1,
        description="A problem opens if this many traces within an hour have the same remark or kind of leak.",
    )
    finding_limit: Share = Field(
        default=0.05,
        description="A remark opens a problem only if more than this share of the hour's traces have it. Leaks need "
        "finding_traces alone.",
    )
    early_ratio: float | None = Field(
        default=2.0,
        gt=1,
        le=1000,
        description="For two days, until baselines exist: a problem opens if the 95th percentile of latency, tokens or "
        "cost is this many times that of the first ten minutes, and of the hour before. If unset, none does.",
    )
    flip_pairs: Count = Field(
        default=30,
        ge=1,
        description="Minimum number of pairs of a perturbed question and its original that a flip rate is computed "
        "from.",
    )
    flip_limit: Share = Field(
        default=0.1,
        description="Largest acceptable share of pairs in which a metric flips between pass and fail. A problem opens "
        "if the whole 95 % interval is above it.",
    )
    inconsistency_askings: Count = Field(
        default=3, ge=2, description="Consistency is checked for questions that were asked at least this often."
    )
    inconsistency_limit: Share = Field(
        default=0.2,
        description="Largest acceptable share of questions asked inconsistency_askings times that pass on average and "
        "failed at least once. A problem opens if the whole 95 % interval is above it.",
    )
    compare_answers: bool = Field(
        default=True,
        description="Compare answers to the same question. Lane model then stores a vector, and hashes of amounts, "
        "dates, yes and no, per answer. Needs stored vectors (privacy.store_embeddings).",
    )
    disagreement_limit: Share = Field(
        default=0.2,
        description="Largest acceptable share of questions asked inconsistency_askings times whose answers disagree. "
        "A problem opens if the whole 95 % interval is above it.",
    )
    missing_after_s: Duration | None = Field(
        default=900.0,
        gt=0,
        description="A problem opens if an app sends nothing for this many seconds of its usual hours, and for twice "
        "its usual pause.",
    )
    stale_after_s: Duration = Field(
        default=86400.0,
        gt=0,
        description="A model, environment or segment is stale after this many seconds without data, if its app still "
        "sends. Its problems from rules and change detectors then resolve.",
    )
    severity_critical: Share = Field(
        default=0.25,
        description="Severity is critical if at least this share of the app's traces is bad. Privacy and security "
        "problems are always critical.",
    )
    severity_warning: Share = Field(
        default=0.05,
        description="Severity is warning if at least this share of the app's traces is bad; below it, info.",
    )
    update_every_s: Duration = Field(
        default=300.0, ge=0, description="Minimum seconds between updates of an open problem's figures."
    )
