"""Use ragtide from Python: evaluate records in this process, read a running system, send labels.

`import ragtide` gives the same names, and imports this room when one is used.
"""

from ragtide.stream.api.columns import EvaluatedTrace
from ragtide.stream.api.comparing import ResultComparison
from ragtide.stream.api.connection import Connection, connect
from ragtide.stream.api.evaluation import evaluate
from ragtide.stream.api.labelling import label
from ragtide.stream.api.result import Rejected, Result, Score
from ragtide.stream.api.stored_rows import CutWarning, StoredRows
from ragtide.stream.api.summary import MetricSummary

__all__ = [
    "Connection",
    "CutWarning",
    "EvaluatedTrace",
    "MetricSummary",
    "Rejected",
    "Result",
    "ResultComparison",
    "Score",
    "StoredRows",
    "connect",
    "evaluate",
    "label",
]
