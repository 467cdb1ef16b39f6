"""What of windows and of watching may differ by application: the defaults of all, and what is said of one.

As with rules: a table `[SECTION.apps.NAME]` has any of the settings that may differ, each in place of the default.
"""

from typing import Annotated

from pydantic import BaseModel, Field

from drift.app_rules import Count

Factor = Annotated[float, Field(ge=1, le=100)]


class AppWindows(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """How an app's windows are cut; of one app only what is set counts."""

    segments: dict[str, tuple[str, ...]] = Field(
        default={},
        description="Segments that primary metrics are cut by: name = values, the others count as __other__; an empty "
        "list: those with most traces, chosen once a day.",
    )
    segment_values: Count = Field(
        default=20, ge=1, le=1000, description="How many values of a segment without listed ones are chosen, per app."
    )


class AppDrift(BaseModel, extra="forbid", frozen=True, allow_inf_nan=False):
    """Which series of an app are watched for changes, and how large one must be; of one app only what is set counts."""

    enabled: bool = Field(
        default=True, description="Whether series are watched for changes against what is usual for them."
    )
    ignore: tuple[str, ...] = Field(
        default=(), description="Metrics that are not watched for changes, e.g. operations.cost_usd."
    )
    margin: Factor = Field(
        default=1.0,
        description="A change is told only where it is so many times as great as what is nobody's business: of 1: 1 % "
        "of a score's range, a tenth of its variance, a tenth of the records of a day, a fifth of the odds of a label "
        "or of a group of questions, 2 % of the pairs that tell days of questions apart. The same detectors see less.",
    )
