"""Words and tables of a comparison, of two stored runs or of two results."""

from collections.abc import Sequence

from ragtide.drift.compare import Comparison, MetricChange
from ragtide.stream.api.text_table import TextTable, number

_ORDER = ("worse", "unknown", "differs", "better", "same")


def change_table(changes: Sequence[MetricChange], alpha: float) -> TextTable:
    """A row per metric, worse ones first."""
    sure = f"{100 * (1 - alpha):g} % interval"
    figures = ("A", "B", "B - A", sure, "p adjusted", "pairs", "A only", "B only", "scored A", "scored B")
    rows = [[one.metric, one.verdict, *_figures(one)] for one in ordered(changes)]
    return TextTable(("metric", "verdict", *figures), rows, texts=(0, 1))


def ordered(changes: Sequence[MetricChange]) -> list[MetricChange]:
    """Worse ones first, then by name."""
    return sorted(changes, key=lambda change: (_ORDER.index(change.verdict), change.metric))


def traces_of(changes: Sequence[MetricChange]) -> list[str]:
    """Name the traces behind the changes."""
    lines = []
    for change in ordered(changes):
        if change.moved and change.verdict not in ("same", "unknown"):
            lines += ["", f"{change.metric} moved most in"]
            lines += [f"  {one.trace_id}: {one.a:.4g} to {one.b:.4g}" for one in change.moved]
    return lines


def notes_of(found: Comparison, name_a: str, name_b: str) -> list[str]:
    """Say what limits the comparison: unfinished runs, other versions, evaluators of one side only."""
    notes = [f"run {run} is not complete" for run in found.incomplete]
    notes += [
        f"{name} scored A and B in different ways: fingerprint {', '.join(both.a)}, then {', '.join(both.b)}"
        for name, both in found.fingerprints.items()
    ]
    for run, names in ((name_a, found.only_a), (name_b, found.only_b)):
        notes += [f"only {run} has: {', '.join(names)}"] if names else []
    if any(change.method == "welch" for change in found.metrics):
        notes += ["* too few trace ids match: A and B are compared as independent"]
    return ["", *notes] if notes else []


def _figures(change: MetricChange) -> list[str]:
    sign = "+" if change.difference else ""
    interval = "-" if change.low is None or change.high is None else f"{change.low:+.4g} to {change.high:+.4g}"
    mark = " *" if change.method == "welch" else ""
    numbers = [number(change.mean_a), number(change.mean_b), number(change.difference, sign)]
    numbers += [interval + mark, "-" if change.p_adjusted is None else f"{change.p_adjusted:.2g}"]
    numbers += [f"{count:,}" for count in (change.paired, change.only_a, change.only_b)]
    return numbers + ["-" if share is None else f"{share:.1%}" for share in (change.coverage_a, change.coverage_b)]
