"""The job `drift` over 10,000 series in the embedded ClickHouse, on one core: a scheduled run, and a cold start.

python -m benchmarks.drift_job                    needs extra `local`; a quarter of an hour on an idle machine
python -m benchmarks.drift_job --cold-series 300  the cold start by a smaller fraction

Windows of five minutes are planted by SQL. A scheduled run has one new window of every series; its time is the median
of five. A cold start learns baselines from 14 days: of a part of the series, and told for all in proportion, since all
that it does is done batch by batch. Time of the clock and of the processor (ours and the engine's), since a busy
machine lengthens the first.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from drift.jobs import Jobs
from drift.leadership import elect
from drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from drift.watching.kinds import Watch, watches
from drift.windows.watermark import WatermarkRow
from evaluators import registry
from sinks.clickhouse.database import Database, Row
from sinks.clickhouse.embedded import EmbeddedClickHouse
from sinks.clickhouse.migrate import migrate
from sinks.rows import ProgressRow
from sinks.settings import RetentionSettings

SERIES, METRICS, APPS = 10_000, 40, 25
BASE_S, DAY_S = 300, 86_400
RUNS = 5
SCHEDULED_S, COLD_S = 10.0, 600.0
LANES = ("fast", "model", "judge")
WINDOWS = WindowSettings(base_s=BASE_S, sizes_s=(BASE_S, 3600, DAY_S))
_FIGURES = {
    "score": "n * 0.8 + randNormal(0, 0.1) * sqrt(n), n * 0.65, map(toInt32(70 + rand(3) % 20), n)",
    "rate": "toFloat64(rand(2) % 4), toFloat64(rand(2) % 4), "
    "map(toInt32(0), n - rand(2) % 4, toInt32(100), toUInt64(rand(2) % 4))",
    "positive": "n * 1., n * 1.5, mapFromArrays(arrayMap(k -> toInt32(99900 + k * 7), range(25)), "
    "arrayMap(k -> toUInt64(1 + (rand(3) + k) % 7), range(25)))",
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


def plant(database: Database, chosen: Sequence[Watch], series: int, first: int, ticks: int, version: int) -> None:
    """Windows of every series: 40 metrics of 25 applications, whole and cut by tenant."""
    per = series // len(chosen)
    for watch in chosen:
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
                f"FROM (SELECT number % {per} AS k, intDiv(number, {per}) AS t, toUInt64(80 + rand(1) % 60) AS n "
                f"FROM numbers({per * count}))"
            )


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
def jobs_on(server: EmbeddedClickHouse, name: str) -> Iterator[tuple[Timed, Jobs]]:
    """A database of its own, and the jobs of its leader."""
    database = Timed(server.settings.model_copy(update={"database": name, "timeout_s": 600}))
    migrate(database, RetentionSettings())
    term = elect(database, name)
    yield database, Jobs(database, registry.load(), WINDOWS, RuleSettings(), JobSettings(), term, drift=DriftSettings())
    database.close()


def told(what: str, one: Measured, share: float = 1.0) -> None:
    """A line."""
    sys.stdout.write(
        f"{what}: {one.clock_s * share:7.1f} s, of them {one.database_s * share:.1f} s in the database; "
        f"processor {one.cpu_s * share:.1f} s\n"
    )


def main() -> int:
    """0 where both are within their goals on the processor's clock."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("--cold-series", type=int, default=1_000)
    parser.add_argument("--cold-days", type=int, default=14)
    options = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    chosen = [one for one in watches(registry.load().values()).values() if one.kind != "category"][:METRICS]
    end = int(datetime.now(UTC).timestamp()) // 3600 * 3600 - 7200
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        with jobs_on(server, "cold") as (database, jobs):
            ticks = options.cold_days * DAY_S // BASE_S
            plant(database, chosen, options.cold_series, end - ticks * BASE_S, ticks, jobs.term.next_version())
            now = close(database, end)
            cold = measured(database, partial(jobs.look_for_changes, now))
            database.command("TRUNCATE TABLE windows")
        with jobs_on(server, "scheduled") as (database, jobs):
            ticks = 2 * DAY_S // BASE_S
            plant(database, chosen, options.series, end - ticks * BASE_S, ticks, jobs.term.next_version())
            first = close(database, end)
            looked = jobs.look_for_changes(first).looked
            runs = []
            for run in range(RUNS):
                plant(database, chosen, options.series, end + run * BASE_S, 1, jobs.term.next_version())
                now = close(database, end + (run + 1) * BASE_S) + timedelta(seconds=1)
                runs.append(measured(database, partial(jobs.look_for_changes, now)))
    scheduled = sorted(runs, key=lambda one: one.cpu_s)[RUNS // 2]
    share = options.series / options.cold_series
    sys.stdout.write(f"{looked.series} series of {len(chosen)} metrics, windows of {BASE_S} s, one core\n")
    told(f"scheduled run, median of {RUNS}", scheduled)
    sys.stdout.write(f"  clock of all: {', '.join(f'{one.clock_s:.1f}' for one in runs)} s\n")
    told(f"cold start over {options.cold_days} days, {options.cold_series} series", cold)
    told(f"  in proportion, {options.series} series", cold, share)
    return 0 if scheduled.cpu_s <= SCHEDULED_S and cold.cpu_s * share <= COLD_S else 1


if __name__ == "__main__":
    sys.exit(main())
