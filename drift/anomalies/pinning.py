"""What people pin and unpin. Each word is kept, with who and why; of an app and metric the last one holds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ragtide.drift.anomalies import queries, state_store
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.references import BaselinePin, ReferenceOverrides, load_pins
from ragtide.drift.detectors import serialization
from ragtide.drift.detectors.baseline import WarmUp
from ragtide.drift.stats import calendar
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_OTHER_VERSION = "records of another fingerprint alone"
SHORTFALLS = {
    WarmUp.NO_RECORDS: "no records",
    WarmUp.LESS_THAN_A_DAY: "less than a day from the first record to the last, as of history",
    WarmUp.TOO_FEW_RECORDS: "too few records",
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
class PinCoverage:
    """Of how many watched series a pin is the reference, and what it has of others, with of how many of them."""

    used_by: int
    others: Mapping[str, int]

    @property
    def series(self) -> int:
        """All of them."""
        return self.used_by + sum(self.others.values())

    @property
    def shortfall(self) -> str:
        """What the reference has of the others."""
        return ", ".join(f"{what} of {count}" for what, count in self.others.items())


def pin(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    base_s: int,
    history_days: int,
    new: Sequence[BaselinePin],
) -> list[PinCoverage]:
    """They hold from the next look on; how far each reaches. Series beyond that are judged by their history.

    Raises `ConfigError`, and pins nothing, where one has no windows or is enough for no series that is watched.
    """
    for one in new:
        _validate(database, monitored, one)
    found = _coverages(database, monitored, base_s, history_days, new)
    for one, reach in zip(new, found, strict=True):
        if reach.series and not reach.used_by:
            raise ConfigError(
                f"{describe_pin(one)} is enough for none of the {reach.series} series that are watched: "
                f"{reach.shortfall}"
            )
    save_pins(database, new)
    return found


def unpin(
    database: Database, app: str, metrics: Sequence[str], actor: str, why: str, at: datetime
) -> list[BaselinePin]:
    """These pins hold no more; raises `ConfigError` where one is none, and names those that are."""
    overrides = load_pins(database)
    if absent := [metric for metric in metrics if (app, metric) not in overrides]:
        known = ", ".join(metric or "all metrics" for of_app, metric in overrides if of_app == app) or "nothing"
        raise ConfigError(f"{app}: not pinned: {', '.join(one or 'all metrics' for one in absent)}; pinned: {known}")
    gone = [overrides[app, metric]._replace(removed=1, actor=actor, why=why, at=at) for metric in metrics]
    save_pins(database, gone)
    return gone


def pin_history(database: Database, app: str) -> list[BaselinePin]:
    """All that people ever pinned of an app ('': of every one), and took out, the last word first."""
    rows = database.rows(
        f"SELECT {', '.join(BaselinePin._fields)} FROM baseline_pins FINAL "
        "WHERE {app:String} = '' OR app = {app:String} ORDER BY at DESC, app, metric",
        {"app": app},
    )
    return [BaselinePin(*(row[name] for name in BaselinePin._fields)) for row in rows]


def replay_interval(database: Database, run_id: str, app: str) -> tuple[datetime, datetime]:
    """From when to when a replay has windows of an app; raises `ConfigError` where it has none."""
    rows = database.rows(
        "SELECT min(start) AS since, max(start) + 86400 AS until, count() AS n FROM windows "
        "WHERE run_id = {run:String} AND app = {app:String}",
        {"run": run_id, "app": app},
    )
    if not rows[0]["n"] or run_id == LIVE:
        raise ConfigError(f"run {run_id!r} has no windows of {app}; replay into it first (ragtide replay --run NAME)")
    return rows[0]["since"], rows[0]["until"]


def _validate(database: Database, monitored: Mapping[str, MonitoredMetric], one: BaselinePin) -> None:
    if one.metric and one.metric not in monitored:
        raise ConfigError(f"{one.metric} is not watched for changes; watched are {', '.join(sorted(monitored))}")
    rows = database.rows(
        "SELECT count() AS n FROM windows WHERE run_id = {run:String} AND app = {app:String} "
        "AND ({metric:String} = '' OR metric = {metric:String}) AND scored > 0 "
        "AND start >= {since:DateTime('UTC')} AND start < {until:DateTime('UTC')}",
        {"run": one.run_id, "app": one.app, "metric": one.metric, "since": one.since, "until": one.until},
    )
    if not rows[0]["n"]:
        what = one.metric or "any metric"
        raise ConfigError(f"{describe_pin(one)} has no closed window of {what} of {one.app}")


def _coverages(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    base_s: int,
    history_days: int,
    new: Sequence[BaselinePin],
) -> list[PinCoverage]:
    """As the next look will find it, by its own code."""
    overrides = ReferenceOverrides({**load_pins(database), **{(one.app, one.metric): one for one in new}}, {})
    learner = BaselineLearner(
        database, monitored, overrides, {}, base_s, history_s=history_days * calendar.DAY_S, lateness_s=calendar.HOUR_S
    )
    found: dict[BaselinePin, Counter[str]] = {one: Counter() for one in new}
    for batch in state_store.load_batches(database, monitored):
        if batch.key.is_rollout:
            continue
        for one, places in learner.series_by_pin(batch).items():
            if one not in found:
                continue
            warming = learner.learn_from_pin(batch, places, one, batch.processed_until).warming.tolist()
            present = set(queries.series_ids(database, learner.tick_range(one), monitored).tolist())
            for id_, number in zip(serialization.take(batch.rows, places).ids.tolist(), warming, strict=True):
                is_there = number == WarmUp.NO_RECORDS and id_ in present
                found[one][_OTHER_VERSION if is_there else SHORTFALLS.get(WarmUp(number), "")] += 1
    return [PinCoverage(counts.pop("", 0), dict(counts.most_common())) for counts in found.values()]


def save_pins(database: Database, pins: Sequence[BaselinePin]) -> None:
    """Kept, each beside those of before, when this returns."""
    database.insert("baseline_pins", [_Row(*one, one.at) for one in pins])


def describe_pin(one: BaselinePin) -> str:
    """What is pinned."""
    since, until = (f"{at:%Y-%m-%d %H:%M}" for at in (one.since, one.until))
    return f"{one.run_id} from {since} to {until} UTC"
