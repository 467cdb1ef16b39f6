"""The sink is away at full input: fetching pauses, memory stays within what settings state, and all of it drains."""

import uuid
from functools import partial
from pathlib import Path

import pytest

from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.sections import MEMORY_PER_BYTE_IN_FLIGHT
from tests.failures.memory import Memory
from tests.stream.core.traffic import Lane, eventually, make_topics, send, trace

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.timeout(240)]

BOUND = 4 << 20
FULL = 1.5  # and a fetch, a quarter of it on the wire
PARTITIONS = 2
COUNT = 30_000
MUCH = "word " * 200  # so that a round is nine times the bound
PAUSED = "ragtide_fetch_paused_seconds_total"


def test_memory_stays_within_what_settings_state_however_much_waits(broker: EmbeddedBroker, tmp_path: Path) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(broker, {topic: PARTITIONS, f"{topic}.dead": 1})
    limits = {"in_flight_bytes": BOUND, "slice_records": 50}
    away, sent = tmp_path / "away", 2000
    send(broker, topic, _traces(0, sent))
    with Lane(broker, tmp_path, topic, worker=limits) as lane:
        assert lane.process is not None
        eventually(lambda: len(lane.traces()) == sent, 60, lane.logs)
        memory = Memory(lane.process.pid)
        allowed = MEMORY_PER_BYTE_IN_FLIGHT * BOUND
        for _ in range(2):
            paused_s = lane.metric(PAUSED)
            away.touch()
            send(broker, topic, _traces(sent, COUNT))
            sent += COUNT
            eventually(partial(_paused, lane, memory, paused_s + 3), 60, lane.logs)
            assert BOUND <= lane.metric("ragtide_in_flight_bytes") < FULL * BOUND
            away.unlink()
            eventually(partial(_stored, lane, memory, sent), 60, lane.logs)
            assert memory.grown <= allowed, f"{memory.grown >> 20} MiB more than {memory.before >> 20} MiB before"
        eventually(lambda: lane.metric("ragtide_in_flight_bytes") == 0, 20, lane.logs)
        assert lane.terminate() == 0, lane.logs()


def _paused(lane: Lane, memory: Memory, seconds: float) -> bool:
    memory.look()
    return lane.metric(PAUSED) > seconds


def _stored(lane: Lane, memory: Memory, count: int) -> bool:
    memory.look()
    return len(lane.traces()) == count


def _traces(first: int, count: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(f"{n}".encode(), trace(f"t{n}", answer=MUCH)) for n in range(first, first + count)]
