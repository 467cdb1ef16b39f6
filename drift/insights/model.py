"""Types of insights, their storage, and the insights that are current.

An insight points at traces, belongs to one period and has the same id whenever it is found again."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from ragtide.drift.leadership import Term
from ragtide.sinks.clickhouse.database import Database


class InsightRow(NamedTuple):
    """Table `insights`; `attributes` is JSON."""

    insight_id: str
    type: str
    app: str
    environment: str
    description: str
    attributes: str
    examples: Sequence[str]
    actions: Sequence[str]
    period_start: datetime
    period_end: datetime
    epoch: int
    withdrawn: int = 0


@dataclass(frozen=True, slots=True)
class Period:
    """What an insight speaks of: from `start` on and before `end`."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, now: datetime, length_s: float) -> Self:
        """The period that `now` lies in; periods follow one another from 1970 on."""
        length = int(length_s)
        first = int(now.timestamp()) // length * length
        return cls(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(first + length, UTC))


@dataclass(frozen=True, slots=True)
class Insight:
    """What an insight says. `identity` tells it from others of its type, app, environment and period."""

    type: str
    app: str
    environment: str
    identity: tuple[str | int, ...]
    description: str
    attributes: Mapping[str, Any]
    examples: Sequence[str]
    actions: Sequence[str]


def insight_row(found: Insight, period: Period, term: Term) -> InsightRow:
    """Stated again within its period, it takes the place of what was said before."""
    identity = [found.type, found.app, found.environment, period.start.isoformat(), period.end.isoformat()]
    return InsightRow(
        insight_id=hashlib.sha256(json.dumps([*identity, *found.identity]).encode()).hexdigest()[:16],
        type=found.type,
        app=found.app,
        environment=found.environment,
        description=found.description,
        attributes=json.dumps({"app": found.app, "environment": found.environment, **found.attributes}, sort_keys=True),
        examples=found.examples,
        actions=found.actions,
        period_start=period.start,
        period_end=period.end,
        epoch=term.epoch,
    )


def current_insights(
    database: Database, since: datetime, app: str | None = None, type_: str | None = None
) -> list[InsightRow]:
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


def retract(database: Database, found: Collection[InsightRow], period: Period, term: Term) -> None:
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
