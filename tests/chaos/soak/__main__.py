"""`python -m tests.chaos.soak [--minutes 30] [--away-minutes 10]`: does memory or lag of the lane `fast` grow?

Every `fast` evaluator, Apache Kafka and ClickHouse on this machine, default settings. A minute at four times the rate
makes the worker warm: its largest caches, of 20,000 words, are full after as many traces, each of which brings a new
one, and more is at work at once than in a hiccup later on. Then come steady 150 traces/s; then ClickHouse is killed,
and traces come as fast as the broker takes them, until many times of what may be in flight wait there; then ClickHouse
is started again, and the rest is worked off, for which there is as long as it was away. Prints a line a minute and one
for each bound, and ends with 1 where one does not hold.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import RetentionSettings
from tests.chaos.soak import outage
from tests.chaos.soak.sending import Sender
from tests.chaos.soak.verdicts import RATE, Verdict, of_outage, of_steady
from tests.chaos.soak.watching import Watched, say
from tests.failures.site import Site, of
from tests.infra.kafka_node import KafkaNode

MINUTES = 30.0
WARM_S, WARM_TIMES = 60.0, 4


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description="Memory and lag over time.")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="of steady input")
    parser.add_argument("--away-minutes", type=float, help="of full input without ClickHouse; default: a third of them")
    given = parser.parse_args()
    away_minutes = given.minutes * outage.MINUTES / MINUTES if given.away_minutes is None else given.away_minutes
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with KafkaNode(folder / "kafka") as kafka, EmbeddedClickHouse(folder / "clickhouse") as server:
            database = Database(server.settings)
            migrate(database, RetentionSettings())
            with of(folder, kafka, database).up() as site:
                verdicts = asyncio.run(_soak(site, server, database, given.minutes * 60, away_minutes * 60))
            database.close()
    for verdict in verdicts:
        say(f"{'ok   ' if verdict.well else 'WRONG'}  {verdict.said}")
    return int(not all(verdict.well for verdict in verdicts))


async def _soak(
    site: Site, server: EmbeddedClickHouse, database: Database, steady_s: float, away_s: float
) -> list[Verdict]:
    worker, sender = site.worker(), Sender(site)
    await asyncio.to_thread(site.until, lambda: "consumes as group" in site.logs(), "the worker at work")
    watched = Watched(worker)
    await watched.during(sender.steadily(WARM_S, WARM_TIMES * RATE))
    steady = await watched.during(sender.steadily(steady_s))
    seen = await outage.Scene(watched, sender, server, database).without_the_sink(steady, away_s)
    status = await asyncio.to_thread(worker.stop)
    ended = Verdict(status == 0, f"the worker ends in order: status {status}")
    return [*of_steady(steady), *of_outage(seen), ended]


if __name__ == "__main__":
    sys.exit(main())
