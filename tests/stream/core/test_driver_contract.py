"""The names and signatures of Faust and aiokafka that the driver rests on; one that moves fails here, not at night."""

import inspect
import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer import consumer as consumer_module
from aiokafka.consumer import fetcher as fetcher_module
from aiokafka.consumer.fetcher import Fetcher, FetchResult
from aiokafka.consumer.group_coordinator import BaseCoordinator, GroupCoordinator
from aiokafka.consumer.subscription_state import Assignment, Subscription, SubscriptionState, TopicPartitionState
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import ConsumerRecord
from faust.app.base import App, BootStrategy
from faust.serializers.schemas import Schema
from faust.transport import base
from faust.transport.consumer import Consumer as BaseConsumer
from faust.transport.consumer import ThreadDelegateConsumer
from faust.transport.drivers import aiokafka as driver
from faust.types.app import AppT
from faust.types.tuples import ConsumerMessage, Message

from ragtide.stream.kafka.app import ConsumerOnly, LaneApp
from ragtide.stream.kafka.batches import LegacyBatch, ReadRecords, RecordBatches, RecordFetcher, StoredBatch
from ragtide.stream.kafka.consumer_thread import SliceConsumerThread
from ragtide.stream.kafka.driver import SliceConsumer, SliceSchema, SliceTransport

PartitionRecords = ReadRecords.__mro__[1]  # the name in its module stands for ours


def names(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_version_is_the_one_this_was_read_against() -> None:
    assert version("faust-streaming").startswith("0.15.")


OVERRIDDEN = [
    (SliceConsumer, ThreadDelegateConsumer, "_getmany", ["self", "active_partitions", "timeout"]),
    (SliceConsumer, driver.Consumer, "_new_consumer_thread", ["self"]),
    (SliceConsumer, driver.Consumer, "_to_message", ["self", "tp", "record"]),
    (SliceConsumer, driver.Consumer, "verify_event_path", ["self", "now", "tp"]),
    (SliceConsumer, BaseConsumer, "ack", ["self", "message"]),
    (SliceConsumer, BaseConsumer, "_filter_tps_with_pending_acks", ["self", "topics"]),
    (SliceConsumer, BaseConsumer, "_new_offset", ["self", "tp"]),
    (SliceConsumer, BaseConsumer, "_add_gap", ["self", "tp", "offset_from", "offset_to"]),
    (SliceConsumer, BaseConsumer, "on_partitions_revoked", ["self", "revoked"]),
    (SliceConsumer, BaseConsumer, "on_partitions_assigned", ["self", "assigned", "generation_id"]),
    (SliceConsumerThread, driver.AIOKafkaConsumerThread, "on_start", ["self"]),
    (SliceConsumerThread, driver.AIOKafkaConsumerThread, "on_thread_stop", ["self"]),
    (SliceConsumerThread, driver.AIOKafkaConsumerThread, "subscribe", ["self", "topics"]),
    (SliceConsumerThread, driver.AIOKafkaConsumerThread, "_create_worker_consumer", ["self", "transport"]),
    (
        SliceConsumerThread,
        driver.AIOKafkaConsumerThread,
        "_fetch_records",
        ["self", "consumer", "active_partitions", "timeout", "max_records"],
    ),
    (RecordFetcher, Fetcher, "_proc_fetch_request", ["self", "assignment", "node_id", "request"]),
    (RecordFetcher, Fetcher, "fetched_records", ["self", "partitions", "timeout", "max_records"]),
    (RecordFetcher, Fetcher, "next_record", ["self", "partitions"]),
    (ReadRecords, PartitionRecords, "_unpack_records", ["self"]),
    (SliceSchema, Schema, "loads_key", ["self", "app", "message", "loads", "serializer"]),
    (SliceSchema, Schema, "loads_value", ["self", "app", "message", "loads", "serializer"]),
    (LaneApp, App, "_create_directories", ["self"]),
]


@pytest.mark.parametrize(("ours", "theirs", "name", "parameters"), OVERRIDDEN, ids=[row[2] for row in OVERRIDDEN])
def test_what_we_override_is_still_there(ours: type, theirs: type, name: str, parameters: list[str]) -> None:
    assert name in vars(theirs), f"{theirs.__name__} no longer defines {name}"
    assert name in vars(ours)
    assert names(getattr(theirs, name)) == parameters
    assert names(getattr(ours, name)) == parameters
    assert inspect.iscoroutinefunction(getattr(ours, name)) == inspect.iscoroutinefunction(getattr(theirs, name))


@pytest.mark.parametrize("ours", [SliceConsumer, SliceConsumerThread, SliceSchema, LaneApp, RecordFetcher, ReadRecords])
def test_every_name_that_we_override_is_held_to_its_signature(ours: type) -> None:
    above = {name for base in ours.__mro__[1:] for name in vars(base)} - {"__init__"}
    overridden = {name for name, value in vars(ours).items() if inspect.isfunction(value) and name in above}
    assert overridden == {name for owner, _, name, _ in OVERRIDDEN if owner is ours}


CALLED = [
    (BaseConsumer, "commit", ["self", "topics", "start_new_transaction"]),
    (driver.AIOKafkaConsumerThread, "getmany", ["self", "active_partitions", "timeout"]),
    (driver.AIOKafkaConsumerThread, "_ensure_consumer", ["self"]),
    (AIOKafkaConsumer, "seek", ["self", "partition", "offset"]),
    (AIOKafkaProducer, "create_batch", ["self"]),
    (AIOKafkaProducer, "send_batch", ["self", "batch", "topic", "partition"]),
    (AIOKafkaProducer, "partitions_for", ["self", "topic"]),
    (BatchBuilder, "append", ["self", "timestamp", "key", "value", "headers"]),
    (Assignment, "state_value", ["self", "tp"]),
    (SubscriptionState, "fetch_context", ["self"]),
    (SubscriptionState, "subscribe_pattern", ["self", "pattern", "listener"]),
    (Message, "ack", ["self", "consumer", "n"]),
    (ConsumerMessage, "on_final_ack", ["self", "consumer"]),
]


@pytest.mark.parametrize(("owner", "name", "parameters"), CALLED, ids=[row[1] for row in CALLED])
def test_what_we_call_takes_what_we_pass(owner: type, name: str, parameters: list[str]) -> None:
    assert names(getattr(owner, name)) == parameters


def test_a_message_takes_what_to_message_passes() -> None:
    expected = (
        "topic partition offset timestamp timestamp_type headers key value checksum serialized_key_size "
        "serialized_value_size tp"
    )
    parameters = names(ConsumerMessage.__init__)
    assert parameters[1:13] == expected.split()
    assert "generation_id" in parameters
    assert "acked" in Message.__slots__


def test_an_acknowledged_event_ends_in_our_ack() -> None:
    class Recorder:
        def __init__(self) -> None:
            self.seen: list[ConsumerMessage] = []

        def ack(self, message: ConsumerMessage) -> bool:
            self.seen.append(message)
            return True

    recorder = Recorder()
    message = ConsumerMessage("t", 0, 1, 0.0, 0, None, None, None, None)
    message.incref()
    message.ack(recorder)
    message.ack(recorder)
    assert recorder.seen[0] is message


def test_attributes_that_we_read_are_there() -> None:
    for attribute in ("flow_active", "_unacked_messages", "_thread", "_read_offset", "_committed_offset"):
        assert attribute in inspect.getsource(BaseConsumer) + inspect.getsource(ThreadDelegateConsumer)
    assert "consumer_generation_id" in AppT.__annotations__
    assert "_subscription" in inspect.getsource(AIOKafkaConsumer.__init__)
    assert isinstance(inspect.getattr_static(Subscription, "assignment"), property)
    assert isinstance(inspect.getattr_static(SubscriptionState, "fetcher_idle_time"), property)
    for attribute in ("has_valid_position", "position"):
        assert isinstance(inspect.getattr_static(TopicPartitionState, attribute), property)
    assert "self._isolation_level = isolation_level" in inspect.getsource(AIOKafkaConsumer.__init__)
    assert "isolation_level=self._isolation_level" in inspect.getsource(AIOKafkaConsumer.start)
    assert "self._fetch_max_bytes = fetch_max_bytes" in inspect.getsource(AIOKafkaConsumer.__init__)
    assert "fetch_max_bytes=self._fetch_max_bytes" in inspect.getsource(AIOKafkaConsumer.start)
    assert "self.lso" in inspect.getsource(TopicPartitionState.__init__)
    assert "self.highwater" in inspect.getsource(TopicPartitionState.__init__)
    assert "self.timestamp" in inspect.getsource(TopicPartitionState.__init__)
    assert "now_ms = int(1000 * time.time())" in inspect.getsource(Fetcher._proc_fetch_request)
    assert {"serialized_key_size", "serialized_value_size"} <= ConsumerRecord.__dataclass_fields__.keys()


def test_every_consumer_reads_with_what_replaces_names_of_aiokafka() -> None:
    assert consumer_module.Fetcher is RecordFetcher
    assert fetcher_module.MemoryRecords is RecordBatches
    assert fetcher_module.PartitionRecords is ReadRecords
    assert "self._fetcher = Fetcher(\n            self._client," in inspect.getsource(AIOKafkaConsumer.start)
    fetched = inspect.getsource(Fetcher._proc_fetch_request)
    assert "records = MemoryRecords(part_data[-1])" in fetched
    assert "partition_records = PartitionRecords(" in fetched
    assert "partition_records=partition_records" in fetched
    waits = fetched[fetched.index("await self._client.send(") :].count("await ")
    assert waits == 2, "after the answer it waits in the retry alone: nobody reads a batch before it has its limit"
    assert "self._partition_records = partition_records" in inspect.getsource(FetchResult.__init__)


def test_a_batch_is_asked_for_what_ours_have() -> None:
    told = inspect.getsource(PartitionRecords._unpack_records)
    asked = set(re.findall(r"next_batch\.(\w+)", told))
    assert asked == {
        "base_offset",
        "is_control_batch",
        "is_transactional",
        "next_offset",
        "producer_id",
        "validate_crc",
    }
    assert set(re.findall(r" records\.(\w+)", told)) == {"has_next", "next_batch"}
    for kind in (StoredBatch, LegacyBatch):
        assert asked - {"base_offset"} <= {*dir(kind), "next_offset", "validate_crc"}
    assert "base_offset" in dir(StoredBatch)
    assert "next_batch.producer_id is not None" in told, "only then an earlier format is asked for its base offset"


def test_a_pattern_is_subscribed_to_and_asked_as_we_do() -> None:
    subscribed = inspect.getsource(AIOKafkaConsumer.subscribe)
    assert "self._subscription.subscribe_pattern(pattern=pattern, listener=listener)" in subscribed
    assert "self._client.set_topics([])" in subscribed
    assert "subscription.subscribed_pattern.match(topic)" in inspect.getsource(BaseCoordinator)


def test_a_coordinator_that_does_not_answer_is_forgotten() -> None:
    assert "self._coordinator = " in inspect.getsource(AIOKafkaConsumer)
    assert "self.coordinator_id = None" in inspect.getsource(GroupCoordinator.coordinator_dead)
    assert "self.coordinator_dead()" in inspect.getsource(GroupCoordinator._send_req)


def test_what_is_known_of_topics_is_where_we_look_for_it() -> None:
    assert "self._topics = set(topics)" in inspect.getsource(AIOKafkaClient.set_topics)
    for how in (ClusterMetadata.failed_update, ClusterMetadata.update_metadata):
        assert "self._last_refresh_ms = " in inspect.getsource(how)
    assert "self._last_successful_refresh_ms = now" in inspect.getsource(ClusterMetadata.update_metadata)
    assert names(ClusterMetadata.partitions_for_topic) == ["self", "topic"]
    assert names(AIOKafkaClient.force_metadata_update) == ["self"]


def test_a_new_assignment_is_a_new_object() -> None:
    assert "self._assignment = Assignment(" in inspect.getsource(Subscription._assign)


def test_idle_time_is_what_the_group_is_left_for() -> None:
    assert "fetcher_idle_time" in inspect.getsource(GroupCoordinator._heartbeat_routine)


def test_the_transport_and_the_boot_strategy_carry_ours() -> None:
    assert SliceTransport.Consumer is SliceConsumer
    assert "Consumer" in vars(base.Transport) or "Consumer" in vars(driver.Transport)
    assert {"enable_kafka_producer", "enable_web"} <= set(vars(BootStrategy)) | set(BootStrategy.__annotations__)
    assert LaneApp.BootStrategy is ConsumerOnly


def test_faust_commits_what_these_say() -> None:
    source = inspect.getsource(BaseConsumer._filter_committable_offsets)
    assert "self._new_offset(tp)" in source
    assert "self._should_commit(tp, offset)" in source
    assert "self._filter_tps_with_pending_acks(topics)" in inspect.getsource(BaseConsumer.force_commit)
    assert "r_offset is None or offset >= r_offset" in inspect.getsource(BaseConsumer._drain_messages)
    assert "to_message(tp, record)" in inspect.getsource(BaseConsumer.getmany)
