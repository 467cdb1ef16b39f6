"""The sink is away at full input: fetching pauses, memory stays within what settings state, and all of it drains."""

import uuid
from functools import partial
from pathlib import Path

import psutil
import pytest

from stream.configuration.sections import MEMORY_PER_BYTE_IN_FLIGHT
from stream.local.broker import EmbeddedBroker
from tests.stream.core.traffic import Lane, eventually, make_topics, send, trace

pytestmark = [pytest.mark.broker, pytest.mark.chaos, pytest.mark.timeout(240)]

BOUND = 4 << 20
FETCHED = 1 << 20  # of each partition, on top of what is in flight
PARTITIONS = 2
COUNT = 30_000
MUCH = "word " * 200  # so that a round is nine times the bound
PAUSED = "ragwatch_fetch_paused_seconds_total"


def test_memory_stays_within_what_settings_state_however_much_waits(broker: EmbeddedBroker, tmp_path: Path) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(broker, {topic: PARTITIONS, f"{topic}.dead": 1})
    limits = {"in_flight_bytes": BOUND, "slice_records": 50}
    away, sent = tmp_path / "away", 2000
    send(broker, topic, _traces(0, sent))
    with Lane(broker, tmp_path, topic, kafka={"max_record_bytes": FETCHED}, worker=limits) as lane:
        assert lane.process is not None
        eventually(lambda: len(lane.traces()) == sent, 60, lane.logs)
        most = _Most(psutil.Process(lane.process.pid))
        base = most.seen()
        allowed = base + MEMORY_PER_BYTE_IN_FLIGHT * BOUND + 2 * PARTITIONS * FETCHED
        for _ in range(2):
            paused_s = lane.metric(PAUSED)
            away.touch()
            send(broker, topic, _traces(sent, COUNT))
            sent += COUNT
            eventually(partial(_paused, lane, most, paused_s + 3), 60, lane.logs)
            assert BOUND <= lane.metric("ragwatch_in_flight_bytes") < 2 * BOUND
            away.unlink()
            eventually(partial(_stored, lane, most, sent), 60, lane.logs)
            assert most.rss <= allowed, f"{most.rss - base >> 20} MiB more than {base >> 20} MiB at the start"
        eventually(lambda: lane.metric("ragwatch_in_flight_bytes") == 0, 20, lane.logs)
        assert lane.terminate() == 0, lane.logs()


class _Most:
    """The most memory that a process was seen with."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.rss = 0

    def seen(self) -> int:
        """Looks again."""
        self.rss = max(self.rss, int(self._process.memory_info().rss))
        return self.rss


def _paused(lane: Lane, most: _Most, seconds: float) -> bool:
    most.seen()
    return lane.metric(PAUSED) > seconds


def _stored(lane: Lane, most: _Most, count: int) -> bool:
    most.seen()
    return len(lane.traces()) == count


def _traces(first: int, count: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(f"{n}".encode(), trace(f"t{n}", answer=MUCH)) for n in range(first, first + count)]
