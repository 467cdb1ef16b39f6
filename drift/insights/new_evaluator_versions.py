"""State a new version, model or parameter of an evaluator once: from then on its scores have another baseline."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

from ragtide.drift import sql
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import AppEnvironment, Insight, insight
from ragtide.drift.stats import HOUR_S
from ragtide.drift.windows import MetricRef

_HISTORY = timedelta(days=30)


@insight(reads=PeriodData)
def new_evaluator_versions(data: PeriodData) -> Iterator[Insight]:
    """Versions that began less than one period ago, each in the period in which it began.

    A version is a fingerprint; the first of an evaluator and application in 30 days is not new.
    """
    size_s = HOUR_S if HOUR_S in data.windows.all_sizes_s else data.windows.base_s
    names = [MetricRef(one, one.metrics[0]).name for one in data.evaluators.values()]
    rows = data.database.rows(
        f"""
        SELECT app, environment, evaluator, arraySort(groupArray((first, fingerprint))) AS fingerprints
        FROM (
            SELECT app, environment, evaluator, toString(fingerprint) AS fingerprint, min(start) AS first
            FROM windows FINAL
            WHERE run_id = 'live' AND size_s = {size_s} AND metric IN {sql.texts(names)} AND segment = ''
                AND scored + failed > 0 AND start >= {{since:DateTime64(3, 'UTC')}}
            GROUP BY app, environment, evaluator, fingerprint
        )
        GROUP BY app, environment, evaluator HAVING count() > 1 ORDER BY app, environment, evaluator""",
        {"since": data.now - _HISTORY},
    )
    since = data.now - timedelta(seconds=data.settings.insights_period_s)
    for row in rows:
        where = AppEnvironment(row["app"], row["environment"])
        for (_, before), (first, fingerprint) in pairwise(row["fingerprints"]):
            if first >= since:
                yield _insight(where, row["evaluator"], before, fingerprint, first)


def _insight(where: AppEnvironment, evaluator: str, before: str, fingerprint: str, first: datetime) -> Insight:
    return Insight(
        type="data",
        where=where,
        identity=("fingerprint", evaluator, fingerprint),
        message=(
            f"{evaluator} has a new version, model or parameters since {first:%Y-%m-%d %H:%M} UTC. "
            "Its scores start a new baseline"
        ),
        figures={"evaluator": evaluator, "fingerprint": fingerprint, "before": before, "since": first.isoformat()},
        actions=(
            "If nobody changed the evaluator, compare versions and models of the workers. Do all run the same?",
            "Replay the earlier traces before you compare scores before and after: ragtide replay.",
        ),
        at=first,
    )
