"""What the driver adds to Faust's consumer, piece by piece; the whole runs in test_lane_on_broker.py."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from faust.transport.drivers import aiokafka as faust_driver
from hypothesis import given
from hypothesis import strategies as st

from ragtide.stream.ingest.records import Record
from ragtide.stream.kafka.consumer_thread import Fetch, SliceConsumerThread
from ragtide.stream.kafka.driver import Slice, SliceConsumer
from ragtide.stream.kafka.offsets import Lag, OffsetTracker
from tests.stream.core.loop import in_loop
from tests.stream.core.rows import record

AT = TopicPartition("rag.traces", 0)


class State:
    has_valid_position = True

    def __init__(self, position: int, highwater: int | None, lso: int | None, timestamp: int) -> None:
        self.position = position
        self.highwater = highwater
        self.lso = lso
        self.timestamp = timestamp


class Assignment:
    """As aiokafka's: which partitions, and where each stands."""

    def __init__(
        self, position: int = 0, highwater: int | None = 0, lso: int | None = None, *, silent_s: float = 0
    ) -> None:
        self.tps = frozenset([AT])
        self._state = State(position, highwater, lso, int(1000 * (time.time() - silent_s)))

    def state_value(self, partition: TopicPartition) -> State | None:
        return self._state if partition == AT else None


class Kafka:
    """As aiokafka's consumer, as far as the driver looks into it."""

    def __init__(self, assignment: Assignment) -> None:
        self._subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=assignment))
        self.sought: list[tuple[TopicPartition, int]] = []

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought.append((partition, offset))


class Message:
    """As Faust's, of a slice."""

    def __init__(self, value: Slice) -> None:
        self.value = value
        self.acked = False


class Polled:
    """A consumer thread whose next polls bring `answers`."""

    def __init__(self, kafka: Kafka, *answers: Fetch) -> None:
        self._consumer = kafka
        self._answers: Iterator[Fetch] = iter(answers)
        self.polls = 0

    async def getmany(self, partitions: object, timeout: float) -> Fetch:
        self.polls += 1
        return next(self._answers)


def consumer(thread: Any = None, **limits: int) -> Any:
    """A consumer without Faust's services behind it."""
    made = SliceConsumer.__new__(SliceConsumer)
    made.offsets = OffsetTracker()
    made.draining = False
    made._room = asyncio.Event()
    made.ends = {}
    made._left_at = {}
    made.stopped = set()
    made._stopped_at = {}
    made._thread = thread
    made.flow_active = True
    made._unacked_messages = set()
    made._read_offset = defaultdict(lambda: None)
    made._committed_offset = defaultdict(lambda: None)
    for name, value in limits.items():
        setattr(made, name, value)
    return made


@in_loop
async def test_a_poll_becomes_slices_that_hold_the_commit_back() -> None:
    assignment = Assignment()
    records: list[Record] = [record(n) for n in range(5)]
    made = consumer(Polled(Kafka(assignment), Fetch(assignment, {AT: records}, {})), slice_records=2)
    slices = (await made._getmany({AT}, 1.0))[AT]
    assert [[found.offset for found in part.records] for part in slices] == [[0, 1], [2, 3], [4]]
    assert made._new_offset(AT) is None
    made.offsets.acknowledge(slices[0].ticket)
    assert made._new_offset(AT) == 2


@in_loop
async def test_a_commit_passes_what_is_not_delivered_once_all_before_it_is_done() -> None:
    assignment = Assignment()
    polls = [Fetch(assignment, {AT: [record(3)]}, {AT: 9}), Fetch(assignment, {}, {AT: 12})]
    made = consumer(Polled(Kafka(assignment), *polls))
    (only,) = (await made._getmany({AT}, 1.0))[AT]
    assert made._new_offset(AT) is None
    assert await made._getmany({AT}, 1.0) == {}
    assert made._new_offset(AT) is None
    made.offsets.acknowledge(only.ticket)
    assert made._new_offset(AT) == 12


class Answers(Polled):
    """As `Polled`; keeps which partitions each poll asked for."""

    asked: frozenset[TopicPartition] = frozenset()

    async def getmany(self, partitions: Any, timeout: float) -> Fetch:
        self.asked = frozenset(partitions)
        return await super().getmany(partitions, timeout)


@in_loop
async def test_a_stopped_topic_is_neither_read_nor_committed_and_its_lag_stays() -> None:
    other = TopicPartition("other", 0)
    assignment = Assignment(position=5, highwater=12)
    assignment.tps = frozenset([AT, other])
    fetches = [Fetch(assignment, {AT: [record(n) for n in range(5)]}, {})]
    fetches.append(Fetch(assignment, {AT: [record(5)], other: [record(7, topic="other")]}, {AT: 6, other: 8}))
    thread = Answers(Kafka(assignment), *fetches)
    made = consumer(thread, slice_records=2)
    slices = (await made._getmany({AT, other}, 1.0))[AT]
    made.offsets.acknowledge(slices[0].ticket)
    assert made.stop_topic("rag.traces")
    assert made.offsets.outstanding == 0
    assert not slices[1].ticket.valid
    made.offsets.acknowledge(slices[1].ticket)
    assert list(await made._getmany({AT, other}, 1.0)) == [other]
    assert thread.asked == {other}
    assert made._new_offset(AT) == 2  # what was stored before, and nothing after it
    assert made._new_offset(other) is None
    assert made.lag(("rag.traces", 0)) == Lag(2, 10)
    assert not made.stop_topic("other")
    assert await made._getmany({AT, other}, 0.01) == {}
    assert thread.polls == 2


@in_loop
async def test_a_topic_made_anew_is_read_and_committed_from_where_it_begins() -> None:
    assignment = Assignment()
    made = consumer(Polled(Kafka(assignment), Fetch(assignment, {AT: [record(0)]}, {})))
    made._read_offset[AT] = made._committed_offset[AT] = 1000
    (again,) = (await made._getmany({AT}, 1.0))[AT]
    assert made._read_offset[AT] is None, "Faust drops what lies before it"
    made.offsets.acknowledge(again.ticket)
    assert made._should_commit(AT, made._new_offset(AT))
    assert made.offset_resets == 1


@in_loop
async def test_what_was_read_under_an_assignment_that_is_gone_is_dropped() -> None:
    old, new = Assignment(), Assignment()
    made = consumer(Polled(Kafka(new), Fetch(old, {AT: [record(100)]}, {AT: 101})))
    assert await made._getmany({AT}, 1.0) == {}
    assert made.offsets.partitions() == []


@in_loop
async def test_what_cannot_be_delivered_yet_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fetched(self: Any, consumer: Any, partitions: Any, timeout: Any = None, max_records: Any = None) -> Any:
        assert isinstance(partitions, frozenset), "Faust would empty the set while it is read"
        return {AT: [record(7), record(8)]}

    monkeypatch.setattr(faust_driver.AIOKafkaConsumerThread, "_fetch_records", fetched)
    assignment = Assignment(position=9)
    kafka = Kafka(assignment)
    thread = SliceConsumerThread.__new__(SliceConsumerThread)
    thread.consumer = SimpleNamespace(flow_active=False)
    assert await thread._fetch_records(kafka, {AT}, timeout=1.0) == (assignment, {}, {})
    assert kafka.sought == [(AT, 7)]
    thread.consumer.flow_active = True
    assert await thread._fetch_records(kafka, {AT}) == (assignment, {AT: [record(7), record(8)]}, {AT: 9})
    assert kafka.sought == [(AT, 7)]


@in_loop
async def test_fetching_waits_while_too_much_is_in_flight_and_goes_on_after_an_acknowledgement() -> None:
    assignment = Assignment()
    answers = [Fetch(assignment, {AT: [record(number)]}, {}) for number in range(2)]
    thread = Polled(Kafka(assignment), *answers)
    made = consumer(thread, in_flight_bytes=100)
    (first,) = (await made._getmany({AT}, 1.0))[AT]
    assert await made._getmany({AT}, 0.01) == {}
    assert thread.polls == 1
    waiting = asyncio.create_task(made._getmany({AT}, 30.0))
    await asyncio.sleep(0)
    made.ack(Message(first))
    assert await asyncio.wait_for(waiting, 5) == {}
    assert AT in await made._getmany({AT}, 1.0)


@in_loop
async def test_nothing_is_fetched_once_draining() -> None:
    thread = Polled(Kafka(Assignment()))
    made = consumer(thread)
    made.draining = True
    assert await made._getmany({AT}, 0.01) == {}
    assert thread.polls == 0


@given(
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=60),
    slice_records=st.integers(1, 20),
    slice_bytes=st.integers(500, 20_000),
)
def test_slices_hold_every_record_once_in_order_and_stay_within_bounds(
    sizes: list[int], slice_records: int, slice_bytes: int
) -> None:
    records = [record(number, b"x" * size) for number, size in enumerate(sizes)]
    made = consumer(SimpleNamespace(), slice_records=slice_records, slice_bytes=slice_bytes)
    slices = list(made._slices(AT, Assignment(), records))
    parts: list[Sequence[Record]] = [made.records for made in slices]
    assert made.offsets.outstanding == sum(sizes) + 400 * len(sizes)
    assert [found.offset for part in parts for found in part] == list(range(len(sizes)))
    assert all(part and len(part) <= slice_records for part in parts)
    largest = max(sizes) + 400
    assert all(sum(len(found.value or b"") + 400 for found in part) <= slice_bytes + largest for part in parts)


def test_keys_and_headers_count_as_bytes_in_flight() -> None:
    keyed = replace(record(0), key=b"k" * 1000, serialized_key_size=1000)
    headed = replace(record(1), headers=(("h", b"v" * 10),) * 500)
    made = consumer(SimpleNamespace())
    list(made._slices(AT, Assignment(), [keyed, headed]))
    assert made.offsets.outstanding == 2 * 402 + 1000 + 500 * 138


def test_lag_counts_from_what_is_not_acknowledged() -> None:
    assignment = Assignment(position=10, highwater=25)
    made = consumer(SimpleNamespace(_consumer=Kafka(assignment)))
    assert made.lags() == {("rag.traces", 0): Lag(10, 15)}
    ticket = made.offsets.take(AT, assignment, 4, 9)
    assert made.lag(("rag.traces", 0)) == Lag(4, 21)
    made.offsets.acknowledge(ticket)
    assert made.lag(("rag.traces", 0)) == Lag(10, 15)
    assert made.lag(("other", 0)) is None


def test_what_an_open_transaction_holds_back_is_no_lag() -> None:
    made = consumer(SimpleNamespace(_consumer=Kafka(Assignment(position=10, highwater=25, lso=12))))
    assert made.lag(("rag.traces", 0)) == Lag(10, 2)
    unknown = consumer(SimpleNamespace(_consumer=Kafka(Assignment(position=10, highwater=25, lso=-1))))
    assert unknown.lag(("rag.traces", 0)) == Lag(10, 15)


def test_no_lag_is_believed_of_a_broker_that_fell_silent() -> None:
    worked_off = consumer(SimpleNamespace(_consumer=Kafka(Assignment(position=25, highwater=25, silent_s=11))))
    assert worked_off.lags() == {}
    waiting = consumer(SimpleNamespace(_consumer=Kafka(Assignment(position=10, highwater=25, silent_s=11))))
    assert waiting.lags() == {("rag.traces", 0): Lag(10, 15)}


def test_lag_is_unknown_until_the_broker_says_where_the_partition_ends() -> None:
    made = consumer(SimpleNamespace(_consumer=Kafka(Assignment(0, None))))
    assert made.lags() == {}
    assert consumer(SimpleNamespace(_consumer=None)).lags() == {}
