"""Output of `ragtide compare`."""

from typing import Any

import msgspec

from ragtide.drift.compare import CompareQuery, Comparison, MetricChange
from ragtide.stream.console import plain_console, table_of
from ragtide.stream.terminal import say

_ORDER = ("worse", "unknown", "differs", "better", "same")


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
    console = plain_console()
    table = table_of()
    table.add_column("metric", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    sure = f"{100 * (1 - question.alpha):g} % interval"
    for column in ("A", "B", "B - A", sure, "p adjusted", "pairs", "A only", "B only", "scored A", "scored B"):
        table.add_column(column, justify="right", no_wrap=True)
    ordered = sorted(found.metrics, key=lambda change: (_ORDER.index(change.verdict), change.metric))
    for change in ordered:
        table.add_row(change.metric, change.verdict, *_figures(change))
    console.print(table)
    if lines := [*_traces(ordered), *_notes(found, question)]:
        say(*lines)


def _figures(change: MetricChange) -> list[str]:
    sign = "+" if change.difference else ""
    interval = "-" if change.low is None or change.high is None else f"{change.low:+.4g} to {change.high:+.4g}"
    mark = " *" if change.method == "welch" else ""
    numbers = [_number(change.mean_a), _number(change.mean_b), _number(change.difference, sign)]
    numbers += [interval + mark, "-" if change.p_adjusted is None else f"{change.p_adjusted:.2g}"]
    numbers += [f"{count:,}" for count in (change.paired, change.only_a, change.only_b)]
    return numbers + ["-" if share is None else f"{share:.1%}" for share in (change.coverage_a, change.coverage_b)]


def _number(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.4g}"


def _traces(changes: list[MetricChange]) -> list[str]:
    lines = []
    for change in changes:
        if change.moved and change.verdict not in ("same", "unknown"):
            lines += ["", f"{change.metric} moved most in"]
            lines += [f"  {one.trace_id}: {one.a:.4g} to {one.b:.4g}" for one in change.moved]
    return lines


def _notes(found: Comparison, question: CompareQuery) -> list[str]:
    notes = [f"run {run} is not complete" for run in found.incomplete]
    notes += [
        f"{name} scored A and B in different ways: fingerprint {', '.join(both.a)}, then {', '.join(both.b)}"
        for name, both in found.fingerprints.items()
    ]
    for run, names in ((question.run_a, found.only_a), (question.run_b, found.only_b)):
        notes += [f"only {run} has: {', '.join(names)}"] if names else []
    if any(change.method == "welch" for change in found.metrics):
        notes += ["* too few trace ids match: the runs are compared as independent"]
    return ["", *notes] if notes else []
