"""What of the rules may differ by application: the defaults of all, and what is said of one."""

from typing import Annotated

from pydantic import BaseModel, Field

Share = Annotated[float, Field(ge=0, le=1)]
Duration = Annotated[float, Field(le=366 * 86400)]  # seconds; what is longer overflows times
Count = Annotated[int, Field(le=1_000_000_000)]


class AppRules(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """When a window of an app is bad, and when bad windows are a problem; of one app only what is set counts."""

    primary_only: bool = Field(
        default=True, description="Watch primary metrics; others only where an override names them."
    )
    min_sample: Count = Field(
        default=30, ge=1, description="Windows are pooled until they have so many scored records."
    )
    k: Count = Field(default=3, ge=1, description="A problem opens where k of the last m windows are bad.")
    m: Count = Field(
        default=5, ge=1, description="Of how many of the last windows k must be bad for a problem to open."
    )
    chance: float = Field(
        default=0.001,
        gt=0,
        le=1,
        description="Bad windows are a problem only where a series that is exactly on its line would have such "
        "records, or such of a longer time up to now, less often than this; 1: whatever chance does.",
    )
    resolve_after: Count = Field(default=5, ge=1, description="It resolves after so many good windows in a row.")
    any_resolve_after_s: Duration = Field(
        default=3600.0, gt=0, description="Rule any: resolves after so long without a bad record."
    )
    flap_s: Duration = Field(
        default=1800.0, ge=0, description="Back within so long after its resolution, it is the same episode."
    )
    flapping_openings: Count = Field(
        default=3, ge=1, description="Opened more often than that within flapping_within_s, a problem flaps."
    )
    flapping_within_s: Duration = Field(
        default=21600.0, gt=0, description="The time within which flapping_openings openings are flapping."
    )
    flapping_quiet_s: Duration = Field(
        default=3600.0, ge=0, description="A problem that flaps stays open until it was quiet for so long."
    )
    share_limit: Share = Field(
        default=0.05, description="Rule share: greatest good share of records beyond the threshold."
    )
    fairness_share_limit: Share = Field(
        default=0.01, description="Instead of share_limit, for evaluators of the domain fairness."
    )
    failure_limit: Share = Field(
        default=0.5, description="Rule mean: greatest good share of records beyond the threshold, whatever the mean."
    )
    coverage_limit: Share = Field(
        default=0.2, description="A coverage problem opens where a greater share of the records to be scored was not."
    )
    error_limit: Share = Field(
        default=0.05, description="Greatest good share of its traces that an evaluator fails on, for whatever reason."
    )
    finding_traces: Count = Field(
        default=10, ge=1, description="So many traces of an hour with the same remark or leaked kind are a problem."
    )
    finding_limit: Share = Field(
        default=0.05,
        description="finding_traces traces with the same remark are a problem only where they are a greater share of "
        "the hour's than this; with the same leaked kind always.",
    )
    flip_pairs: Count = Field(
        default=30,
        ge=1,
        description="So many pairs of perturbed questions and originals are needed to tell how often a metric flips.",
    )
    flip_limit: Share = Field(
        default=0.1,
        description="Greatest good share of flip_pairs pairs or more in which a metric flips; a problem where the "
        "whole 95 % interval of the share is above this.",
    )
    inconsistency_askings: Count = Field(
        default=3, ge=2, description="A question that was asked so often is looked at for consistency."
    )
    inconsistency_limit: Share = Field(
        default=0.2,
        description="Greatest good share of questions asked inconsistency_askings times that pass on the mean and "
        "failed at least once; a problem where the whole 95 % interval of the share is above this.",
    )
    compare_answers: bool = Field(
        default=True,
        description="Compare what answers to the same question say: lane model stores a vector and hashes of the "
        "amounts, dates, yes and no of each answer, where privacy.store_embeddings has vectors stored.",
    )
    disagreement_limit: Share = Field(
        default=0.2,
        description="Greatest good share of questions asked inconsistency_askings times whose answers disagree; a "
        "problem where the whole 95 % interval of the share is above this.",
    )
    missing_after_s: Duration | None = Field(
        default=900.0,
        gt=0,
        description="A live app that is silent for so long, in hours in which it usually sends, is a problem.",
    )
    gone_after_s: Duration = Field(
        default=86400.0,
        gt=0,
        description="Rules' problems of a model, environment or segment of which nothing came for so long, while its "
        "application went on, are over.",
    )
    severity_high: Share = Field(default=0.25, description="High from this share of records on the wrong side.")
    severity_medium: Share = Field(default=0.05, description="Medium from this share.")
    update_every_s: Duration = Field(
        default=300.0, ge=0, description="An open problem's figures are stated anew at most so often."
    )
