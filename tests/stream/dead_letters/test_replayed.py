"""Replays of letters that are stopped, refused or lied to."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.protocol import Sink
from ragtide.stream.assembly import assemble
from ragtide.stream.dead_letters.letters import Letters, Wanted
from ragtide.stream.dead_letters.source import LetterSource, MarkReplayed
from ragtide.stream.dead_letters.values import RecordFinder
from ragtide.stream.ingest.records import Record
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.replay.loop import replay
from ragtide.stream.replay.runs import Runs
from tests.failures.bad_records import trace
from tests.stream.dead_letters.scene import Scene, Sent
from tests.stream.pipe.replaying import Fastidious, Stopped

pytestmark = [pytest.mark.clickhouse, pytest.mark.broker, pytest.mark.timeout(240)]

OLD = (datetime.now(UTC) - timedelta(days=8)).isoformat()
NAMES = [f"t-{n}" for n in range(30)]


@pytest.fixture
def scene(broker: EmbeddedBroker, database: Database) -> Scene:
    made = Scene(broker, database)
    made.send(*(Sent(trace(name, time=OLD)) for name in NAMES))
    made.take_in()
    return made


class StopsAtTheSecond(MarkReplayed):
    """In place of a kill once two blocks are stored, of which one is marked."""

    def __call__(self, records: Sequence[Record]) -> None:
        if self.count:
            raise Stopped
        super().__call__(records)


def go(scene: Scene, run_id: str, sink: Sink, kind: type[MarkReplayed] = MarkReplayed) -> tuple[int, int]:
    """Letters found, and letters settled; a block of every ten records."""
    settings = scene.settings(1 << 20)
    letters, wanted = Letters(scene.database), Wanted()
    found = letters.to_replay(wanted, run_id)
    source = LetterSource(wanted, found, RecordFinder(settings.kafka, batch_records=10))
    made = assemble(settings, None, run_id=run_id, timely=False)
    runs = Runs(scene.database)
    run = runs.claim(run_id, source.description, source.identity, made.plan, settings)
    settled = kind(letters, run_id, "ann")
    with suppress(Stopped):
        asyncio.run(replay(source, made.pipeline, sink, runs, run, block_rows=1, on_stored=settled))
    return len(found), settled.count


@pytest.mark.parametrize("run_id", ["live", "mended"])
def test_a_killed_replay_goes_on_after_what_was_marked(scene: Scene, run_id: str) -> None:
    sink = ClickHouseSink(scene.database)
    assert go(scene, run_id, sink, StopsAtTheSecond) == (30, 10)
    assert len(scene.stored(run_id)["traces"]) == 20
    assert go(scene, run_id, sink) == (20, 20)
    stored = scene.stored(run_id)
    assert sorted(row["trace_id"] for row in stored["traces"]) == sorted(NAMES)
    assert sorted(row["trace_id"] for row in stored["scores"]) == sorted(NAMES)
    name = run_id if run_id != "live" else "live:%"
    runs = scene.database.rows(
        "SELECT state, traces, dead_letters FROM runs FINAL WHERE run_id LIKE {name:String}", {"name": name}
    )
    assert runs == [{"state": "completed", "traces": 30, "dead_letters": 0}]
    left = {"live": 0, "mended": 30}[run_id]
    assert go(scene, run_id, sink) == (left, left)
    assert scene.stored(run_id) == stored


def test_what_the_sink_refuses_stays_open_with_that_reason(scene: Scene) -> None:
    assert go(scene, "live", Fastidious(scene.database, "t-3")) == (30, 29)
    [letter] = Letters(scene.database).find(Wanted())
    assert (letter.offset, letter.reason, letter.stage) == (3, "refused", "sink")
    assert go(scene, "live", ClickHouseSink(scene.database)) == (1, 1)
    assert Letters(scene.database).find(Wanted()) == []


def test_headers_that_anybody_wrote_mislead_nobody(broker: EmbeddedBroker, database: Database) -> None:
    """The dead-letter topic begins with letters without a possible place, and with one that lies about its bytes."""
    scene = Scene(broker, database)
    scene.send(Sent(trace("true", time=OLD)))
    [record] = scene.records().values()
    place = {"topic": record.topic, "partition": 0, "offset": 0, "timestamp": record.timestamp}
    odd: list[dict[str, object]] = [
        {},
        {**place, "offset": "9" * 5000},
        {**place, "timestamp": 10**30},
        {**place, "partition": "one"},
        {**place, "topic": "\udcff"},
        place,
    ]
    forged = [
        [(f"dlq.{name}", str(value).encode(errors="surrogateescape")) for name, value in said.items()] for said in odd
    ]
    scene.send(*(Sent(trace("forged"), headers=headers) for headers in forged), topic=f"{scene.topic}.dead")
    scene.take_in()
    assert go(scene, "live", ClickHouseSink(database)) == (1, 1)
    assert [row["trace_id"] for row in scene.stored()["traces"]] == ["true"]
