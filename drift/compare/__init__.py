"""Compare two runs: which metrics changed, with confidence.

`compare` reads stored runs. `compare_sums` decides the same for values that its caller has summed.
"""

from ragtide.drift.compare.decision import FAILURE, EvaluatorRun, MetricSums, compare_sums, shared_evaluators
from ragtide.drift.compare.model import CompareQuery, Comparison, MetricChange, MovedTrace
from ragtide.drift.compare.runs import compare

__all__ = [
    "FAILURE",
    "CompareQuery",
    "Comparison",
    "EvaluatorRun",
    "MetricChange",
    "MetricSums",
    "MovedTrace",
    "compare",
    "compare_sums",
    "shared_evaluators",
]
