"""Labels through Apache Kafka, a worker and jobs that are killed: every one is joined, none is lost or doubled."""

import json
import re
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.version import revision_of
from tests.chaos.processes import Ragtide, wait_until, write_settings
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import committed, make_topics, read, send, trace

pytestmark = [pytest.mark.kafka, pytest.mark.clickhouse, pytest.mark.timeout(300)]


def label(trace_id: str, **facts: Any) -> tuple[bytes, bytes]:
    return trace_id.encode(), json.dumps({"trace_id": trace_id, **facts}).encode()


def test_labels_find_their_traces_though_the_jobs_are_killed(
    kafka: KafkaNode,
    clickhouse_server: EmbeddedClickHouse,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = f"labels-{uuid.uuid4().hex[:8]}"
    labels = f"{topic}.labels"
    make_topics(kafka, {topic: 2, labels: 2, f"{topic}.dead": 1, f"{topic}.jobs": 1})
    settings = clickhouse_server.settings.model_copy(update={"database": database.name})
    config = write_settings(tmp_path / "ragtide.toml", kafka.bootstrap, topic, settings)
    monkeypatch.setenv("RAGTIDE_KAFKA__LABELS_TOPIC", labels)
    monkeypatch.setenv("RAGTIDE_EVALUATORS__ENABLED", '["exact_match"]')
    old = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3 * 86_400))

    def scored() -> dict[str, float]:
        rows = database.rows("SELECT trace_id, metrics FROM scores FINAL WHERE status = 'scored'")
        return {row["trace_id"]: row["metrics"]["exact_match"] for row in rows}

    send(kafka, labels, [label("before", expected=["yes"]), (None, b"{"), label("never", expected=["yes"])])
    send(kafka, topic, [(id_, trace(id_.decode(), answer="yes")) for id_ in (b"before", b"after", b"unlabelled")])
    send(kafka, topic, [(b"old", trace("old", answer="yes", time=old))])
    jobs = Ragtide("jobs", config=config, log=tmp_path / "jobs.log")
    wait_until(lambda: len(database.rows("SELECT 1 FROM labels")) == 2, 60, f"labels stored; see {tmp_path}")
    jobs.kill()
    send(kafka, labels, [label("after", expected=["no"]), label("old", expected=["yes"])])
    worker = Ragtide("worker", "--lane", "fast", config=config, log=tmp_path / "worker.log")
    jobs = Ragtide("jobs", config=config, log=tmp_path / "jobs.log")
    wait_until(lambda: len(scored()) == 3, 90, f"three traces scored; see {tmp_path}")
    assert scored() == {"before": 1.0, "after": 0.0, "old": 1.0}
    send(kafka, labels, [label("after", expected=["yes"])])  # whoever was wrong sends it again
    wait_until(lambda: scored()["after"] == 1.0, 60, f"the correction scored; see {tmp_path}")
    group = f"{topic}-labels"
    wait_until(lambda: sum(committed(kafka, group, labels, 2).values()) == 6, 20, "every label committed")
    assert jobs.stop() == 0
    assert worker.stop() == 0

    revisions = {row["trace_id"]: revision_of(row["version"]) for row in database.rows("SELECT * FROM traces FINAL")}
    assert revisions == {"before": 1, "after": 2, "old": 1, "unlabelled": 0}
    assert len(database.rows("SELECT 1 FROM labels FINAL")) == 5
    letters = database.rows("SELECT DISTINCT topic, reason FROM dead_letters FINAL")
    assert letters == [{"topic": labels, "reason": "not_json"}]
    assert {letter.value for letter in read(kafka, f"{topic}.dead", 1)} == {b"{"}
    assert re.search(r"no_trace \d", (tmp_path / "jobs.log").read_text()), "of the one that has none"
