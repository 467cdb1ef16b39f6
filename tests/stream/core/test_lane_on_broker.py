"""A lane on a real broker: the embedded one, and Apache Kafka for the same promises."""

import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.stream.core.line_sink import rows_in
from tests.stream.core.traffic import Broker, Lane, committed, eventually, make_topics, read, send, trace

PARTITIONS = 3


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def any_broker(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def topic_of(broker: Broker, partitions: int = PARTITIONS) -> str:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(broker, {topic: partitions, f"{topic}.dead": 1})
    return topic


def traces(count: int, start: int = 0, **fields: Any) -> list[tuple[bytes | None, bytes | None]]:
    return [(f"t{n}".encode(), trace(f"t{n}", **fields)) for n in range(start, start + count)]


def test_every_trace_is_stored_and_committed(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker)
    send(any_broker, topic, traces(2000))
    with Lane(any_broker, tmp_path, topic) as lane:
        eventually(lambda: len(set(lane.traces())) == 2000, 40, lane.logs)
        eventually(lambda: sum(committed(any_broker, lane.group, topic, PARTITIONS).values()) == 2000, 10, lane.logs)
        send(any_broker, topic, traces(10, start=2000))
        eventually(lambda: len(set(lane.traces())) == 2010, 20, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert sorted(lane.traces()) == sorted(f"t{n}" for n in range(2010))  # in order and without a restart: once each
    assert sum(committed(any_broker, lane.group, topic, PARTITIONS).values()) == 2010
