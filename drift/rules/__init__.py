"""Decide when a window is bad: which rules apply to a series, how each kind evaluates, and what the verdicts are.

>>> sorted(name for name, kind in RULE_KINDS.items() if kind.is_average)
['mean']
"""

from ragtide.drift.rules.early_any import OpenWindows
from ragtide.drift.rules.evaluate import evaluate_rules, evaluate_window, verdict_row
from ragtide.drift.rules.evaluator_versions import Interval, VersionStart, active_versions, verdicts_of_active_versions
from ragtide.drift.rules.kinds import (
    ROUNDING,
    RULE_KINDS,
    bad_share_series,
    describe_problem,
    mean_series,
    record_source,
    reference_line,
    share_series,
)
from ragtide.drift.rules.model import ChartSeries, ReferenceLine, Rule, Series, Statistics, Verdict, Window
from ragtide.drift.rules.pooling import pool_forward
from ragtide.drift.rules.queries import (
    ChangedSeries,
    RecordQuery,
    bound_parameters,
    commit_rule_cursor,
    has_class,
    is_stale,
    last_seen,
    load_windows,
    out_of_bounds,
    record_query,
    rule_cursor,
    series_in_interval,
    stale_series,
)
from ragtide.drift.rules.resolve import (
    check_settings,
    coverage_rule_for,
    limits_for,
    rule_for,
    rule_of_app,
    rule_of_every_app,
    rules_for,
)
from ragtide.drift.rules.stalled_lanes import StalledLanes

__all__ = [
    "ROUNDING",
    "RULE_KINDS",
    "ChangedSeries",
    "ChartSeries",
    "Interval",
    "OpenWindows",
    "RecordQuery",
    "ReferenceLine",
    "Rule",
    "Series",
    "StalledLanes",
    "Statistics",
    "Verdict",
    "VersionStart",
    "Window",
    "active_versions",
    "bad_share_series",
    "bound_parameters",
    "check_settings",
    "commit_rule_cursor",
    "coverage_rule_for",
    "describe_problem",
    "evaluate_rules",
    "evaluate_window",
    "has_class",
    "is_stale",
    "last_seen",
    "limits_for",
    "load_windows",
    "mean_series",
    "out_of_bounds",
    "pool_forward",
    "record_query",
    "record_source",
    "reference_line",
    "rule_cursor",
    "rule_for",
    "rule_of_app",
    "rule_of_every_app",
    "rules_for",
    "series_in_interval",
    "share_series",
    "stale_series",
    "verdict_row",
    "verdicts_of_active_versions",
]
