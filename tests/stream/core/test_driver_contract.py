"""The names and signatures of Faust and aiokafka that the driver rests on; one that moves fails here, not at night."""

import inspect
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import BaseCoordinator, GroupCoordinator
from aiokafka.consumer.subscription_state import Assignment, Subscription, SubscriptionState, TopicPartitionState
from aiokafka.structs import ConsumerRecord
from faust.app.base import App, BootStrategy
from faust.serializers.schemas import Schema
from faust.transport import base
from faust.transport.consumer import Consumer as BaseConsumer
from faust.transport.consumer import ThreadDelegateConsumer
from faust.transport.drivers import aiokafka as driver
from faust.types.app import AppT
from faust.types.tuples import ConsumerMessage, Message

from stream.kafka.app import ConsumerOnly, LaneApp
from stream.kafka.consumer_thread import SliceConsumerThread
from stream.kafka.driver import SliceConsumer, SliceSchema, SliceTransport


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


@pytest.mark.parametrize("ours", [SliceConsumer, SliceConsumerThread, SliceSchema, LaneApp])
def test_every_name_that_we_override_is_held_to_its_signature(ours: type) -> None:
    above = {name for base in ours.__mro__[1:] for name in vars(base)} - {"__init__"}
    overridden = {name for name, value in vars(ours).items() if inspect.isfunction(value) and name in above}
    assert overridden == {name for owner, _, name, _ in OVERRIDDEN if owner is ours}


CALLED = [
    (BaseConsumer, "commit", ["self", "topics", "start_new_transaction"]),
    (driver.AIOKafkaConsumerThread, "getmany", ["self", "active_partitions", "timeout"]),
    (driver.AIOKafkaConsumerThread, "_ensure_consumer", ["self"]),
    (AIOKafkaConsumer, "seek", ["self", "partition", "offset"]),
    (Fetcher, "fetched_records", ["self", "partitions", "timeout", "max_records"]),
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
    assert "serialized_value_size" in ConsumerRecord.__dataclass_fields__


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
