"""Clocks of producers and of workers go wrong by up to an hour: every trace counts in the minute that it tells."""

import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.local.broker import EmbeddedBroker
from tests.chaos.ledger import Expected
from tests.chaos.processes import Ragtide
from tests.chaos.windows import stored_windows
from tests.failures.site import Site, of
from tests.failures.topics import send_to
from tests.stream.core.traffic import trace

pytestmark = [pytest.mark.broker, pytest.mark.clickhouse, pytest.mark.timeout(240)]

HOUR = timedelta(hours=1)
# By how much the clock of each app's producer is ahead: of what it writes into its traces, and of Kafka's timestamps.
PRODUCERS = {"early": 0.7 * HOUR, "late": -0.7 * HOUR, "right": timedelta()}
COUNT, WORDS = 50, 4


def test_whoever_has_the_wrong_time_every_trace_counts_once(
    broker: EmbeddedBroker, database: Database, tmp_path: Path
) -> None:
    now = datetime.now(UTC) - timedelta(minutes=2)
    site = of(tmp_path, broker, database, {"evaluators": {"enabled": ["inputs"]}})
    with site.up():
        jobs = site.jobs()
        behind = _worker(site, -HOUR)
        _send_all(site, "first", now)
        assert behind.stop() == 0, site.logs()
        ahead = _worker(site, HOUR)
        _send_all(site, "second", now)
        _send_one_twice(site, now)
        expected = {
            (app, (now + PRODUCERS[app]).replace(second=0, microsecond=0), "inputs.answer_words"): Expected(
                2 * COUNT, 2 * COUNT, 2.0 * COUNT * WORDS
            )
            for app in ("late", "right")
        }
        site.until(lambda: expected.items() <= stored_windows(database).items(), "windows right", 90)
        assert ahead.stop() == 0, site.logs()
        assert jobs.stop() == 0, site.logs()
    stored = database.rows("SELECT app, count() AS n FROM traces FINAL GROUP BY app")
    assert {row["app"]: row["n"] for row in stored} == {**dict.fromkeys(PRODUCERS, 2 * COUNT), "twice": 1}
    assert database.rows("SELECT answer FROM trace_texts FINAL WHERE app = 'twice'") == [{"answer": "stamped later"}]
    assert database.rows("SELECT * FROM dead_letters") == []


def _worker(site: Site, ahead: timedelta) -> Ragtide:
    return site.worker(program=(sys.executable, "-m", "tests.failures.skewed_clock", f"{ahead.total_seconds()}"))


def _send_all(site: Site, name: str, now: datetime) -> None:
    """Of every producer, each once what came before is stored: what is early comes first."""
    answer = " ".join(["word"] * WORDS)
    for app, ahead in PRODUCERS.items():
        at = now + ahead
        ids = [f"{app}-{name}-{number}" for number in range(COUNT)]
        values = [(one.encode(), trace(one, app=app, time=at.isoformat(), answer=answer)) for one in ids]
        done = site.committed() + COUNT
        send_to(site.broker, site.topic, 0, values, round(at.timestamp() * 1000))
        site.until(partial(_committed, site, done), f"traces of {app} stored")


def _send_one_twice(site: Site, now: datetime) -> None:
    """What comes last is of a producer whose clock is behind that of the first."""
    for answer, ahead in (("stamped later", timedelta()), ("stamped before", -HOUR / 2)):
        value = trace("twice", app="twice", time=(now - HOUR).isoformat(), answer=answer)
        done = site.committed() + 1
        send_to(site.broker, site.topic, 0, [(b"twice", value)], round((now + ahead).timestamp() * 1000))
        site.until(partial(_committed, site, done), f"{answer} stored")


def _committed(site: Site, count: int) -> bool:
    return site.committed() == count
