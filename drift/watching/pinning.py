"""What people pin and unpin. Each word is kept, with who and why; of an app and metric the last one holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from drift.detectors import stored
from drift.detectors.baseline import Warming
from drift.watching import grid, kept, reading
from drift.watching.fitting import Fitter
from drift.watching.kinds import Watch
from drift.watching.reference import Pin, References, pins
from evaluators.errors import ConfigError
from sinks.clickhouse.database import Database
from sinks.rows import LIVE

_ANOTHER = "records of another fingerprint alone"
TOLD = {
    Warming.NO_RECORDS: "no records",
    Warming.LESS_THAN_A_DAY: "less than a day from the first record to the last, as of history",
    Warming.TOO_FEW_RECORDS: "too few records",
}


class _Row(NamedTuple):
    """A row of `baseline_pins`; `said_at` is `at` once more, in the table's key."""

    app: str
    metric: str
    run_id: str
    since: datetime
    until: datetime
    why: str
    actor: str
    removed: int
    at: datetime
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Reach:
    """Of how many watched series a pin is the reference, and what it has of others, with of how many of them."""

    judged: int
    others: Mapping[str, int]

    @property
    def series(self) -> int:
        """All of them."""
        return self.judged + sum(self.others.values())

    @property
    def why_not(self) -> str:
        """What the reference has of the others."""
        return ", ".join(f"{what} of {count}" for what, count in self.others.items())


def pin(
    database: Database, watched: Mapping[str, Watch], base_s: int, history_days: int, new: Sequence[Pin]
) -> list[Reach]:
    """They hold from the next look on; how far each reaches. Series beyond that are judged by their history.

    Raises `ConfigError`, and pins nothing, where one has no windows or is enough for no series that is watched.
    """
    for one in new:
        _check(database, watched, one)
    found = _reaches(database, watched, base_s, history_days, new)
    for one, reach in zip(new, found, strict=True):
        if reach.series and not reach.judged:
            raise ConfigError(
                f"{words(one)} is enough for none of the {reach.series} series that are watched: {reach.why_not}"
            )
    say(database, new)
    return found


def unpin(database: Database, app: str, metrics: Sequence[str], actor: str, why: str, at: datetime) -> list[Pin]:
    """These pins hold no more; raises `ConfigError` where one is none, and names those that are."""
    held = pins(database)
    if absent := [metric for metric in metrics if (app, metric) not in held]:
        known = ", ".join(metric or "all metrics" for of_app, metric in held if of_app == app) or "nothing"
        raise ConfigError(f"{app}: not pinned: {', '.join(one or 'all metrics' for one in absent)}; pinned: {known}")
    gone = [held[app, metric]._replace(removed=1, actor=actor, why=why, at=at) for metric in metrics]
    say(database, gone)
    return gone


def said(database: Database, app: str) -> list[Pin]:
    """All that people ever pinned of an app ('': of every one), and took out, the last word first."""
    rows = database.rows(
        f"SELECT {', '.join(Pin._fields)} FROM baseline_pins FINAL "
        "WHERE {app:String} = '' OR app = {app:String} ORDER BY at DESC, app, metric",
        {"app": app},
    )
    return [Pin(*(row[name] for name in Pin._fields)) for row in rows]


def span_of(database: Database, run_id: str, app: str) -> tuple[datetime, datetime]:
    """From when to when a replay has windows of an app; raises `ConfigError` where it has none."""
    rows = database.rows(
        "SELECT min(start) AS since, max(start) + 86400 AS until, count() AS n FROM windows "
        "WHERE run_id = {run:String} AND app = {app:String}",
        {"run": run_id, "app": app},
    )
    if not rows[0]["n"] or run_id == LIVE:
        raise ConfigError(f"run {run_id!r} has no windows of {app}; replay into it first (ragwatch replay --run NAME)")
    return rows[0]["since"], rows[0]["until"]


def _check(database: Database, watched: Mapping[str, Watch], one: Pin) -> None:
    if one.metric and one.metric not in watched:
        raise ConfigError(f"{one.metric} is not watched for changes; watched are {', '.join(sorted(watched))}")
    rows = database.rows(
        "SELECT count() AS n FROM windows WHERE run_id = {run:String} AND app = {app:String} "
        "AND ({metric:String} = '' OR metric = {metric:String}) AND scored > 0 "
        "AND start >= {since:DateTime('UTC')} AND start < {until:DateTime('UTC')}",
        {"run": one.run_id, "app": one.app, "metric": one.metric, "since": one.since, "until": one.until},
    )
    if not rows[0]["n"]:
        what = one.metric or "any metric"
        raise ConfigError(f"{words(one)} has no closed window of {what} of {one.app}")


def _reaches(
    database: Database, watched: Mapping[str, Watch], base_s: int, history_days: int, new: Sequence[Pin]
) -> list[Reach]:
    """As the next look will find it, by its own code."""
    held = References({**pins(database), **{(one.app, one.metric): one for one in new}}, {})
    fitter = Fitter(database, watched, held, {}, base_s, history_s=history_days * grid.DAY_S, lateness_s=grid.HOUR_S)
    found: dict[Pin, Counter[str]] = {one: Counter() for one in new}
    for batch in kept.batches(database, watched):
        if batch.key.of_successors:
            continue
        for one, places in fitter.pinned(batch).items():
            if one not in found:
                continue
            warming = fitter.by_pin(batch, places, one, batch.until).warming.tolist()
            present = set(reading.present(database, fitter.span(one), watched).tolist())
            for id_, number in zip(stored.take(batch.rows, places).ids.tolist(), warming, strict=True):
                is_there = number == Warming.NO_RECORDS and id_ in present
                found[one][_ANOTHER if is_there else TOLD.get(Warming(number), "")] += 1
    return [Reach(counts.pop("", 0), dict(counts.most_common())) for counts in found.values()]


def say(database: Database, words: Sequence[Pin]) -> None:
    """Kept, each beside those of before, when this returns."""
    database.insert("baseline_pins", [_Row(*one, one.at) for one in words])


def words(one: Pin) -> str:
    """What is pinned."""
    since, until = (f"{at:%Y-%m-%d %H:%M}" for at in (one.since, one.until))
    return f"{one.run_id} from {since} to {until} UTC"
