"""Read the scores of canaries, traces that never change, and tell whether a judge changed or looks at form."""

from ragtide.drift.canaries.forms import FormEffect, form_effects
from ragtide.drift.canaries.scores import (
    CanaryScoreRow,
    JudgeRuns,
    load_judge_runs,
    load_judge_versions,
    load_scored,
    values_of,
)
from ragtide.drift.canaries.shift import REFERENCE_RUNS, JudgeShift, judge_shift

__all__ = [
    "REFERENCE_RUNS",
    "CanaryScoreRow",
    "FormEffect",
    "JudgeRuns",
    "JudgeShift",
    "form_effects",
    "judge_shift",
    "load_judge_runs",
    "load_judge_versions",
    "load_scored",
    "values_of",
]
