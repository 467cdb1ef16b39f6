"""Words and tables of a result, for a terminal and for a notebook."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragtide.drift.stats import CONFIDENCE
from ragtide.stream.api.summary import MetricSummary
from ragtide.stream.api.text_table import TextTable, number

if TYPE_CHECKING:
    from ragtide.stream.api.result import Result

_SHOWN_FAULTS = 5
NO_TRACE = "there is no trace"


def describe(result: "Result") -> list[str]:
    """Say what was evaluated, what was rejected and why, and what could not run."""
    records = len(result.traces) + result.rejected_records + result.replaced
    lines = [f"{_count(records, 'record')}: {len(result.traces):,} evaluated, {result.rejected_records:,} rejected"]
    if result.replaced:
        lines[0] += f", {result.replaced:,} replaced by a later record with the same trace_id"
    shown = result.rejected[:_SHOWN_FAULTS]
    lines += [f"rejected: record {one.record}: {one.detail or one.reason}" for one in shown]
    if more := len(result.rejected) - len(shown):
        lines.append(f"rejected: {more:,} more faults in `rejected`")
    lines += list(result.notes)
    lines += [f"{id} cannot run: {reason}" for id, reason in result.unavailable.items()]
    return lines


def summary_table(metrics: Sequence[MetricSummary], confidence: float = CONFIDENCE) -> TextTable:
    """A row for each metric with scores or failures; `without_scores` names the others."""
    interval = f"{100 * confidence:g} % interval"
    columns = (
        "metric",
        "figure",
        "value",
        interval,
        "5 %",
        "median",
        "95 %",
        "bad",
        "scored",
        "coverage",
        "not scored",
    )
    return TextTable(columns, [_cells(one) for one in metrics if one.applicable], texts=(0, 1, len(columns) - 1))


def without_scores(metrics: Sequence[MetricSummary]) -> list[str]:
    """One line for each evaluator, or metric, that applies to no trace, with the reasons."""
    applies = {one.metric.partition(".")[0] for one in metrics if one.applicable}
    by_evaluator = {one.metric.partition(".")[0]: one for one in metrics if not one.applicable}
    lines = [f"no score: {id}: {_reasons(one) or NO_TRACE}" for id, one in by_evaluator.items() if id not in applies]
    of_metrics = [one for one in metrics if not one.applicable and one.metric.partition(".")[0] in applies]
    return lines + [f"no score: {one.name}: {_reasons(one)}" for one in of_metrics]


def _cells(one: MetricSummary) -> list[str]:
    unit = f" {one.unit}" if one.unit else ""
    low, _, median, _, high = one.quantiles
    return [
        one.name,
        one.figure,
        number(one.value) + (unit if one.value is not None else ""),
        "-" if one.low is None or one.high is None else f"{one.low:.4g} to {one.high:.4g}",
        number(low),
        number(median),
        number(high),
        "-" if one.bad is None else f"{one.bad:,}",
        f"{one.scored:,}",
        "-" if one.coverage is None else f"{one.coverage:.1%}",
        _reasons(one),
    ]


def _reasons(one: MetricSummary) -> str:
    skipped = [f"{n:,} {why}" for why, n in Counter(one.skipped).most_common()]
    return ", ".join([*(f"{n:,} failed: {why}" for why, n in Counter(one.failures).most_common()), *skipped])


def _count(number_: int, noun: str) -> str:
    return f"{number_:,} {noun}{'' if number_ == 1 else 's'}"
