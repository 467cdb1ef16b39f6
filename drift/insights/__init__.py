"""Find insights: statements about a period that never page. Each module has one or more; `registry` finds them.

`run_insights` stores those of a period, `current_insights` loads them.
"""

from ragtide.drift.insights.failing_sample import rule_bounds_query
from ragtide.drift.insights.job import run_insights
from ragtide.drift.insights.model import InsightRow, current_insights

__all__ = [
    "InsightRow",
    "current_insights",
    "rule_bounds_query",
    "run_insights",
]
