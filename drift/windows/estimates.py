"""Store the estimates of sampled metrics, made from the summed parts of their windows: see `prediction_powered`.

The contents are stored before (`store`). A second run writes nothing; a run after a crash writes the missing ones.
"""

from collections.abc import Iterator, Mapping, Sequence

from ragtide.drift import sql
from ragtide.drift.windows.scope import Scope
from ragtide.drift.windows.store import CloseParams
from ragtide.drift.windows.window_metrics import WINDOW_COLUMNS, WindowRow, nearly_equal, revision_of
from ragtide.evaluators.prediction_powered import PREFIX, estimate, sums_of
from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.sinks.clickhouse.database import Database

_ESTIMATED = ("estimate", "estimate_low", "estimate_high", "weighted_mean", "saved_calls")


def store_estimates(
    database: Database, evaluators: Mapping[str, Evaluator], scope: Scope, closing: CloseParams, version: int
) -> None:
    """Store the estimates of every window of these evaluators in the scope.

    The contents were stored with `closing`; rows that replace older ones have `version`.
    """
    rows = database.rows(
        f"SELECT {WINDOW_COLUMNS} FROM windows FINAL WHERE {scope.windows_condition(scope.size_s)} "
        f"AND evaluator IN {sql.texts(evaluators)} "
        f"AND (arrayExists(key -> startsWith(key, {sql.text(PREFIX)}), mapKeys(parts)) OR isNotNull(weighted_mean))"
    )
    metrics = {f"{one.id}.{metric.key}": metric for one in evaluators.values() for metric in one.metrics}
    database.insert("windows", list(_changes([WindowRow(**row) for row in rows], metrics, closing, version)))


def _changes(
    rows: Sequence[WindowRow], metrics: Mapping[str, Metric], closing: CloseParams, version: int
) -> Iterator[WindowRow]:
    for row in rows:
        metric = metrics.get(row.metric)
        if metric is None:  # a category
            continue
        now = _with_estimate(row, metric)
        if not all(nearly_equal(getattr(row, name), getattr(now, name)) for name in _ESTIMATED):
            # Contents that were stored just now are no revision: no reader has them yet.
            is_new = row.version == closing.version
            yield now._replace(version=version) if is_new else revision_of(now, row, closing, version)


def _with_estimate(row: WindowRow, metric: Metric) -> WindowRow:
    """Return the row with its estimate, within the range of the metric."""
    made = estimate(sums_of(metric.key, row.parts))
    if made is None:
        return row._replace(estimate=None, estimate_low=None, estimate_high=None, weighted_mean=None, saved_calls=None)
    mean = made.mean.within(metric.low, metric.high)
    return row._replace(
        estimate=mean.value,
        estimate_low=mean.low,
        estimate_high=mean.high,
        weighted_mean=made.plain.value,
        saved_calls=made.saved,
    )
