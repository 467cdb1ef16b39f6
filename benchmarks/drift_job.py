"""The job `drift` over 10,000 series in the embedded ClickHouse, on one core: scheduled runs, and a cold start.

python -m benchmarks.drift_job                    needs extra `local`; half an hour on an idle machine
python -m benchmarks.drift_job --hours 24         every run of a day
python -m benchmarks.drift_job --cold-series 300  the cold start by a smaller fraction

Windows of five minutes are planted by SQL. A scheduled run has one new window of every series. All runs of some hours
are measured, those in which batches learn their baselines among them; series that learn in these hours have 14 days of
history, the others two, which nobody reads. How many series learn at once at most in the whole day is told, too: a run
of any other hour does no more. A cold start learns baselines from 14 days: of a part of the series, and told for all in
proportion, since all that it does is done batch by batch. Time of the clock and of the processor (ours and the
engine's), since a busy machine lengthens the first.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ragtide.drift.anomalies.batch import Batch
from ragtide.drift.anomalies.metrics import MonitoredMetric, monitored_metrics
from ragtide.drift.jobs import JobContext
from ragtide.drift.leadership import elect
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.evaluators import registry
from ragtide.sinks.clickhouse.database import Database, Row
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.rows import ProgressRow
from ragtide.sinks.settings import RetentionSettings

SERIES, METRICS, APPS = 10_000, 40, 25
BASE_S, DAY_S = 300, 86_400
FEW_DAYS = 2
SCHEDULED_S, COLD_S = 10.0, 600.0
LANES = ("fast", "model", "judge")
WINDOWS = WindowSettings(base_s=BASE_S, sizes_s=(BASE_S, 3600, DAY_S))
_FIGURES = {
    "score": "n * 0.8 + randNormal(0, 0.1) * sqrt(n), n * 0.65, map(toInt32(70 + rand(3) % 20), n)",
    "rate": "toFloat64(rand(2) % 4), toFloat64(rand(2) % 4), "
    "map(toInt32(0), n - rand(2) % 4, toInt32(100), toUInt64(rand(2) % 4))",
    "positive": "n * 1., n * 1.5, mapFromArrays(arrayMap(k -> toInt32(99900 + k * 7), range(25)), "
    "arrayMap(k -> intDiv(n + (rand(3) + k) % 25, 25), range(25)))",
}


@dataclass
class Timed(Database):
    """Adds up how long the database took."""

    settings: Any
    waited_s: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        super().__init__(self.settings)

    def rows(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        with self._timed():
            return super().rows(sql, parameters, settings)

    def numbers(
        self, sql: str, columns: npt.DTypeLike, settings: Mapping[str, int] | None = None
    ) -> npt.NDArray[np.void]:
        with self._timed():
            return super().numbers(sql, columns, settings)

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        with self._timed():
            super().insert(table, rows)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.waited_s += time.perf_counter() - began


@dataclass(frozen=True)
class Measured:
    """Seconds of the clock, of them in the database, and of the processor."""

    clock_s: float
    database_s: float
    cpu_s: float


@dataclass(frozen=True)
class Runs:
    """Of some hours: each run with how many series learned in it, the most that do in any run of the day, and how many
    series there are.
    """

    all: list[tuple[Measured, int]]
    most: int
    series: int

    @property
    def slowest(self) -> tuple[Measured, int]:
        """By the processor's clock."""
        return max(self.all, key=lambda run: run[0].cpu_s)

    @property
    def median(self) -> Measured:
        """Likewise."""
        return sorted((one for one, _ in self.all), key=lambda one: one.cpu_s)[len(self.all) // 2]


def plant(
    database: Database,
    chosen: Mapping[MonitoredMetric, Sequence[int]],
    first: int,
    ticks: int,
    version: int,
) -> None:
    """Windows of these series of each metric: of 25 applications, whole and cut by tenant."""
    for watch, numbers in chosen.items():
        for since in range(0, ticks, DAY_S // BASE_S):
            count = min(DAY_S // BASE_S, ticks - since)
            database.command(
                "INSERT INTO windows (run_id, size_s, app, environment, evaluator, metric, start, fingerprint, model, "
                "prompt_version, segment, segment_value, seen, scored, sum, sum_squares, bins, revision, state, "
                f"version) SELECT 'live', {BASE_S}, concat('app', toString(k % {APPS})), 'prod', "
                f"'{watch.evaluator.id}', '{watch.name}', toDateTime({first} + ({since} + t) * {BASE_S}, 'UTC'), 'f1', "
                "'m1', 'p1', "
                f"if(k < {APPS}, '', 'tenant'), if(k < {APPS}, '', toString(intDiv(k, {APPS}))), n, n, "
                f"{_FIGURES[watch.kind]}, 1, 'closed', {version} "
                f"FROM (SELECT arrayJoin({[*numbers]}) AS k, number AS t, toUInt64(80 + rand(k) % 60) AS n "
                f"FROM numbers({count}))"
            )


def evenly(chosen: Sequence[MonitoredMetric], series: int) -> dict[MonitoredMetric, Sequence[int]]:
    """So many series, as many of each metric."""
    return dict.fromkeys(chosen, range(series // len(chosen)))


def of_batches(chosen: Sequence[MonitoredMetric], batches: Sequence[Batch]) -> dict[MonitoredMetric, Sequence[int]]:
    """The series of some batches, by the numbers that they were planted with."""
    found: dict[str, list[int]] = {}
    for series in (one for batch in batches for one in batch.series):
        number = int(series.app.removeprefix("app")) + APPS * int(series.segment_value or 0)
        found.setdefault(series.metric, []).append(number)
    return {watch: found[watch.name] for watch in chosen if watch.name in found}


def close(database: Database, until: int) -> datetime:
    """All lanes have closed what lies before."""
    at = datetime.fromtimestamp(until, UTC)
    database.insert("watermarks", [WatermarkRow(lane, "t", at) for lane in LANES])
    database.insert("progress", [ProgressRow(lane, "t", 0, "bench", at, 1, 0) for lane in LANES])
    return datetime.now(UTC)


def measured(database: Timed, work: Callable[[], object]) -> Measured:
    """Of one call."""
    database.waited_s, cpu, began = 0.0, cpu_s(), time.perf_counter()
    work()
    return Measured(time.perf_counter() - began, database.waited_s, cpu_s() - cpu)


def cpu_s() -> float:
    """Of this process and its children that still run."""
    ticks = os.sysconf("SC_CLK_TCK")
    children = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    used = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13] for pid in children]
    return time.process_time() + sum(int(part) for parts in used for part in parts) / ticks


@contextmanager
def jobs_on(server: EmbeddedClickHouse, name: str) -> Iterator[tuple[Timed, JobContext]]:
    """A database of its own, and the jobs of its leader."""
    database = Timed(server.settings.model_copy(update={"database": name, "timeout_s": 600}))
    migrate(database, RetentionSettings())
    term = elect(database, name)
    yield (
        database,
        JobContext(database, registry.load(), WINDOWS, RuleSettings(), JobSettings(), term, drift=DriftSettings()),
    )
    database.close()


def told(what: str, one: Measured, share: float = 1.0) -> None:
    """A line."""
    sys.stdout.write(
        f"{what}: {one.clock_s * share:7.1f} s, of them {one.database_s * share:.1f} s in the database; "
        f"processor {one.cpu_s * share:.1f} s\n"
    )


def cold_start(
    server: EmbeddedClickHouse, chosen: Sequence[MonitoredMetric], series: int, days: int, end: int
) -> Measured:
    """The first look over so many days of so many series."""
    with jobs_on(server, "cold") as (database, jobs):
        ticks = days * DAY_S // BASE_S
        plant(database, evenly(chosen, series), end - ticks * BASE_S, ticks, jobs.term.next_version())
        now = close(database, end)
        found = measured(database, partial(jobs.scan_for_changes, now))
        database.command("TRUNCATE TABLE windows")
    return found


def scheduled_runs(
    server: EmbeddedClickHouse, chosen: Sequence[MonitoredMetric], series: int, days: int, hours: int, end: int
) -> Runs:
    """All runs of some hours; series that learn in them have so many days of history."""
    everyone, few_days = evenly(chosen, series), FEW_DAYS * DAY_S // BASE_S
    with jobs_on(server, "scheduled") as (database, jobs):
        version = jobs.term.next_version()
        plant(database, everyone, end - few_days * BASE_S, few_days, version)
        looked = jobs.scan_for_changes(close(database, end)).scan
        until = end + hours * 3600
        batches = [one.batch for one in looked.snapshots]
        learning = {batch.key: calendar.next_fit(batch.key.number, end + BASE_S, BASE_S) for batch in batches}
        learn = [batch for batch in batches if learning[batch.key] <= until]
        ticks = (days - FEW_DAYS) * DAY_S // BASE_S
        plant(database, of_batches(chosen, learn), end - days * DAY_S, ticks, version)
        database.command("OPTIMIZE TABLE windows FINAL")  # merges of what was planted are none of a run's
        at_once: Counter[int] = Counter()
        for batch in batches:
            at_once[learning[batch.key]] += len(batch.series)
        runs = []
        for at in range(end + BASE_S, until + 1, BASE_S):
            plant(database, everyone, at - BASE_S, 1, jobs.term.next_version())
            now = close(database, at) + timedelta(seconds=1)
            runs.append((measured(database, partial(jobs.scan_for_changes, now)), at_once[at]))
    return Runs(runs, max(at_once.values()), looked.series)


def main() -> int:
    """0 where all are within their goals on the processor's clock."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--hours", type=int, default=3)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--cold-series", type=int, default=1_000)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    chosen = [one for one in monitored_metrics(registry.load().values()).values() if one.kind != "category"][:METRICS]
    end = int(datetime.now(UTC).timestamp()) // 3600 * 3600 - (options.hours + 2) * 3600
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        cold = cold_start(server, chosen, options.cold_series, options.days, end)
        runs = scheduled_runs(server, chosen, options.series, options.days, options.hours, end)
    share = options.series / options.cold_series
    slowest, learned = runs.slowest
    sys.stdout.write(f"{runs.series} series of {len(chosen)} metrics, windows of {BASE_S} s, one core\n")
    told(f"scheduled run, median of {len(runs.all)}", runs.median)
    told(f"  the slowest, in which {learned} series learned", slowest)
    at_once = sorted((count for _, count in runs.all if count), reverse=True)
    sys.stdout.write(f"  series that learned in a run: {at_once}; in any run of the day {runs.most} at most\n")
    told(f"cold start over {options.days} days, {options.cold_series} series", cold)
    told(f"  in proportion, {options.series} series", cold, share)
    return 0 if slowest.cpu_s <= SCHEDULED_S and cold.cpu_s * share <= COLD_S else 1


if __name__ == "__main__":
    sys.exit(main())
