"""`python -m tests.chaos.harness`: seeds one after the other, what each left lost, doubled or wrong, and the total.

Ends with 1 where anything is. The same seed has the same faults and the same traffic.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, takewhile
from pathlib import Path

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.chaos.harness.run import Stage, run_seed
from tests.chaos.harness.schedule import schedule
from tests.chaos.harness.verdict import Verdict
from tests.infra.kafka_node import KafkaNode


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.harness", description="Faults by seed.")
    parser.add_argument("--seeds", type=int, default=20, help="how many")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--minutes", type=float, help="as many seeds as begin in that time, instead of --seeds")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the faults of a seed go on")
    options = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # that brokers are away is no news
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    with KafkaNode(directory / "kafka") as broker, EmbeddedClickHouse(directory / "clickhouse") as clickhouse:
        stage = Stage(directory, broker, clickhouse)
        failed = _run(stage, _seeds(options.first, options.seeds, options.minutes), options.seconds)
    if failed:
        _say(f"logs of what failed: {directory}")
    return 1 if failed else 0


def _seeds(first: int, number: int, minutes: float | None) -> Iterator[int]:
    if minutes is None:
        return iter(range(first, first + number))
    deadline = time.monotonic() + 60 * minutes
    return takewhile(lambda _: time.monotonic() < deadline, count(first))


def _run(stage: Stage, seeds: Iterable[int], seconds: float) -> list[int]:
    """The seeds that failed."""
    total, faults, done, failed = Verdict(), Counter[str](), 0, []
    for seed in seeds:
        began = time.monotonic()
        verdict = run_seed(stage.within(f"seed-{seed}"), seed, seconds)
        planned = schedule(seed, seconds)
        _say(f"seed {seed}: {verdict} ({len(planned)} faults, {time.monotonic() - began:.0f} s)")
        if not verdict.clean:
            failed.append(seed)
            for line in (*(f"{at_s:6.2f} s {kind}, {for_s} s" for at_s, kind, for_s in planned), *verdict.examples):
                _say(f"    {line}")
        total.add(verdict)
        faults.update(fault.kind for fault in planned)
        done += 1
    _say("faults: " + ", ".join(f"{kind} {number}" for kind, number in sorted(faults.items())))
    _say(f"total of {done} seeds: {total}; failed: {', '.join(map(str, failed)) or 'none'}")
    return failed


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
