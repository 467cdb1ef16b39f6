"""What producers may send to a lane: every compression that Kafka has, and records up to the largest size."""

import hashlib
import json
import uuid
from pathlib import Path

import pytest

from ragtide.stream.settings.sections import IngestSettings, KafkaSettings
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Lane, committed, eventually, make_topics, read, send, trace

CODECS = ("gzip", "snappy", "lz4", "zstd")
LARGEST = IngestSettings().max_bytes


def sized(trace_id: str, size: int) -> bytes:
    """A trace of exactly so many bytes; the text does not compress to nothing."""
    filled = "".join(hashlib.sha256(str(n).encode()).hexdigest() for n in range(size // 64))
    return trace(trace_id, answer=filled[: size - len(trace(trace_id, answer=""))])


@pytest.mark.kafka
def test_every_compression_and_every_size_up_to_the_largest_is_read(kafka: KafkaNode, tmp_path: Path) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(kafka, {topic: 1, f"{topic}.dead": 1}, {"max.message.bytes": str(LARGEST + (1 << 20))})
    for name in CODECS:
        values = [(None, trace(f"{name}-{n}", answer="the same words " * 50)) for n in range(50)]
        send(kafka, topic, values, compression_type=name, linger_ms=100)
    fits, beyond, unfit = sized("fits", LARGEST), sized("beyond", LARGEST + 1), sized("unfit", LARGEST + (100 << 10))
    assert [len(fits), len(beyond)] == [LARGEST, LARGEST + 1]
    send(kafka, topic, [(b"fits", fits), (b"beyond", beyond), (b"unfit", unfit), (None, trace("last"))])
    with Lane(kafka, tmp_path, topic) as lane:
        eventually(lambda: committed(kafka, lane.group, topic, 1) == {0: 204}, 60, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert sorted(lane.traces()) == sorted([f"{name}-{n}" for name in CODECS for n in range(50)] + ["fits", "last"])
    letters = {letter.key: letter for letter in read(kafka, lane.dead_topic, 2)}
    assert [dict(letters[key].headers)["dlq.reason"] for key in (b"beyond", b"unfit")] == [b"too_big"] * 2
    assert letters[b"beyond"].value == beyond
    assert len(unfit) > KafkaSettings().max_record_bytes + (64 << 10), "more than a dead letter may have"
    assert json.loads(letters[b"unfit"].value)["sha256"] == hashlib.sha256(unfit).hexdigest()
