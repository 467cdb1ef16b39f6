"""RAG in production, watched: `stream` puts together what the other packages do; `evaluators` is for plug-ins.

`evaluate`, `connect` and `label` are for Python programs and notebooks, see docs/python.md. They load when they are
used, so that `import ragtide` takes no time.
"""

TYPE_CHECKING = False  # as that of `typing`, which would take longer to import than all of this

if TYPE_CHECKING:
    from ragtide.stream.api import (
        Connection,
        CutWarning,
        EvaluatedTrace,
        MetricSummary,
        Rejected,
        Result,
        ResultComparison,
        Score,
        StoredRows,
        connect,
        evaluate,
        label,
    )

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

if not TYPE_CHECKING:  # or any name would pass a type checker

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ragtide.stream import api

        return getattr(api, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
