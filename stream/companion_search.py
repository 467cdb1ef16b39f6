"""Find companions of judges: the cheap metrics that agreed best with their scores lately."""

import logging
import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.evaluators.companions import companion_of
from ragtide.evaluators.errors import RagtideError
from ragtide.evaluators.plan import is_on
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.ingest.estimation import stands_for_others
from ragtide.stream.settings.loader import Settings

log = logging.getLogger(__name__)

_DAYS = 7
_TRACES = 2000  # of each judge, the newest
_FEWEST = 100  # traces with both scores, counted as if their weights were equal
_WEAKEST = 0.3  # correlation that is worth a companion: it saves a tenth of the calls
_95_PERCENT = 1.96


class Companion(NamedTuple):
    """A cheap metric that may be the companion of a judge's metric, both as `evaluator.metric`.

    `lowest` is the lower end of the 95 % interval of the correlation's size (Fisher 1921), from `traces`, the number of
    traces of equal weights that tell as much (Kish 1965).
    """

    metric: str
    name: str
    correlation: float
    lowest: float
    traces: float


def with_found_companions(settings: Settings, registry: Mapping[str, Evaluator], database: Database) -> Settings:
    """Add a companion for each metric of a sampled judge that names none and has none in the settings.

    Where scores cannot be read none is added. Whichever is chosen, estimates stay unbiased: a worse one makes wider
    intervals.
    """
    judge = settings.evaluators.judge
    if not judge.finds_companions:
        return settings
    on = [one for one in registry.values() if is_on(one, settings.evaluators)]
    lacking = {
        f"{one.id}.{metric.key}"
        for one in on
        if one.judge is not None and stands_for_others(one, settings)
        for metric in one.metrics
        if companion_of(one, metric, settings.evaluators) is None and f"{one.id}.{metric.key}" not in judge.companions
    }
    cheap = [one.id for one in on if one.lane == "fast" and one.combine is None]
    if not lacking or not cheap:
        return settings
    try:
        found = {one.metric: one for one in _candidates(database, lacking, cheap) if one.lowest >= _WEAKEST}
    except RagtideError as error:
        log.warning("companions of judges cannot be looked for, and only named ones are used: %s", error)
        return settings
    for one in found.values():
        log.info(
            "companion of %s: %s (correlation %.2f, at least %.2f, on %d traces)",
            *(one.metric, one.name, one.correlation, one.lowest, one.traces),
        )
    companions = {**judge.companions, **{name: one.name for name, one in found.items()}}
    evaluators = settings.evaluators.model_copy(update={"judge": judge.model_copy(update={"companions": companions})})
    return settings.model_copy(update={"evaluators": evaluators})


def _candidates(database: Database, metrics: set[str], cheap: list[str]) -> Iterator[Companion]:
    """Correlate the judges' metrics with each metric of the cheap evaluators; the best of a metric comes last.

    Within applications and environments: a metric that only differs between them makes no window's estimate better.
    """
    judges = sorted({name.rpartition(".")[0] for name in metrics})
    key = "app, environment, toStartOfMinute(time) AS minute, trace_id"
    newest = (
        "SELECT evaluator, {key}, weight, metrics, status, is_deleted FROM scores "
        "WHERE run_id = 'live' AND time >= now() - INTERVAL {days} DAY AND {which} "
        "ORDER BY version DESC LIMIT 1 BY evaluator, app, environment, minute, trace_id"
    ).format
    scored = "status = 'scored' AND NOT is_deleted"
    judged = (
        f"SELECT * FROM ({newest(key=key, days=_DAYS, which=f'evaluator IN {sql.texts(judges)}')}) WHERE {scored} "
        f"ORDER BY minute DESC, trace_id LIMIT {_TRACES} BY evaluator"
    )
    traces = "trace_id IN (SELECT trace_id FROM judged)"
    compared = newest(key=key, days=_DAYS, which=f"evaluator IN {sql.texts(cheap)} AND {traces}")
    rows = database.rows(
        f"""
        WITH judged AS ({judged})
        SELECT metric, companion, sum(w) AS total, sum(ww) AS squares, sum(wxx - wx * wx / w) AS var_x,
            sum(wyy - wy * wy / w) AS var_y, sum(wxy - wx * wy / w) AS both
        FROM (
        SELECT metric, companion, sum(weight) AS w, sum(weight * weight) AS ww, sum(weight * x) AS wx,
            sum(weight * y) AS wy, sum(weight * x * x) AS wxx, sum(weight * y * y) AS wyy, sum(weight * x * y) AS wxy
        FROM (
            SELECT concat(j.evaluator, '.', score.1) AS metric, concat(c.evaluator, '.', other.1) AS companion,
                app, environment, toFloat64(j.weight) AS weight, other.2 AS x, score.2 AS y
            FROM judged AS j
            INNER JOIN (SELECT * FROM ({compared}) WHERE {scored}) AS c USING (app, environment, minute, trace_id)
            ARRAY JOIN CAST(j.metrics, 'Array(Tuple(String, Float64))') AS score
            ARRAY JOIN CAST(c.metrics, 'Array(Tuple(String, Float64))') AS other
            WHERE weight > 0
        )
        WHERE metric IN {sql.texts(sorted(metrics))}
        GROUP BY metric, companion, app, environment
        )
        GROUP BY metric, companion ORDER BY metric, companion
        """
    )
    found = [_companion(row) for row in rows]
    yield from sorted((one for one in found if one.traces >= _FEWEST), key=lambda one: one.lowest)


def _companion(row: Mapping[str, float | str]) -> Companion:
    total, squares, var_x, var_y, both = (float(row[name]) for name in ("total", "squares", "var_x", "var_y", "both"))
    traces = total**2 / squares
    spread = math.sqrt(max(var_x, 0.0) * max(var_y, 0.0))
    correlation = max(-1.0, min(1.0, both / spread)) if spread > 1e-12 else 0.0
    lowest = 0.0
    if traces > 3:
        within = math.atanh(min(abs(correlation), 1 - 1e-12)) - _95_PERCENT / math.sqrt(traces - 3)
        lowest = math.tanh(max(within, 0.0))
    return Companion(str(row["metric"]), str(row["companion"]), correlation, lowest, traces)
