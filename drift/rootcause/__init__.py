"""Explain the shift of a metric: in which slice, since which version, and whether retrieval or generation causes it.

`explain_shift` answers an `RcaQuery` with a `RootCause`; `root_cause_message` puts it into a sentence.
"""

from ragtide.drift.rootcause.attribution import MIN_TIMES
from ragtide.drift.rootcause.explain import RootCause, explain_shift
from ragtide.drift.rootcause.messages import root_cause_message
from ragtide.drift.rootcause.query import RcaQuery, rca_query
from ragtide.drift.rootcause.retrieval_or_generation import CONTEXTS_ARE_BAD, context_metrics, select_context_results

__all__ = [
    "CONTEXTS_ARE_BAD",
    "MIN_TIMES",
    "RcaQuery",
    "RootCause",
    "context_metrics",
    "explain_shift",
    "rca_query",
    "root_cause_message",
    "select_context_results",
]
