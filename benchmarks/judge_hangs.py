"""Whether lane fast keeps its throughput while the judge hangs.

`python -m benchmarks.judge_hangs [--traces 6000] [--rounds 5]`: Apache Kafka, ClickHouse's engine and a worker of lane
fast. Every trace of about 5 KB is meant for a judge too, whose server takes each call and never answers. In every other
half of a round a worker of lane judge waits for it. Seconds from the first trace to the commit of the last.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.prose_traces import prose_traces
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.failures.site import Message, Site
from tests.infra.fresh_database import fresh_database
from tests.infra.kafka_node import KafkaNode
from tests.stream.judge.chat_server import ChatServer, chat_server, hang

GOAL = 0.05  # of the throughput
WARM = 500  # traces
FAST, JUDGE = ("inputs", "operations", "support", "looping_detection", "pii_leakage"), "faithfulness"


def sections(url: str) -> dict[str, dict[str, Any]]:
    """Every trace is judged, and no call ends before the measurement."""
    endpoint = {"url": url, "model": "m", "timeout_s": 600, "trace_timeout_s": 600}
    return {"evaluators": {"enabled": [*FAST, JUDGE]}, "evaluators.judge.endpoints.hangs": endpoint}


def seconds(site: Site, server: ChatServer, traces: int, *, judged: bool) -> float:
    """Time of lane fast for so many traces."""
    made = [msgspec.json.encode(one) for one in prose_traces(WARM + traces, 1)]
    with site.up():
        site.worker()
        if judged:
            site.worker("judge")
        site.produce([Message(one) for one in made[:WARM]])
        site.until(lambda: site.committed() == WARM, "the first traces are stored")
        if judged:
            site.until(lambda: server.in_flight > 0, "the judge has a call in flight")
        began = time.monotonic()
        site.produce([Message(one) for one in made[WARM:]])
        site.until(lambda: site.committed() == WARM + traces, "all traces are stored", timeout_s=600)
        took = time.monotonic() - began
        if judged:
            assert site.committed("judge") == 0, "the judge has answered"
        return took


def main() -> int:
    """0 where the median ratio of both halves of a round is within the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as directory, chat_server(hang) as server:
        folder = Path(directory)
        with KafkaNode(folder / "kafka") as node, EmbeddedClickHouse(folder / "clickhouse") as engine:
            for number in range(chosen.rounds):
                taken = {}
                for judged in (number % 2 == 0, number % 2 == 1):
                    own = folder / f"{number}-{judged}"
                    own.mkdir()
                    with fresh_database(engine) as database:
                        site = Site(own, node, database.settings, sections(server.url))
                        taken[judged] = seconds(site, server, chosen.traces, judged=judged)
                ratios.append(taken[False] / taken[True])
                rates = (chosen.traces / taken[judged] for judged in (False, True))
                print("traces/s alone {:6.0f}, while the judge hangs {:6.0f}".format(*rates), flush=True)
    ratio = statistics.median(ratios)
    print(f"median of {chosen.rounds}: {ratio:.2f} of the throughput alone (goal {1 - GOAL:g})")
    return 0 if ratio >= 1 - GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
