"""Whatever the log level and whatever goes wrong, no line of a log holds what records hold."""

import json
import os
import subprocess
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.processes import RAGTIDE
from tests.failures.bad_records import trace
from tests.failures.site import Message, Site, of
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import make_topics, send

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.timeout(240)]

CANARY = "canary-9c41e7"
OLD = (datetime.now(UTC) - timedelta(days=30)).isoformat()
LARGEST_DEAD_LETTER = 100_000


def texts(**more: object) -> dict[str, object]:
    """Fields of a trace with the canary in each text."""
    return {
        "question": f"{CANARY} asks",
        "answer": f"{CANARY} answers",
        "contexts": [{"id": "c-1", "text": f"{CANARY} is in a chunk", "metadata": {"title": CANARY}}],
        "error": {"type": "Failed", "message": CANARY},
        "attributes": {"note": CANARY, CANARY: 1},
        **more,
    }


def messages() -> list[Message]:
    """Good records, and at least one for each way in which a record fails."""
    values = [
        *(trace(f"good-{n}", **texts()) for n in range(30)),
        trace("refused", **texts(session_id="refused by the sink")),
        trace("cut short", **texts())[:-20],
        trace("not utf-8", **texts()).replace(b"asks", b"\xff\xfe"),
        trace("wrong type", **texts(answer=[CANARY])),
        trace("wrong value", **texts(tokens={"input": CANARY})),
        trace("old", **texts(time=OLD)),
        trace("bad time", **texts(time=CANARY)),
        trace("not finite", **texts(cost_usd=float("nan"))),
        trace("too big for the dead letters", answer=CANARY * 20_000)[:-1],
        json.dumps([CANARY]).encode(),
        CANARY.encode(),
    ]
    headers = [("note", CANARY.encode()), (CANARY, b"1")]
    enriching = Message(trace("enriching", **texts()), CANARY.encode(), [("enriches.topic", CANARY.encode())])
    sent = [Message(value, f"{CANARY}-{n}".encode(), headers[: n % 3]) for n, value in enumerate(values)]
    return [*sent, enriching]


def labels() -> list[tuple[bytes | None, bytes | None]]:
    """One that is joined, one of no trace, and some that cannot be used."""
    values: list[dict[str, object]] = [
        {"trace_id": "good-1", "expected": [f"{CANARY} is right"], "verdict": {"thumbs": "up", "comment": CANARY}},
        {"trace_id": "never", "expected": [CANARY], "author": CANARY},
        {"trace_id": "good-2", "verdict": {"thumbs": CANARY}},
        {"trace_id": "good-3", "expected": CANARY},
        {"trace_id": "good-4", CANARY: CANARY},
        {"trace_id": "good-5", "relevance": {CANARY: CANARY}},
    ]
    return [(CANARY.encode(), json.dumps(value).encode()) for value in values] + [(None, b'{"' + CANARY.encode())]


def ragtide(site: Site, *arguments: str) -> str:
    """Run a command with the site's settings; its whole output."""
    environ = {**os.environ, "RAGTIDE_CONFIG": str(site.config), "RAGTIDE_TELEMETRY__LOG_LEVEL": "DEBUG"}
    done = subprocess.run([*RAGTIDE, *arguments], env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def quoted(output: str) -> list[str]:
    """The lines that hold the canary, cut to what tells where they come from."""
    return [line[:300] for line in output.splitlines() if CANARY in line]


@pytest.fixture
def site(kafka: KafkaNode, database: Database, tmp_path: Path) -> Site:
    labels_topic = f"labels.{uuid.uuid4().hex[:8]}"
    make_topics(kafka, {labels_topic: 1})
    sections: dict[str, dict[str, Any]] = {
        "telemetry": {"log_level": "DEBUG"},
        "kafka": {"labels_topic": labels_topic},
        "evaluators": {"enabled": ["inputs", "exact_match", "pii_leakage"]},
        "worker": {"dead_letter_ratio": 1.0, "dead_letter_run": 1000},
    }
    return of(tmp_path, kafka, database, sections)


def test_no_log_quotes_a_record_at_any_level(site: Site, kafka: KafkaNode, database: Database) -> None:
    database.command("ALTER TABLE traces ADD CONSTRAINT refused CHECK session_id != 'refused by the sink'")
    labels_topic = site.sections["kafka"]["labels_topic"]
    with site.up(largest_dead_letter=LARGEST_DEAD_LETTER):
        site.produce(messages())
        worker, jobs = site.worker(), site.jobs()
        site.until(lambda: site.committed() == len(messages()), "every offset committed", 90)
        send(kafka, labels_topic, labels())

        def joined() -> int:
            return len(database.rows("SELECT 1 FROM trace_texts FINAL WHERE has(expected, 'canary-9c41e7 is right')"))

        site.until(lambda: joined() == 1, "a label joined", 90)
        assert worker.stop() == 0
        assert jobs.stop() == 0
        reasons = {row["reason"] for row in database.rows("SELECT DISTINCT reason FROM dead_letters FINAL")}
        assert {
            "refused",
            "not_json",
            "not_utf8",
            "wrong_type",
            "too_old",
            "bad_time",
            "not_finite",
            "bad_enrichment",
        } <= reasons
        output = "".join(path.read_text() for path in sorted(site.directory.glob("*.log")))
        output += ragtide(site, "replay", "--run", "again", "--topic", site.topic)
        output += ragtide(site, "dead-letters", "replay", "--by", "a test")
        output += ragtide(site, "dead-letters", "list", "--each")
        output += ragtide(site, "topics")
    assert quoted(output) == []
    assert "consumes as group" in output
    assert "the sink refused a row of table traces" in output


def test_a_dead_letter_that_cannot_be_sent_is_not_quoted(site: Site) -> None:
    with site.up(largest_dead_letter=200):
        site.produce(messages())
        worker = site.worker()
        assert worker.process.wait(120) == 2
        output = "".join(path.read_text() for path in sorted(site.directory.glob("*.log")))
    assert "cannot take dead letters" in output
    assert quoted(output) == []
