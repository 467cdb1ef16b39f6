"""How fast 1,000,000 metric values go into the embedded ClickHouse as the worker writes them.

`python -m benchmarks.clickhouse_write [--values N]`. The limit, measured in the same run: the same rows as ready-made
bytes of ClickHouse's own Native format, in blocks of the same size, posted to a table like it. What is between the two
is the client's work: turning rows into columns and bytes, and the checks of the table. Ends with 1 below the goal.
"""

import argparse
import random
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import psutil

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import Block, ScoreRow
from ragtide.sinks.sample import NOON, score
from ragtide.sinks.settings import ClickHouseSettings, RetentionSettings
from ragtide.sinks.version import pack

GOAL = 100_000  # values a second of wall time: the client's CPU is in it
ROWS_PER_BLOCK = 10_000
EVALUATORS = 10
METRICS = 6  # of one evaluator: with 10 evaluators the 60 metric values of a trace
T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    wall_s: float
    client_cpu_s: float

    def say(self, name: str, values: int) -> None:
        rate = f"{values / self.wall_s:>10,.0f} values/s"
        print(f"{name:32} {rate}   {self.wall_s:6.2f} s, of it {self.client_cpu_s:.2f} s the client's CPU")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1_000_000)
    values = parser.parse_args().values
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        database = Database(server.settings)
        migrate(database, RetentionSettings())
        database.command("CREATE TABLE ready_made AS scores")
        blocks = made(values)
        rows = sum(map(len, blocks))
        print(f"{values:,} metric values as {rows:,} rows of {METRICS}, {ROWS_PER_BLOCK:,} a block")
        sink = ClickHouseSink(database)
        sink.write(made(ROWS_PER_BLOCK * METRICS, "warm")[0])
        database.command("TRUNCATE TABLE scores")

        ours = measured(sink.write, blocks)
        assert database.rows("SELECT sum(length(metrics)) AS n FROM scores") == [{"n": rows * METRICS}]
        select = f"SELECT {names()} FROM scores WHERE startsWith(trace_id, '%s') FORMAT Native"
        ready = [ask(server.settings, select % prefix(number)) for number in range(len(blocks))]
        insert = f"INSERT INTO ready_made ({names()}) FORMAT Native"
        limit = measured(lambda body: ask(server.settings, insert, body), ready)
        assert database.rows("SELECT sum(length(metrics)) AS n FROM ready_made") == [{"n": rows * METRICS}]

        ours.say("ClickHouseSink.write", values)
        limit.say("limit: ready-made Native bytes", values)
        print(f"ratio to the limit {limit.wall_s / ours.wall_s:.2f}; {sum(map(len, ready)) / rows:,.0f} bytes a row")
        assert server.pid is not None
        print(f"the server holds {psutil.Process(server.pid).memory_info().rss / 2**20:,.0f} MB")
        sink.close()
        reached = values / ours.wall_s
        print(f"goal {GOAL:,} values/s: {'reached' if reached >= GOAL else 'missed'}")
        return 0 if reached >= GOAL else 1


def made(values: int, run: str = "b") -> list[Block]:
    """Blocks of rows as a worker has them: random numbers, several evaluators, one minute of event time."""
    chance = random.Random(7)
    count = values // METRICS
    rows = [
        score(
            f"{prefix(number // ROWS_PER_BLOCK, run)}{chance.getrandbits(128):032x}",
            run_id="bench",
            evaluator=f"evaluator_{number % EVALUATORS}",
            time=NOON + timedelta(milliseconds=number % 29_000),
            version=pack(1_772_366_430_250 + number, number, 0, 1),
            metrics={f"metric_{index}": chance.random() for index in range(METRICS)},
            parts={},
            fingerprint=f"{number % EVALUATORS:016x}",
            weight=1.0,
        )
        for number in range(count)
    ]
    return [Block(scores=rows[start : start + ROWS_PER_BLOCK]) for start in range(0, count, ROWS_PER_BLOCK)]


def prefix(block: int, run: str = "b") -> str:
    return f"{run}{block:03d}-"


def names() -> str:
    return ", ".join(ScoreRow._fields)


def measured(work: Callable[[T], object], items: Sequence[T]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    for item in items:
        work(item)
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def ask(settings: ClickHouseSettings, sql: str, body: bytes = b"") -> bytes:
    query = urllib.parse.urlencode({"query": sql, "database": settings.database})
    key = {"X-ClickHouse-Key": settings.password.get_secret_value()}
    request = urllib.request.Request(f"{settings.url}/?{query}", data=body, headers=key, method="POST")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


if __name__ == "__main__":
    raise SystemExit(main())
