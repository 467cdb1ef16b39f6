"""Time every query of every dashboard over a given number of scores.

python -m benchmarks.dashboards --scores 10_000_000     needs extra `local`; fills for some minutes

For each dashboard and time range it prints the median, the 95th percentile and the slowest of its queries: panels that
are open at first, variables and annotations. `all` is the time of all queries: one after the other, or with --viewer
in one request as the browser sends it. `CPU` is the server's CPU time, the 95th percentile of a query and of all: on a
busy machine it says more than the time that passed. `empty` counts queries without rows. Beside it stands a plain sum
over the windows of the same range.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from benchmarks.dashboards.by_viewer import Page, names
from benchmarks.dashboards.fill import APPS, Volume, fill
from ragtide.dashboards.build import build
from ragtide.drift.settings import Objective, RuleSettings
from ragtide.evaluators.plan import is_on
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings
from tests.dashboards.lint import defaults, queries
from tests.dashboards.macros import Choice, expanded
from tests.dashboards.viewer.serving import serving

EVALUATORS = 25
DAYS = 7
RANGES_S = {"6 h": 6 * 3600, "24 h": 86400, "7 d": 7 * 86400}
POINTS = 800  # of a graph: Grafana asks for one per pixel or two
CHOSEN: Mapping[str, Choice] = {
    "run": "live",
    "app": APPS[0],
    "environment": ["$__all"],
    "model": ["$__all"],
    "standard": ["$__all"],
    "resolution": "0",
    "metric": "groundedness.groundedness",
    "segment": "tenant",
    "score": "50",
    "trace_id": f"{APPS[0]}-1000",
    "problem": "p0",
}
OBJECTIVE = Objective(name="few-errors", metric="operations.error", max=0.5)


class Timing(NamedTuple):
    where: str
    seconds: float
    cpu_s: float


class Measured(NamedTuple):
    timings: list[Timing]
    all_s: float
    empty: int


def opened(document: dict[str, Any]) -> dict[str, Any]:
    """The dashboard without the panels of collapsed rows."""
    return {**document, "panels": [{**panel, "panels": []} for panel in document["panels"]]}


def ranges(until: datetime) -> Iterator[tuple[str, datetime, int]]:
    """Name, start and seconds between two points of each time range."""
    for name, seconds in RANGES_S.items():
        yield name, until - timedelta(seconds=seconds), max(seconds // POINTS, 1)


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Stopwatch:
    """Times work, and the CPU time of the server meanwhile, to a hundredth of a second."""

    def __init__(self, server: psutil.Process) -> None:
        self._server = server

    def time(self, where: str, work: Callable[[], object]) -> Timing:
        before = self._server.cpu_times()
        seconds = timed(work)
        after = self._server.cpu_times()
        return Timing(where, seconds, after.user + after.system - before.user - before.system)


def measure(
    watch: Stopwatch,
    database: Database,
    document: dict[str, Any],
    since: datetime,
    until: datetime,
    interval_s: int,
    runs: int,
) -> Measured:
    """Every query of the dashboard, each `runs` times after one to warm up."""
    timings, empty, chosen = [], 0, {**defaults(document), **CHOSEN}
    for where, sql in queries(document):
        statement = expanded(sql, since, until, interval_s, chosen)
        empty += not database.rows(statement)
        timings += [watch.time(where, partial(database.rows, statement)) for _ in range(runs)]
    return Measured(timings, sum(each.seconds for each in timings) / runs, empty)


def measure_by_viewer(watch: Stopwatch, page: Page, document: dict[str, Any], runs: int) -> Measured:
    """The same through the viewer: each query in a request of its own, then all in one."""
    every = list(names(document))
    empty = page.ask(every)
    timings = [
        watch.time(where, partial(page.ask, [name]))
        for (where, _), name in zip(queries(document), every, strict=True)
        for _ in range(runs)
    ]
    return Measured(timings, statistics.median(timed(partial(page.ask, every)) for _ in range(runs)), empty)


def plain(database: Database, since: datetime, until: datetime, runs: int) -> float:
    """The median of a sum over all windows of the range, as a yardstick."""
    statement = (
        f"SELECT sum(scored) FROM windows FINAL WHERE start >= toDateTime({int(since.timestamp())}) "
        f"AND start <= toDateTime({int(until.timestamp())})"
    )
    return statistics.median(timed(lambda: database.rows(statement)) for _ in range(runs))


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def main() -> int:
    """0 where the 95th percentile of every dashboard is within the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scores", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=None, help="seconds; 0.3 up to 10 million scores, else 1")
    parser.add_argument("--slow", type=float, default=0.2, help="name the queries that take longer, in seconds")
    parser.add_argument("--viewer", action="store_true", help="through `ragtide view`'s server")
    parser.add_argument("--folder", type=Path, help="keep the data here, and use what is there")
    parser.add_argument("names", nargs="*", metavar="DASHBOARD", help="dashboards; all, if none is named")
    given = parser.parse_args()
    limit = given.limit or (0.3 if given.scores <= 10_000_000 else 1.0)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with EmbeddedClickHouse(folder) as server:
            database = Database(server.settings.model_copy(update={"database": "bench", "timeout_s": 3600}))
            migrate(database, RetentionSettings())
            return report(Stopwatch(psutil.Process(server.pid)), database, given, limit)


def report(watch: Stopwatch, database: Database, given: argparse.Namespace, limit: float) -> int:
    """Fill the database unless it is, time every query, and print."""
    registry = load()
    on = [one for one in registry.values() if is_on(one, EvaluatorSettings())]
    of_records = [one for one in on if one.combine is None and one.metrics]
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    newest = database.rows("SELECT toUnixTimestamp(max(start)) + 86400 AS until FROM windows WHERE size_s = 86400")
    if newest[0]["until"] > 86400:
        until = datetime.fromtimestamp(newest[0]["until"], UTC)
    else:
        until = now.replace(hour=0)
        took = timed(lambda: fill(database, Volume(of_records[:EVALUATORS], given.scores, DAYS, until)))
        print(f"filled in {took:.0f} s", flush=True)
    sizes = database.rows(
        "SELECT table, sum(rows) AS n, sum(bytes_on_disk) AS bytes FROM system.parts "
        "WHERE active AND database = currentDatabase() GROUP BY table HAVING n > 1000 ORDER BY n DESC"
    )
    for row in sizes:
        print(f"  {row['table']:18} {row['n']:14,} rows {row['bytes'] / 1e6:10,.0f} MB")
    documents = build(registry, database="bench", rules=RuleSettings(objectives=(OBJECTIVE,)))
    end, missed = until - timedelta(minutes=17), 0
    plains = {name: plain(database, since, end, given.runs) for name, since, _ in ranges(end)}
    heads = ("p50 s", "p95 s", "max s", "all s", "CPU p95", "CPU all")
    print(f"\n{'dashboard':16} range queries empty {' '.join(map('{:>7}'.format, heads))} p95/plain")
    with ExitStack() as stack:
        served = stack.enter_context(serving(database, documents=documents)) if given.viewer else None
        for name, document in documents.items():
            if (given.names and name not in given.names) or not opened(document):
                continue
            for span, since, interval_s in ranges(end):
                if served:
                    page = Page(served, document["uid"], since, end, interval_s, {**defaults(document), **CHOSEN})
                    found = measure_by_viewer(watch, page, opened(document), given.runs)
                else:
                    found = measure(watch, database, opened(document), since, end, interval_s, given.runs)
                seconds, cpu_s = [each.seconds for each in found.timings], [each.cpu_s for each in found.timings]
                p95 = percentile(seconds, 0.95)
                missed += p95 > limit
                of_time = (percentile(seconds, 0.5), p95, max(seconds), found.all_s)
                of_cpu = (percentile(cpu_s, 0.95), sum(cpu_s) / given.runs)
                print(
                    f"{name:16} {span:>5} {len(seconds) // given.runs:7} {found.empty:5} "
                    f"{' '.join(map('{:7.3f}'.format, of_time + of_cpu))} {p95 / plains[span]:9.2f}",
                    flush=True,
                )
                print_slow(found.timings, given.slow)
    print("plain sum over all windows of the range: " + ", ".join(f"{k} {v:.3f} s" for k, v in plains.items()))
    return 1 if missed else 0


def print_slow(timings: Sequence[Timing], limit_s: float) -> None:
    """Name the queries whose median is above the limit, the slowest first."""
    by_query: dict[str, list[float]] = {}
    for each in timings:
        by_query.setdefault(each.where, []).append(each.seconds)
    for where, seconds in sorted(by_query.items(), key=lambda item: -statistics.median(item[1])):
        if statistics.median(seconds) > limit_s:
            print(f"    {statistics.median(seconds):.3f} s  {where}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
