"""`label` sends what the jobs read, from a notebook too, and sends nothing if one label is wrong."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ragtide import label
from ragtide.evaluators.errors import ConfigError, Transient
from ragtide.stream.api import labelling
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.joining import Message
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.sections import KafkaSettings
from tests.stream.core.traffic import make_topics, read

DOWN = {"trace_id": "t-1", "author": "ada", "verdict": {"thumbs": "down"}}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """What would be sent, with a loop of its own as the real sender."""
    messages: list[Message] = []

    def send(kafka: KafkaSettings, some: list[Message]) -> list[bool]:
        asyncio.run(asyncio.sleep(0))
        messages.extend(some)
        return [len(one.value) < 1_000 for one in some]

    monkeypatch.setattr(labelling, "send", send)
    return messages


def test_labels_are_messages_keyed_by_their_trace(sent: list[Message]) -> None:
    labels = [DOWN, {"trace_id": "t-2", "expected": ["Within 30 days."]}]
    assert label(labels, settings={"kafka": {"labels_topic": "opinions"}}) == 2
    assert [(one.topic, one.key, json.loads(one.value)) for one in sent] == [
        ("opinions", b"t-1", labels[0]),
        ("opinions", b"t-2", labels[1]),
    ]
    for one in sent:
        assert decode(StoredRecord(one.topic, 0, 0, 1, one.key, one.value), 1_000).trace_id.encode() == one.key


def test_files_and_frames_are_labels_too(sent: list[Message], tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.write_text(f"{json.dumps(DOWN)}\n")
    assert label(file) == 1
    frame = pytest.importorskip("pandas").DataFrame([DOWN, {"trace_id": "t-3", "relevance": {"c-1": 2}}])
    assert label(frame) == 2
    assert json.loads(sent[-1].value) == {"trace_id": "t-3", "relevance": {"c-1": 2}}


def test_one_wrong_label_and_none_is_sent(sent: list[Message]) -> None:
    wrong: list[Any] = [{"trace_id": "t-2"}, {"trace_id": "t-3", "mood": "up"}, {"trace_id": {1}}, 7]
    with pytest.raises(ConfigError) as refused:
        label([DOWN, *wrong])
    assert refused.value.lines == (
        "no label was sent; correct these:",
        "label 2: one of expected, relevance, labels and verdict is required",
        "label 3: a label has a field that no label has; see docs/labels.md",
        "label 4: trace_id: found a value of type set; JSON has no such value",
        "label 5: found a value of type int; a record is a dict, a Trace or a JSON text",
    )
    assert sent == []


def test_what_the_brokers_refuse_is_not_counted(sent: list[Message]) -> None:
    assert label([DOWN, {"trace_id": "t-2", "expected": ["x" * 2_000]}]) == 1


def test_a_notebook_has_a_loop_already(sent: list[Message]) -> None:
    async def cell() -> int:
        return label([DOWN])

    assert asyncio.run(cell()) == 1


def test_without_brokers_it_says_so() -> None:
    with pytest.raises(Transient, match=r"127\.0\.0\.1:1"):
        label([DOWN], settings={"kafka": {"bootstrap_servers": "127.0.0.1:1"}})


@pytest.mark.broker
def test_the_brokers_have_them(broker: EmbeddedBroker) -> None:
    topic = "labels-of-python"
    make_topics(broker, {topic: 1})
    settings = {"kafka": {"bootstrap_servers": broker.bootstrap, "labels_topic": topic}}
    assert label([DOWN, DOWN | {"trace_id": "t-2"}], settings=settings) == 2
    assert sorted(json.loads(one.value)["trace_id"] for one in read(broker, topic, 2)) == ["t-1", "t-2"]
