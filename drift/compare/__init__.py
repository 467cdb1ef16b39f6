"""Compare two runs: which metrics changed, with confidence."""

from ragtide.drift.compare.model import CompareQuery, Comparison, MetricChange
from ragtide.drift.compare.runs import compare

__all__ = [
    "CompareQuery",
    "Comparison",
    "MetricChange",
    "compare",
]
