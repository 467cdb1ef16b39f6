"""Pin and unpin references of baselines. Every action is stored with actor and reason; the last one counts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies import queries
from ragtide.drift.anomalies.learner import BaselineLearner
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.references import BaselinePin, ReferenceOverrides, load_pins
from ragtide.drift.anomalies.state_store import ClickHouseStateStore
from ragtide.drift.detectors import WarmUp
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats import DAY_S
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_OTHER_VERSION = "records of another fingerprint only"
SHORTFALLS = {
    WarmUp.NO_RECORDS: "no records",
    WarmUp.LESS_THAN_A_DAY: "less than a day from the first record to the last",
    WarmUp.TOO_FEW_RECORDS: "too few records",
}


class _Row(NamedTuple):
    """A row of `baseline_pins`; `at_key` repeats `at` in the table's key."""

    app: str
    metric: str
    run_id: str
    since: datetime
    until: datetime
    why: str
    actor: str
    removed: int
    at: datetime
    at_key: datetime


@dataclass(frozen=True, slots=True)
class PinCoverage:
    """How many monitored series a pin is the reference of, and how many others by what it lacks for them."""

    used_by: int
    others: Mapping[str, int]

    @classmethod
    def of(cls, shortfalls: Counter[str]) -> "PinCoverage":
        """Count by shortfall; '' is none."""
        others = {what: count for what, count in shortfalls.most_common() if what}
        return cls(shortfalls[""], others)

    @property
    def series(self) -> int:
        """All monitored series of the pin."""
        return self.used_by + sum(self.others.values())

    @property
    def shortfall(self) -> str:
        """Number of series by shortfall, as text."""
        return ", ".join(f"{count} with {what}" for what, count in self.others.items())

    def check(self, pin: BaselinePin) -> None:
        """Raise `ConfigError` if the pin covers none of its monitored series."""
        if self.series and not self.used_by:
            raise ConfigError(
                f"{describe_pin(pin)} covers none of the {self.series} monitored series of {pin.app}: {self.shortfall}"
            )


def pin(
    database: Database,
    monitored: Mapping[str, MonitoredMetric],
    windows: WindowSettings,
    settings: DriftSettings,
    new: Sequence[BaselinePin],
) -> list[PinCoverage]:
    """Pin references from the next scan on, and return how many series each covers.

    Raises `ConfigError`, and pins nothing, if one has no windows or covers no monitored series.
    """
    for one in new:
        _validate(database, monitored, one)
    overrides = ReferenceOverrides({**load_pins(database), **{(one.app, one.metric): one for one in new}}, {})
    found = _coverages(BaselineLearner(database, monitored, overrides, {}, windows, settings), new)
    for one, coverage in zip(new, found, strict=True):
        coverage.check(one)
    save_pins(database, new)
    return found


def unpin(
    database: Database, app: str, metrics: Sequence[str], actor: str, why: str, at: datetime
) -> list[BaselinePin]:
    """Remove pins. Raises `ConfigError`, which names the pins in force, if one of them is not."""
    overrides = load_pins(database)
    if absent := [metric for metric in metrics if (app, metric) not in overrides]:
        known = ", ".join(metric or "all metrics" for of_app, metric in overrides if of_app == app) or "nothing"
        raise ConfigError(f"{app}: not pinned: {', '.join(one or 'all metrics' for one in absent)}; pinned: {known}")
    gone = [overrides[app, metric]._replace(removed=1, actor=actor, why=why, at=at) for metric in metrics]
    save_pins(database, gone)
    return gone


def pin_history(database: Database, app: str) -> list[BaselinePin]:
    """Return all pins of an app ('': of every app) and their removals, newest first."""
    rows = database.rows(
        f"SELECT {', '.join(BaselinePin._fields)} FROM baseline_pins FINAL "
        "WHERE {app:String} = '' OR app = {app:String} ORDER BY at DESC, app, metric",
        {"app": app},
    )
    return [BaselinePin(**row) for row in rows]


def replay_interval(database: Database, run_id: str, app: str) -> tuple[datetime, datetime]:
    """Return since and until when a replay has windows of an app. Raises `ConfigError` if it has none."""
    rows = database.rows(
        f"SELECT min(start) AS since, max(start) + {DAY_S} AS until, count() AS n FROM windows "
        "WHERE run_id = {run:String} AND app = {app:String}",
        {"run": run_id, "app": app},
    )
    if not rows[0]["n"] or run_id == LIVE:
        raise ConfigError(f"run {run_id!r} has no windows of {app}; replay into it first (ragtide replay --run NAME)")
    return rows[0]["since"], rows[0]["until"]


def _validate(database: Database, monitored: Mapping[str, MonitoredMetric], one: BaselinePin) -> None:
    if one.metric and one.metric not in monitored:
        raise ConfigError(
            f"{one.metric} is not monitored for changes; monitored metrics: {', '.join(sorted(monitored))}"
        )
    rows = database.rows(
        "SELECT count() AS n FROM windows WHERE run_id = {run:String} AND app = {app:String} "
        "AND ({metric:String} = '' OR metric = {metric:String}) AND scored > 0 "
        "AND start >= {since:DateTime('UTC')} AND start < {until:DateTime('UTC')}",
        {"run": one.run_id, "app": one.app, "metric": one.metric, "since": one.since, "until": one.until},
    )
    if not rows[0]["n"]:
        what = one.metric or "any metric"
        raise ConfigError(f"{describe_pin(one)} has no closed window of {what} of {one.app}")


def _coverages(learner: BaselineLearner, new: Sequence[BaselinePin]) -> list[PinCoverage]:
    """Learn from the pins as the next scan will."""
    found: dict[BaselinePin, Counter[str]] = {one: Counter() for one in new}
    for batch in ClickHouseStateStore(learner.database).load_batches(learner.monitored):
        for one, places in learner.overrides.places_by_pin(batch.series).items():
            if batch.key.is_rollout or one not in found:
                continue
            warming = learner.learn_from_pin(batch, places, one, batch.processed_until).warming
            present = queries.series_ids(learner.database, learner.tick_range(one), learner.monitored)
            other_version = (warming == WarmUp.NO_RECORDS) & np.isin(batch.rows.ids[places], present)
            found[one].update(
                _OTHER_VERSION if other else SHORTFALLS.get(WarmUp(number), "")
                for number, other in zip(warming.tolist(), other_version.tolist(), strict=True)
            )
    return [PinCoverage.of(counts) for counts in found.values()]


def save_pins(database: Database, pins: Sequence[BaselinePin]) -> None:
    """Store pins beside earlier ones."""
    database.insert("baseline_pins", [_Row(*one, one.at) for one in pins])


def describe_pin(one: BaselinePin) -> str:
    """Name the reference in a message."""
    since, until = (f"{at:%Y-%m-%d %H:%M}" for at in (one.since, one.until))
    return f"{one.run_id} from {since} to {until} UTC"
