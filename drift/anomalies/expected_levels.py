"""Expected levels of series as rows that dashboards read: what their baselines expect at each hour of the week."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies.batch import BaselineSet, Batch
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.detectors import WarmUp, level_values
from ragtide.drift.stats import calendar
from ragtide.drift.text import number
from ragtide.drift.windows import FAR_BIN, BinBounds, bin_bounds
from ragtide.sinks.clickhouse.database import Database

TABLE = "expected_levels"
_LEVEL = 0  # the channel that is shown: mean, bad records, or records above the usual median


class ExpectedRow(NamedTuple):
    """A row of `expected_levels`."""

    app: str
    environment: str
    metric: str
    model: str
    segment: str
    segment_value: str
    effective_from: datetime
    quantity: str
    of_records: int
    min_bin: int
    max_bin: int
    levels: list[float]
    variance_per_record: float
    variance_floor: float
    tick_s: int
    version: int


def store_expected_levels(
    database: Database,
    batch: Batch,
    monitored: Mapping[str, MonitoredMetric],
    baselines: BaselineSet,
    effective_from: int,
    version: int,
) -> None:
    """Store what these baselines expect of the batch's series, except of labels and of series that warm up."""
    rows = expected_rows(batch, monitored, baselines, effective_from, version)
    if rows:
        database.insert(TABLE, rows)


def expected_rows(
    batch: Batch, monitored: Mapping[str, MonitoredMetric], baselines: BaselineSet, effective_from: int, version: int
) -> Sequence[ExpectedRow]:
    """Return a row per series that is monitored from `effective_from` on.

    `levels` are those of the hours of a week from Monday 00:00 UTC, in the unit of the metric where the quantity is the
    mean, else shares. The variance of a mean over n records in k ticks is `variance_per_record` / n +
    `variance_floor` / k, of shares in units of p (1 - p).
    """
    if batch.key.kind == "category" or batch.key.is_rollout:
        return []
    baseline, since = baselines.aligned_to(batch).baseline, calendar.utc(effective_from)
    found = []
    for place in np.flatnonzero(baseline.warming == WarmUp.READY).tolist():
        series = batch.series[place]
        metric = monitored[series.metric]
        quantity, bounds = _quantity(metric, int(baseline.level_bins[place, _LEVEL]))
        scale = metric.width**2 if bounds is None else 1.0
        levels = metric.low + metric.width * baseline.level[place, _LEVEL].astype(np.float64)
        found.append(
            ExpectedRow(
                *series,
                effective_from=since,
                quantity=quantity,
                of_records=int(bounds is not None),
                min_bin=-FAR_BIN if bounds is None else bounds.min_bin,
                max_bin=FAR_BIN if bounds is None else bounds.max_bin,
                levels=levels.tolist(),
                variance_per_record=scale * float(baseline.noise_per_record[place, _LEVEL]),
                variance_floor=scale * float(baseline.noise_floor[place, _LEVEL]),
                tick_s=baseline.size_s,
                version=version,
            )
        )
    return found


def _quantity(metric: MonitoredMetric, level_bin: int) -> tuple[str, BinBounds | None]:
    """Return what is compared with the levels, in words, and the bins beyond which records count; None: the mean."""
    if metric.ref is None or metric.kind == "score":
        return "mean", None
    if metric.kind == "rate":
        return "share of bad records", bin_bounds(metric.ref.scale, *metric.ref.bounds)
    value = number(float(level_values(np.array(level_bin))), metric.unit)
    return f"share above the usual median, {value}", BinBounds(-FAR_BIN, level_bin)
