"""Output of `ragtide compare`."""

from typing import Any

import msgspec

from ragtide.drift.compare import CompareQuery, Comparison
from ragtide.stream.api.comparison_text import change_table, notes_of, traces_of
from ragtide.stream.console import plain_console
from ragtide.stream.terminal import say


def as_object(found: Comparison, question: CompareQuery) -> dict[str, Any]:
    """The result as a JSON object."""
    criteria = {"alpha": question.alpha, "min_change": question.min_change}
    runs = {"run_a": question.run_a, "run_b": question.run_b, **criteria, "worse": list(found.worse)}
    changes = [
        msgspec.to_builtins(change) | {"moved": [moved._asdict() for moved in change.moved]} for change in found.metrics
    ]
    fingerprints = {name: both._asdict() for name, both in found.fingerprints.items()}
    output: dict[str, Any] = runs | msgspec.to_builtins(found) | {"metrics": changes, "fingerprints": fingerprints}
    return output


def show(found: Comparison, question: CompareQuery) -> None:
    """Print a line per metric, worse ones first; then the traces behind the changes, and notes."""
    plain_console().print(change_table(found.metrics, question.alpha).for_terminal())
    if lines := [*traces_of(found.metrics), *notes_of(found, question.run_a, question.run_b)]:
        say(*lines)
