"""Records and results for the tests of the Python API."""

from typing import Any

from ragtide import Result, evaluate
from tests.stream.pipe.records import fields

EVALUATORS = ["exact_match", "inputs", "operations", "rouge"]


def trace(n: int, **changes: Any) -> dict[str, Any]:
    """A trace with a reference; of every third the answer is the reference."""
    answer = "It returns a string." if n % 3 == 0 else f"It returns {n} bytes."
    made = {"trace_id": f"t-{n}", "answer": answer, "expected": ["It returns a string."]}
    return fields(**{**made, "latency": {"total_s": 1 + n / 10}, **changes})


def traces(number: int, **changes: Any) -> list[dict[str, Any]]:
    return [trace(n, **changes) for n in range(number)]


def evaluated(records: object, *evaluators: str, **settings: Any) -> Result:
    return evaluate(records, evaluators or EVALUATORS, settings=settings, progress=False)


def scores(result: Result) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Each score by trace and evaluator, without its place among the records."""
    return {
        (one.trace_id, one.evaluator): (one.status, one.reason, one.metrics, one.parts, one.evidence)
        for one in result.scores()
    }
