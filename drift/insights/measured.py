"""What the windows of a period add up to, by model and prompt version: no row of scores is read."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from drift.compare.difference import Sample
from drift.insights.insight import Period
from drift.insights.shares import Share
from drift.settings import WindowSettings
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of one metric under one fingerprint: `n` > 0 of them, their sum and the sum of their squares."""

    n: int
    total: float
    squares: float
    least: float
    greatest: float

    def __add__(self, other: "Measured") -> "Measured":
        return Measured(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
        )

    @property
    def mean(self) -> float:
        """Of all values."""
        return self.total / self.n

    @property
    def sample(self) -> Sample:
        """Count, mean and variance."""
        spread = max(0.0, self.squares - self.total * self.mean)
        return Sample(self.n, self.mean, spread / (self.n - 1) if self.n > 1 else 0.0)

    @property
    def share(self) -> Share | None:
        """The ones, where every value is 0 or 1: of values from 0 to 1 no others add up as their squares do."""
        if self.least < 0 or self.greatest > 1 or self.squares != self.total:
            return None
        return Share(round(self.total), self.n)


class Group(NamedTuple):
    """Whose values they are."""

    app: str
    environment: str
    metric: str
    model: str
    prompt_version: str


def measured(
    database: Database, metrics: Iterable[WatchedMetric], settings: WindowSettings, period: Period
) -> dict[Group, Measured]:
    """Of live records, uncut; where an evaluator's fingerprint changed, of the one with most: others never mix."""
    names = sorted(one.name for one in metrics)
    rows = database.rows(
        f"""
        SELECT app, environment, evaluator, metric, toString(fingerprint) AS mark, model, prompt_version,
            sum(scored) AS n, sum(windows.sum) AS total, sum(sum_squares) AS squares,
            min(windows.min) AS least, max(windows.max) AS greatest
        FROM windows FINAL
        WHERE {windows_of(database, settings, period)} AND metric IN {sql.texts(names)} AND scored > 0
        GROUP BY app, environment, evaluator, metric, mark, model, prompt_version
        HAVING least IS NOT NULL ORDER BY ALL"""
    )
    marks: dict[tuple[str, str, str], Counter[str]] = {}
    for row in rows:
        marks.setdefault((row["app"], row["environment"], row["evaluator"]), Counter())[row["mark"]] += row["n"]
    most = {place: counts.most_common(1)[0][0] for place, counts in marks.items()}
    return {
        Group(*(row[name] for name in Group._fields)): Measured(
            row["n"], row["total"], row["squares"], row["least"], row["greatest"]
        )
        for row in rows
        if row["mark"] == most[row["app"], row["environment"], row["evaluator"]]
    }


def windows_of(database: Database, settings: WindowSettings, period: Period) -> str:
    """Condition on live windows of the period, uncut: hours as far as there are any, base windows after them."""
    first, end = int(period.start.timestamp()), int(period.end.timestamp())
    within = (
        f"run_id = 'live' AND segment = '' AND start >= toDateTime({first}, 'UTC') AND start < toDateTime({end}, 'UTC')"
    )
    base = f"size_s = {settings.base_s}"
    if settings.base_s == _HOUR_S or _HOUR_S not in settings.all_sizes_s or first % _HOUR_S or end % _HOUR_S:
        return f"{within} AND {base}"
    rows = database.rows(
        f"SELECT evaluator, toUnixTimestamp(max(start)) + {_HOUR_S} AS until FROM windows "
        f"WHERE {within} AND size_s = {_HOUR_S} GROUP BY evaluator ORDER BY evaluator"
    )
    if not rows:
        return f"{within} AND {base}"
    # An hour closes for all evaluators of a lane at once, and lanes at times of their own.
    names = sql.array((sql.text(row["evaluator"]) for row in rows), "String")
    untils = sql.array((str(row["until"]) for row in rows), "UInt32")
    after = f"toUnixTimestamp(start) >= transform(toString(evaluator), {names}, {untils}, toUInt32({first}))"
    return f"{within} AND (size_s = {_HOUR_S} OR ({base} AND {after}))"


def together(found: Mapping[Group, Measured]) -> dict[Group, Measured]:
    """All prompt versions of a model as one, whose version is empty."""
    models: dict[Group, Measured] = {}
    for group, own in found.items():
        model = group._replace(prompt_version="")
        models[model] = models[model] + own if model in models else own
    return models
