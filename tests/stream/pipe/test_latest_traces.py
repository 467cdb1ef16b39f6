"""`ragtide check` tries the latest records of each topic as a worker would read them."""

import asyncio
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import Record
from ragtide.stream.latest_traces import latest_records, report
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.loader import Settings
from tests.drift.world import World
from tests.stream.core.traffic import make_topics, read, send, trace
from tests.stream.pipe.records import record

PAGE = Path(__file__).parents[3] / "docs" / "first-application.md"
SETTINGS = Settings()


def messages(*records: Record) -> list[tuple[bool | None, str]]:
    return [(ok, message) for _, ok, message in report(SETTINGS, {"rag.traces": records})]


def test_a_topic_that_can_be_read() -> None:
    assert messages() == [(None, "no record yet")]
    assert messages(record(), record()) == [(True, "all of the latest 2 can be read")]
    assert messages(record(user_id=5)) == [
        (True, "all of the latest 1 can be read; normalised: number_as_text at user_id 1")
    ]


def test_a_topic_of_dead_letters_names_reasons_by_share_and_an_example() -> None:
    bad: list[Record] = [record(b"secret", offset=7), record(b"secret"), record(b"x"), record(app=...)]
    [(ok, message)] = messages(*bad, record())
    assert ok is False
    assert message.startswith(
        "4 of the latest 5 would be dead letters; reasons: not_json 75%, missing_app 25%. "
        "Example: rag.traces/0 offset 7: not_json: malformed (byte 0)."
    )
    assert "secret" not in message
    [(ok, _)] = messages(record(b"x"), record(), record())
    assert ok is None  # below worker.dead_letter_ratio


def test_fields_that_nothing_measures_are_named() -> None:
    said = messages(record(latency={"total_ms": 5}), record(tokens={"prompt_tokens": 5}), record(), record())
    assert said == [
        (True, "all of the latest 4 can be read"),
        (
            None,
            "in 1 of 4: app docs: no trace has a field latency.total_ms. It is stored and not measured; "
            "did you mean latency.total_s, in seconds?",
        ),
        (
            None,
            "in 1 of 4: app docs: no trace has a field tokens.prompt_tokens. It is stored and not measured; "
            "did you mean tokens.input?",
        ),
    ]


@pytest.mark.broker
def test_the_latest_records_of_each_topic_are_read(broker: EmbeddedBroker) -> None:
    topics = {f"a.{uuid.uuid4().hex[:8]}": 2, f"b.{uuid.uuid4().hex[:8]}": 1, f"empty.{uuid.uuid4().hex[:8]}": 3}
    make_topics(broker, topics)
    many, few, _ = topics
    send(broker, many, [(b"%d" % number, trace(f"t{number}")) for number in range(700)])
    send(broker, few, [(None, trace("one"))])
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": broker.bootstrap, "topics": list(topics)}})
    found = asyncio.run(latest_records(settings, topics))
    assert [len(records) for records in found.values()] == [200, 1, 0]
    newest = {partition: max(at.offset for at in found[many] if at.partition == partition) for partition in (0, 1)}
    assert sum(newest.values()) + 2 == 700


@pytest.mark.broker
@pytest.mark.clickhouse
def test_the_first_application_of_the_docs_opens_a_problem(
    broker: EmbeddedBroker, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(broker, {topic: 1})
    page = PAGE.read_text()
    producer = page.split("```python\n")[1].split("```")[0].replace('"rag.traces"', repr(topic))
    assert len([line for line in producer.splitlines() if line and not line.startswith("#")]) <= 10
    commands = [line for line in page.splitlines() if line.startswith("python producer.py")]
    monkeypatch.setenv("RAGTIDE_KAFKA__BOOTSTRAP_SERVERS", broker.bootstrap)
    answers: list[Any] = []
    for command in commands:
        _, answer, count = command.split('"')
        monkeypatch.setattr("sys.argv", ["producer.py", answer, "3"])
        exec(compile(producer, "producer.py", "exec"), {})
        answers.append((answer, int(count)))
    assert [count for _, count in answers] == [200, 20]
    records = read(broker, topic, 6)
    settings = Settings.model_validate({"evaluators": {"enabled": ["pii_leakage", "operations"]}})
    done = assemble(settings, "fast").pipeline.process(records)
    assert done.dead == []
    assert done.adjustments.unknown == {}
    assert [row.app for row in done.block.traces] == ["support"] * 6
    passes = [row.metrics["passes"] for row in done.block.scores if row.evaluator == "pii_leakage"]
    assert passes == [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert all(abs(row.time.timestamp() - time.time()) < 60 for row in done.block.traces)
    world = World(database, windows=WindowSettings(), rules=RuleSettings(), evaluators=load())
    database.insert("traces", done.block.traces)
    world.store(done.block.scores, traces=False)
    minute_closed = (datetime.now(UTC) - world.start).total_seconds() + 120
    world.advance(minute_closed)
    assert [(one.app, one.metric, one.type) for one in world.open()] == [("support", "pii_leakage.passes", "privacy")]
