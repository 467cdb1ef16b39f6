"""A new version, model or parameter of an evaluator is stated once: from then on its scores have another baseline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.insights.model import Insight, InsightRow, Period, insight_row
from ragtide.drift.leadership import Term
from ragtide.drift.settings import JobSettings, WindowSettings
from ragtide.drift.text import scope_label
from ragtide.drift.windows.metrics import MetricRef
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_HISTORY = timedelta(days=30)
_HOUR_S = 3600


class NewVersion(NamedTuple):
    """An evaluator's rows of an application have this fingerprint from a window on, and had another before."""

    app: str
    environment: str
    evaluator: str
    fingerprint: str
    before: str
    first: datetime


def run_new_version_insights(
    database: Database,
    evaluators: Mapping[str, Evaluator],
    windows: WindowSettings,
    settings: JobSettings,
    term: Term,
    now: datetime,
) -> list[InsightRow]:
    """Those that began within the last period, stored; each in the period that it began in, whenever it is stated."""
    since = now - timedelta(seconds=settings.insights_period_s)
    rows = [
        insight_row(_insight(one), Period.of(one.first, settings.insights_period_s), term)
        for one in _new_versions(database, evaluators.values(), windows, now)
        if one.first >= since
    ]
    database.insert("insights", rows)
    return rows


def _new_versions(
    database: Database, evaluators: Iterable[Evaluator], windows: WindowSettings, now: datetime
) -> Iterator[NewVersion]:
    """In order of time; an evaluator's first fingerprint of the days looked at is not new."""
    size_s = _HOUR_S if _HOUR_S in windows.all_sizes_s else windows.base_s
    names = [MetricRef(one, one.metrics[0]).name for one in evaluators]
    rows = database.rows(
        f"""
        SELECT app, environment, evaluator, groupArray((first, fingerprint)) AS fingerprints
        FROM (
            SELECT app, environment, evaluator, toString(fingerprint) AS fingerprint, min(start) AS first
            FROM windows FINAL
            WHERE run_id = 'live' AND size_s = {size_s} AND metric IN {sql.texts(names)} AND segment = ''
                AND scored + failed > 0 AND start >= {{since:DateTime64(3, 'UTC')}}
            GROUP BY app, environment, evaluator, fingerprint
        )
        GROUP BY app, environment, evaluator HAVING count() > 1 ORDER BY app, environment, evaluator""",
        {"since": now - _HISTORY},
    )
    for row in rows:
        known: Sequence[tuple[datetime, str]] = sorted(row["fingerprints"])
        for (_, before), (first, fingerprint) in pairwise(known):
            yield NewVersion(row["app"], row["environment"], row["evaluator"], fingerprint, before, first)


def _insight(one: NewVersion) -> Insight:
    return Insight(
        type="data",
        app=one.app,
        environment=one.environment,
        identity=("fingerprint", one.evaluator, one.fingerprint),
        description=(
            f"{scope_label(one.app, one.environment)}: {one.evaluator} has another version, model or parameters "
            f"since the hour of {one.first:%Y-%m-%d %H:%M} UTC; its scores begin a new baseline."
        ),
        attributes={
            "evaluator": one.evaluator,
            "fingerprint": one.fingerprint,
            "before": one.before,
            "since": one.first.isoformat(),
        },
        examples=(),
        actions=(
            "Where nobody changed the evaluator, compare versions and models of the workers: do all run the same?",
            "Compare scores before and after only where the traces of before are replayed: ragtide replay.",
        ),
    )
