"""The panels of an evaluator, from its spec alone."""

from collections.abc import Iterator

from dashboards.panels import lines, rows, stacked, with_threshold
from dashboards.sdk import table, timeseries
from dashboards.sql import Tables
from evaluators.spec import Evaluator, Metric

_UNITS = {"s": "s", "usd": "currencyUSD", "share": "percentunit", "bytes": "bytes"}


def name(evaluator: Evaluator, metric: Metric) -> str:
    """`evaluator.metric`."""
    return f"{evaluator.id}.{metric.key}"


def unit(metric: Metric) -> str:
    """Grafana's unit: a metric from 0 to 1 reads as a percentage."""
    if metric.unit is not None:
        return _UNITS.get(metric.unit, "short")
    return "percentunit" if (metric.low, metric.high) == (0.0, 1.0) else "short"


def panels(evaluator: Evaluator, tables: Tables) -> Iterator[timeseries.Panel | table.Panel]:
    """Each primary metric, the others by unit, how many records were scored, and why the rest was not."""
    for metric in evaluator.metrics:
        if metric.primary:
            yield _primary(evaluator, metric, tables)
    for grafana_unit in sorted({unit(metric) for metric in evaluator.metrics if not metric.primary}):
        others = [metric for metric in evaluator.metrics if not metric.primary and unit(metric) == grafana_unit]
        says = "; ".join(f"{metric.key}: {_good(metric)}" for metric in others)
        title = f"{evaluator.id}: {' and '.join(_listed([metric.key for metric in others]))}"
        yield lines(
            title,
            f"Means. {says}.",
            [tables.means({name(evaluator, metric): metric.key for metric in others})],
            grafana_unit,
            8,
        )
    first = name(evaluator, next((metric for metric in evaluator.metrics if metric.primary), evaluator.metrics[0]))
    yield stacked(
        f"{evaluator.id}: coverage",
        f"What became of the traces seen, by {first}: every mean speaks of the scored ones only.",
        tables.coverage(first),
        "short",
    )
    yield rows(f"{evaluator.id}: not scored, why", "Reasons of the records without a score.", tables.reasons(first), 8)


def _primary(evaluator: Evaluator, metric: Metric, tables: Tables) -> timeseries.Panel:
    full = name(evaluator, metric)
    mean = tables.means({full: "mean"})
    queries = [mean] if metric.bounded else [tables.quantiles(full), mean]
    says = f"{metric.description.capitalize()}. " if metric.description else ""
    says += f"{evaluator.description} {_good(metric).capitalize()}."
    panel = lines(full, says, queries, unit(metric), 8)
    if metric.bounded:
        panel = panel.min(metric.low).max(metric.high)
    return panel if metric.threshold is None else with_threshold(panel, metric.threshold, metric.better)


def _good(metric: Metric) -> str:
    side = "or more" if metric.better == "higher" else "or less"
    return f"{metric.better} is better" if metric.threshold is None else f"{metric.threshold:g} {side} is good"


def _listed(keys: list[str]) -> list[str]:
    return keys if len(keys) <= 2 else [keys[0], f"{len(keys) - 1} more"]
