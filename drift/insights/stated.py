"""The insights that are stated, as people read them: what the newest look at a period found."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from drift.insights.insight import InsightRow, Period
from drift.leadership import Term
from sinks.clickhouse.database import Database


def stated(database: Database, since: datetime, app: str | None = None, type_: str | None = None) -> list[InsightRow]:
    """Those of periods that end after `since`, the newest period first; all where app and type are None."""
    conditions = ["NOT withdrawn", "period_end > {since:DateTime64(3, 'UTC')}"]
    bound: dict[str, Any] = {"since": since}
    if app is not None:
        conditions.append("app = {app:String}")
        bound["app"] = app
    if type_ is not None:
        conditions.append("type = {type:String}")
        bound["type"] = type_
    return _rows(database, conditions, bound)


def withdraw(database: Database, found: Collection[InsightRow], period: Period, term: Term) -> None:
    """Of the period nothing is stated but what was `found` when this returns; what is found again is stated again."""
    still = {one.insight_id for one in found}
    conditions = [
        "NOT withdrawn",
        "period_start = {start:DateTime('UTC')}",
        "period_end = {end:DateTime('UTC')}",
    ]
    stated_before = _rows(database, conditions, {"start": period.start, "end": period.end})
    gone = [one for one in stated_before if one.insight_id not in still]
    database.insert("insights", [one._replace(epoch=term.epoch, withdrawn=1) for one in gone])


def _rows(database: Database, conditions: Collection[str], bound: Mapping[str, Any]) -> list[InsightRow]:
    rows = database.rows(
        f"SELECT {', '.join(InsightRow._fields)} FROM insights FINAL WHERE {' AND '.join(conditions)} "
        "ORDER BY period_end DESC, app, environment, type, insight_id",
        bound,
    )
    return [InsightRow(**row) for row in rows]
