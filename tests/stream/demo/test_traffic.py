import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import msgspec
import pytest

from benchmarks.demo_faults import Bench
from ragtide.evaluators.errors import Transient
from ragtide.evaluators.trace import Latency, Tokens, Trace
from ragtide.stream.demo.application import Application
from ragtide.stream.demo.faults import SLOW_EXPENSIVE, WRONG_CHUNKS, Fault
from ragtide.stream.demo.questions import ask_about
from ragtide.stream.demo.traffic import Traffic, kafka_outbox
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.local.topics import create_topics
from tests.stream.demo.simulated_time import AtOnce, SimulatedLoop

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


def answered(bench: Bench, fault: Fault | None, monotonic: Callable[[], float] | None = None) -> Trace:
    """One question's trace; waits take no time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        watch = monotonic or runner.get_loop().time
        application = Application(bench.index, bench.encoder, AtOnce(), lambda: datetime.now(UTC), watch)
        rng = random.Random(5)
        return runner.run(application.answer(ask_about(bench.passages, rng), fault, rng))


def test_latency_is_what_the_clock_says(bench: Bench) -> None:
    ticks = iter([100.0, 100.25, 200.0, 200.5])  # retrieval, then generation
    assert answered(bench, None, lambda: next(ticks)).latency == Latency(0.75, retrieval_s=0.25, generation_s=0.5)
    throttled = answered(bench, SLOW_EXPENSIVE).latency
    assert throttled is not None
    assert throttled.total_s == throttled.generation_s
    assert 2 * 0.8 <= (throttled.total_s or 0) <= 2 * 1.6


def test_cost_is_by_the_table_of_prices_and_every_attempt_is_paid(bench: Bench) -> None:
    once, thrice = answered(bench, None), answered(bench, SLOW_EXPENSIVE)
    texts = [once.question or "", *(chunk.text or "" for chunk in once.contexts or ())]
    prompt, output = (
        sum(bench.encoder.count_tokens([text]) for text in texts),
        bench.encoder.count_tokens([once.answer or ""]),
    )
    assert prompt > output > 0
    usd = (prompt * 2.5 + output * 10) / 1e6
    assert once.tokens == Tokens(prompt, output)
    assert once.cost_usd == pytest.approx(usd)
    assert (thrice.question, thrice.answer) == (once.question, once.answer)
    assert thrice.tokens == Tokens(3 * prompt, 3 * output)
    assert thrice.cost_usd == pytest.approx(3 * usd)


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
