"""The roll-up of a minute of 300,000 metric values, against a plain GROUP BY over the same rows in the same run.

python -m benchmarks.rollup     needs extra `local`; takes about a minute

The goal is for the median of what a roll-up's own statements take; watermarks and marks are told beside it.
"""

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from ragtide.drift.leadership import elect
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.rollup import Rollup
from ragtide.drift.windows.watermark import Idleness
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.spec import Evaluator, Metric, NoParams, Shared, evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.rows import DirtyRow, ProgressRow
from ragtide.sinks.settings import RetentionSettings

TRACES = 5_000
EVALUATORS = 12
RUNS = 7
SEGMENTS = {"tenant": tuple(f"t{i}" for i in range(10)), "language": ("en", "de"), "topic": ("x1", "x2", "x3")}
TARGETS_S = {0: 0.2, 3: 0.5}


@dataclass(frozen=True)
class Answer:
    answer: str | None


def made(number: int) -> Evaluator:
    metrics = [
        Metric("exact", threshold=0.75, primary=True),
        Metric("similar", threshold=0.75),
        Metric("grade", high=10),
        Metric("failures", better="lower", threshold=0.5),
        Metric("seconds", high=math.inf, better="lower"),
    ]

    @evaluator(f"e{number}", version=1, domain="generation", method="rule", inputs=Answer, metrics=metrics)
    def score(rows: Sequence[Answer], shared: Shared, params: NoParams) -> Iterable[Outcome]:
        """Never run."""
        return []

    return score


def fill(database: Database, start: datetime) -> None:
    """A minute of traffic: 5,000 traces, 12 evaluators of 5 metrics, 20 tenants, 3 languages, 7 topics."""
    trace = (
        f"'live', 'shop', 'prod', toDateTime64('{start:%Y-%m-%d %H:%M:%S}', 3, 'UTC') + (number % 60000) / 1000., "
        f"concat('t', toString(number), '-{start:%H%M}'), 1"
    )
    place = (
        "['a', 'b'][number % 2 + 1], 'p1', map('tenant', concat('t', toString(number % 20)), "
        "'language', ['en', 'de', 'fr'][number % 3 + 1], 'topic', concat('x', toString(number % 7)))"
    )
    columns = "run_id, app, environment, time, trace_id, version"
    database.command(
        f"INSERT INTO traces ({columns}, model, prompt_version, segments) "
        f"SELECT {trace}, {place} FROM numbers({TRACES})"
    )
    database.command(
        f"INSERT INTO scores ({columns}, evaluator, status, fingerprint, weight, metrics, "
        "model, prompt_version, segments) "
        f"SELECT {trace}, concat('e', toString(e)), 'scored', 'f1', 1, map("
        "'exact', (rand(1 + e) % 101) / 100, 'similar', rand(2 + e) / 4294967295, 'grade', rand(3 + e) / 429496730, "
        f"'failures', if(rand(4 + e) % 20 = 0, 1, 0), 'seconds', exp(randNormal(0, 1))), {place} "
        f"FROM numbers({TRACES}) ARRAY JOIN range({EVALUATORS}) AS e"
    )


class Timed(Database):
    """Adds up what its statements other than queries and inserts take: those of a roll-up."""

    statements_s = 0.0

    def command(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None
    ) -> None:
        began = time.perf_counter()
        super().command(sql, parameters, settings)
        self.statements_s += time.perf_counter() - began


def measured(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def settle(database: Database) -> None:
    """Wait for the merges that so many rows in one insert set off; live rows come over the whole minute."""
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline and database.rows("SELECT count() AS n FROM system.merges")[0]["n"]:
        time.sleep(0.1)
    time.sleep(1)


def main() -> int:
    """0 where the median time of a roll-up's statements is within `TARGETS_S`, without segments and with them."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    evaluators = {one.id: one for one in map(made, range(EVALUATORS))}
    first = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        database = Timed(server.settings.model_copy(update={"database": "bench", "timeout_s": 300}))
        migrate(database, RetentionSettings())
        minute, missed = first, 0
        for count, segments in ((0, {}), (3, SEGMENTS)):
            term = elect(database, f"bench-{count}")
            settings = WindowSettings(sizes_s=(60,), out_of_orderness_s=0, segments=segments)
            rollup = Rollup(database, evaluators, settings, term, Idleness(), RetentionSettings())
            rounds, rolled, grouped = [], [], []
            for _ in range(RUNS):
                fill(database, minute)
                settle(database)
                end = minute + timedelta(minutes=1)
                window = f"time >= '{minute:%Y-%m-%d %H:%M:%S}' AND time < '{end:%Y-%m-%d %H:%M:%S}'"
                plain = (
                    "SELECT evaluator, metric, fingerprint, model, prompt_version, count() AS n, sum(value) AS total, "
                    "min(value) AS least, max(value) AS greatest FROM scores FINAL "
                    "ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value "
                    f"WHERE run_id = 'live' AND {window} GROUP BY ALL"
                )
                grouped.append(measured(partial(database.rows, plain)))
                database.insert("dirty_windows", [DirtyRow("live", "shop", "prod", "fast", minute, f"{minute}")])
                database.insert("progress", [ProgressRow("fast", "rag.traces", 0, "bench", end, 1, 1)])
                database.statements_s = 0.0
                rounds.append(measured(partial(rollup.run, end)))
                rolled.append(database.statements_s)
                minute = end
            values = database.rows(
                "SELECT sum(scored) AS n FROM windows FINAL WHERE segment = '' AND version >= {since:UInt64}",
                {"since": term.epoch << 32},
            )[0]["n"]
            assert values == RUNS * TRACES * EVALUATORS * 5, values
            missed += statistics.median(rolled) > TARGETS_S[count]
            best, middle, plain_s = min(rolled), statistics.median(rolled), statistics.median(grouped)
            print(
                f"{count} segments: {TRACES * EVALUATORS * 5:,} values of a minute rolled up in {middle:.3f} s "
                f"(best {best:.3f} s, target {TARGETS_S[count]} s), with watermarks and marks "
                f"{statistics.median(rounds):.3f} s; plain GROUP BY of the same rows {plain_s:.3f} s "
                f"(best {min(grouped):.3f} s); ratio of the medians {middle / plain_s:.1f}"
            )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
