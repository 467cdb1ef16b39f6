"""Insights, their storage, the insights that are current, and the registry of functions that find them.

An insight points at traces, belongs to one period and keeps its id when a later run of that period finds it again.
"""

import hashlib
import json
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Generic, NamedTuple, Self, TypeVar

from ragtide.drift.leadership import Term
from ragtide.drift.stats import Interval, Share, wilson
from ragtide.drift.text import percent, scope_label
from ragtide.sinks.clickhouse.database import Database

IN_PERIOD = "time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"  # with `Period.bound`


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
    """[start, end)."""

    start: datetime
    end: datetime

    @classmethod
    def of(cls, now: datetime, length_s: float) -> Self:
        """Return the period that contains `now`; periods follow one another from 1970 on."""
        length = int(length_s)
        first = int(now.timestamp()) // length * length
        return cls(datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(first + length, UTC))

    @property
    def bound(self) -> dict[str, Any]:
        """Parameters of `IN_PERIOD`."""
        return {"start": self.start, "end": self.end}


class AppEnvironment(NamedTuple):
    """Whose traces they are."""

    app: str
    environment: str


@dataclass(frozen=True, slots=True)
class Insight:
    """One finding; `identity` distinguishes it from others of its type, app, environment and period.

    `figures` become JSON: an `Interval` is stored as [low, high], a `Share` as [hits, n].
    """

    type: str
    where: AppEnvironment
    identity: tuple[str | int, ...]
    message: str  # sentences, the last without its full stop
    figures: Mapping[str, Any]
    actions: Sequence[str]
    examples: Sequence[str] = ()
    label: str = ""  # starts the description; empty: application and environment
    at: datetime | None = None  # belongs to the period of this instant; None: to the running one


def estimate(name: str, value: float, interval: Interval) -> dict[str, Any]:
    """Return the figures NAME and NAME_interval."""
    return {name: value, f"{name}_interval": interval}


def share_estimate(name: str, share: Share) -> dict[str, Any]:
    """Return the figures of a share and its Wilson interval."""
    return estimate(name, share.value, wilson(share))


def percent_estimate(share: Share) -> str:
    """Return a share and its Wilson interval, in words."""
    low, high = wilson(share)
    return f"{percent(share.value)}, 95 % interval {low * 100:.3g} to {percent(high)}"


def insight_row(found: Insight, period: Period, term: Term) -> InsightRow:
    """Return the row to store; it replaces the one of the same identity in the period."""
    app, environment = found.where
    identity = [found.type, app, environment, period.start.isoformat(), period.end.isoformat()]
    return InsightRow(
        insight_id=hashlib.sha256(json.dumps([*identity, *found.identity]).encode()).hexdigest()[:16],
        type=found.type,
        app=app,
        environment=environment,
        description=f"{found.label or scope_label(app, environment)}: {found.message}.",
        attributes=json.dumps({"app": app, "environment": environment, **found.figures}, sort_keys=True),
        examples=found.examples,
        actions=found.actions,
        period_start=period.start,
        period_end=period.end,
        epoch=term.epoch,
    )


def current_insights(
    database: Database, since: datetime, app: str | None = None, type_: str | None = None
) -> list[InsightRow]:
    """Insights of periods that end after `since`, the newest period first; None: of any app or type."""
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
    """Withdraw the period's insights that are not in `found`."""
    ids = {one.insight_id for one in found}
    conditions = [
        "NOT withdrawn",
        "period_start = {start:DateTime('UTC')}",
        "period_end = {end:DateTime('UTC')}",
    ]
    current = _rows(database, conditions, period.bound)
    gone = [one for one in current if one.insight_id not in ids]
    database.insert("insights", [one._replace(epoch=term.epoch, withdrawn=1) for one in gone])


def _rows(database: Database, conditions: Collection[str], bound: Mapping[str, Any]) -> list[InsightRow]:
    rows = database.rows(
        f"SELECT {', '.join(InsightRow._fields)} FROM insights FINAL WHERE {' AND '.join(conditions)} "
        "ORDER BY period_end DESC, app, environment, type, insight_id",
        bound,
    )
    return [InsightRow(**row) for row in rows]


Data = TypeVar("Data")


@dataclass(frozen=True, slots=True)
class Finder(Generic[Data]):
    """A function that finds insights, and the type of what it reads: `PeriodData`, or `AppData` of every app."""

    reads: type[Data]
    find: Callable[[Data], Iterable[Insight]]

    def __call__(self, data: Data) -> Iterable[Insight]:
        """Find the insights in `data`."""
        return self.find(data)


def insight(reads: type[Data]) -> Callable[[Callable[[Data], Iterable[Insight]]], Finder[Data]]:
    """Make a function of a module of this room one that `run_insights` calls."""
    return lambda find: Finder(reads, find)


def finders(reads: type[Data]) -> list[Finder[Data]]:
    """Find the functions of the room that read this type, by module name."""
    room = import_module(__name__.rpartition(".")[0])
    modules = [import_module(f"{room.__name__}.{found.name}") for found in pkgutil.iter_modules(room.__path__)]
    values = [value for module in modules for value in vars(module).values()]
    return list(dict.fromkeys(one for one in values if isinstance(one, Finder) and one.reads is reads))
