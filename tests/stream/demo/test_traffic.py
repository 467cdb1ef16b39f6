import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import msgspec
import pytest

from benchmarks.demo_faults import Bench
from evaluators.errors import Transient
from stream.demo.application import Application
from stream.demo.faults import WRONG_CHUNKS, Fault
from stream.demo.traffic import Traffic, kafka_outbox
from stream.local.broker import EmbeddedBroker
from stream.local.topics import create_topics

pytestmark = pytest.mark.onnx


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


class Collected:
    """Takes `room` records, then nothing more."""

    def __init__(self, room: int) -> None:
        self.records: list[tuple[bytes, bytes]] = []
        self._room = room
        self.full = asyncio.Event()

    async def __call__(self, key: bytes, value: bytes) -> object:
        if len(self.records) == self._room:
            self.full.set()
            raise Transient("the broker is away")
        self.records.append((key, value))
        return None


async def run_until(traffic: Traffic, done: asyncio.Event) -> None:
    running = asyncio.create_task(traffic.run())
    await asyncio.wait_for(done.wait(), 30)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_traces_flow_keyed_by_their_id_and_a_lost_one_is_counted(bench: Bench) -> None:
    asked: list[int] = []

    def fault() -> Fault | None:
        asked.append(1)
        return WRONG_CHUNKS if len(asked) > 10 else None

    async def play() -> tuple[Collected, Traffic]:
        outbox = Collected(room=20)
        with ThreadPoolExecutor(1) as executor:
            application = Application(bench.index, bench.encoder, executor, lambda: datetime.now(UTC))
            traffic = Traffic(application, bench.passages, outbox, rate=200, seed=1, fault=fault)
            await run_until(traffic, outbox.full)
        return outbox, traffic

    outbox, traffic = asyncio.run(play())
    assert traffic.sent == 20
    assert traffic.lost >= 1
    traces = [msgspec.json.decode(value) for _, value in outbox.records]
    assert [key.decode() for key, _ in outbox.records] == [trace["trace_id"] for trace in traces]
    assert len({trace["trace_id"] for trace in traces}) == 20
    assert all(len(trace["contexts"]) == 4 for trace in traces)
    assert traffic.sent + traffic.lost <= len(asked)
    assert all(trace["latency"]["total_s"] >= trace["latency"]["retrieval_s"] > 0 for trace in traces)


@pytest.mark.broker
def test_the_outbox_returns_once_the_broker_has_the_record(broker: EmbeddedBroker) -> None:
    from aiokafka import AIOKafkaConsumer

    async def play() -> list[tuple[bytes | None, bytes | None]]:
        await create_topics(broker.bootstrap, {"demo.outbox": 1})
        await create_topics(broker.bootstrap, {"demo.outbox": 1})  # already there: fine
        async with kafka_outbox(broker.bootstrap, "demo.outbox") as send:
            for i in range(3):
                await send(b"k%d" % i, b"v%d" % i)
        consumer = AIOKafkaConsumer("demo.outbox", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
        await consumer.start()
        try:
            return [(m.key, m.value) for m in [await asyncio.wait_for(consumer.getone(), 20) for _ in range(3)]]
        finally:
            await consumer.stop()

    assert asyncio.run(play()) == [(b"k0", b"v0"), (b"k1", b"v1"), (b"k2", b"v2")]
