"""Reading the problems that go on from a long history: what of it says anything, against a fold over every event.

python -m benchmarks.problem_events [--events 200000]    needs extra `local`

Each problem was opened, told anew eighteen times and resolved; fifty of the last ones are still open, and five are open
for a month of an update every five minutes. Medians of five, time of the processor (ours and the engine's), since a
busy machine lengthens the clock's.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.drift_job import cpu_s
from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.store import fold_events, latest_episodes, load_problems
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings

EACH, OPEN, RUNS = 20, 50, 5  # events of a problem; problems that are open
LONG, UPDATES, EVERY_S = 5, 8640, 300  # problems that are open for a month; updates of each


def plant(database: Database, events: int) -> None:
    """Problem k began k minutes before the newest; those that are open for long come on top."""
    problems = events // EACH
    planted(
        database,
        "lower(hex(sipHash64(k)))",
        f"multiIf(step = 0, 'opened', step = {EACH - 1} AND k >= {OPEN}, 'resolved', 'updated')",
        "86400 + k * 60 - step",
        f"SELECT intDiv(number, {EACH}) AS k, number % {EACH} AS step FROM numbers({problems * EACH})",
    )
    planted(
        database,
        "concat('long', toString(k))",
        "if(step = 0, 'opened', 'updated')",
        f"({UPDATES} - step) * {EVERY_S}",
        f"SELECT intDiv(number, {UPDATES}) AS k, number % {UPDATES} AS step FROM numbers({LONG * UPDATES})",
    )


def planted(database: Database, problem_id: str, event: str, ago_s: str, steps: str) -> None:
    """An event for each step `k`, `step`; what differs between them are expressions of the two."""
    database.command(
        "INSERT INTO problem_events (problem_id, event_id, event, episode, at, app, environment, model, aspect, "
        "metric, kind, type, severity, standards, description, attributes, examples, actions) SELECT "
        f"{problem_id}, toString(step), {event}, 1, now64(3) - toIntervalSecond({ago_s}), "
        "'shop', 'prod', 'm1', 'level', "
        "concat('quality.m', toString(k % 40)), 'threshold', 'accuracy', 'warning', ['Ongoing Monitoring'], "
        "repeat('It fell from 0.9 to 0.2 on 40 traces. ', 5), "
        'concat(\'{"value": 0.2, "reasons": [\', repeat(\'"crashed 6", \', 40), \'"timeout 2"]}\'), '
        "arrayMap(one -> concat('trace-', toString(one)), range(10)), ['Look at the prompt.'] "
        f"FROM ({steps})"
    )


def everything(database: Database) -> list[Problem]:
    """The open ones, by the fold over all."""
    rows = database.rows(f"SELECT {', '.join(EventRow._fields)} FROM problem_events FINAL")
    return [one for one in latest_episodes(fold_events(EventRow(**row) for row in rows)) if one.state == "open"]


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of the processor, medians."""
    runs = []
    for _ in range(RUNS):
        began, cpu = time.perf_counter(), cpu_s()
        work()
        runs.append((time.perf_counter() - began, cpu_s() - cpu))
    return statistics.median(clock for clock, _ in runs), statistics.median(cpu for _, cpu in runs)


def main() -> int:
    """0 where both read the same problems, and what goes on is read in a tenth of the time at most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, EmbeddedClickHouse(Path(folder)) as server:
        database = Database(server.settings.model_copy(update={"database": "bench", "timeout_s": 600}))
        migrate(database, RetentionSettings())
        plant(database, options.events)
        found = {one.problem_id: one for one in load_problems(database, states=("open",))}
        same = found == {one.problem_id: one for one in everything(database)} and len(found) == OPEN + LONG
        ours = measured(lambda: load_problems(database, states=("open",)))
        theirs = measured(lambda: everything(database))
        database.close()
    sys.stdout.write(
        f"{options.events + LONG * UPDATES} events, {len(found)} open problems, the same by both: {same}\n"
    )
    for name, (clock, cpu) in (("what goes on", ours), ("every event", theirs)):
        sys.stdout.write(f"{name}: {clock:.3f} s, of the processor {cpu:.3f} s\n")
    sys.stdout.write(f"ratio: {theirs[0] / ours[0]:.0f} on the clock, {theirs[1] / ours[1]:.0f} of the processor\n")
    return 0 if same and ours[1] * 10 <= theirs[1] else 1


if __name__ == "__main__":
    sys.exit(main())
