"""SQL of the detector: what the baseline of the chosen metric expects, against what there is."""

from ragtide.dashboards.metric_sql import METRIC
from ragtide.dashboards.sql import APP, TOTAL, Tables
from ragtide.dashboards.variable_sql import in_variable
from ragtide.drift.stats import CONFIDENCE, z_score
from ragtide.drift.windows import count_out_of_bounds

_WEEK_HOURS = 168
_THURSDAY = 3 * 24  # 1970 began on a Thursday: hours since the Monday before
_Z = z_score(CONFIDENCE)


def expected(tables: Tables) -> str:
    """A time series: the quantity that the detector watches, its expected level, and the band of usual windows.

    Series of several environments and models are pooled, each by its records. Between the middles of hours the level is
    interpolated, as the detector does; times of day with a level of their own are left out.
    """
    span = f"greatest($__interval_s, {tables.size()})"
    return (
        f"SELECT time, greatest(lowest, middle - {_Z!r} * deviation) AS `expected from`, "
        f"middle + {_Z!r} * deviation AS `expected to`, middle AS expected, observed AS now "
        f"FROM (SELECT time, if(any(of_records), 0, -inf) AS lowest, sum(n * level) / sum(n) AS middle, "
        "sqrt(sum(n * n * variance)) / sum(n) AS deviation, sum(found) / sum(n) AS observed "
        f"FROM ({_series(tables, span)}) GROUP BY time) ORDER BY time"
    )


def baselines(tables: Tables) -> str:
    """One row per series: what is watched, since when its baseline holds, and its level now and over the week."""
    return (
        "SELECT environment, model, argMax(quantity, (effective_from, version)) AS quantity, "
        "argMax(arrayAvg(levels), (effective_from, version)) AS `mean level`, "
        "argMax(arrayMin(levels), (effective_from, version)) AS `lowest hour`, "
        "argMax(arrayMax(levels), (effective_from, version)) AS `highest hour`, "
        f"max(effective_from) AS `baseline of` FROM {tables.name('expected_levels')} FINAL "
        f"WHERE {_here()} AND effective_from <= $__toTime GROUP BY environment, model "
        "ORDER BY environment, model LIMIT 50"
    )


def _here() -> str:
    return f"{APP} AND {METRIC} AND {TOTAL} AND {in_variable('environment')} AND {in_variable('model')}"


def _series(tables: Tables, span: str) -> str:
    """Per time and series: records `n`, `found` (their sum or how many count), the level and its variance."""
    windows = (
        "SELECT $__timeInterval(start) AS time, environment, model, min(start) AS at, "
        f"sum(scored) AS n, sum(sum) AS total, sumMap(bins) AS bins {tables.sized(METRIC)} WHERE scored > 0 "
        "GROUP BY time, environment, model"
    )
    place = f"((toUnixTimestamp(time) + {span} / 2) / 3600 - 0.5)"
    hour = f"toUInt32(floor({place}))"
    before = f"levels[({hour} + {_THURSDAY}) % {_WEEK_HOURS} + 1]"
    after = f"levels[({hour} + {_THURSDAY + 1}) % {_WEEK_HOURS} + 1]"
    share = f"({place} - {hour})"
    unit = "if(of_records, level * (1 - level), 1)"
    return (
        f"SELECT time, n, of_records, {before} * (1 - {share}) + {after} * {share} AS level, "
        f"if(of_records, toFloat64({count_out_of_bounds('min_bin', 'max_bin')}), total) AS found, "
        f"{unit} * (variance_per_record / n + variance_floor / greatest({span} / tick_s, 1)) AS variance "
        f"FROM ({windows}) AS seen ASOF JOIN (SELECT environment, model, effective_from, of_records, min_bin, max_bin, "
        "levels, variance_per_record, variance_floor, tick_s "
        f"FROM {tables.name('expected_levels')} FINAL WHERE {_here()} AND effective_from <= $__toTime) AS usual "
        "ON seen.environment = usual.environment AND seen.model = usual.model AND seen.at >= usual.effective_from"
    )
