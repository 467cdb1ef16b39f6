"""Observe a part of the system from a scheduled job; each subclass of `Check` raises one kind of problem.

`run_check` opens, updates and clears problems from what `Check.observe` yields. `ragtide.drift.jobs` finds
the subclasses.
"""

from ragtide.drift.checks.consumer_lag import ConsumerLag, GroupLag
from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.checks.error_budget import FINE_S, MIN_BAD, BurnWindow, burn_windows, hour_s
from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.checks.job_health import JobFailures, JobsBehind, RollupFailures
from ragtide.drift.checks.judge_shift import JudgedMetric, judge_shifts
from ragtide.drift.checks.missing_data import MissingData
from ragtide.drift.checks.run import run_check

__all__ = [
    "FINE_S",
    "MIN_BAD",
    "BurnWindow",
    "Check",
    "CheckContext",
    "CheckState",
    "ConsumerLag",
    "GroupLag",
    "JobFailures",
    "JobsBehind",
    "JudgedMetric",
    "MissingData",
    "Observation",
    "RollupFailures",
    "burn_windows",
    "hour_s",
    "judge_shifts",
    "run_check",
]
