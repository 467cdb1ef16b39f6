"""A lane reads several topics, and those that a pattern finds while it runs."""

import re
import uuid
from pathlib import Path

import pytest

from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Lane, committed, eventually, make_topics, read, send, trace

pytestmark = pytest.mark.kafka


def test_a_pattern_finds_topics_made_later_and_never_the_dead_letters(kafka: KafkaNode, tmp_path: Path) -> None:
    named, other = (f"rag.{uuid.uuid4().hex[:8]}" for _ in range(2))
    make_topics(kafka, dict.fromkeys((other, f"{named}.eu", f"{named}.dead"), 1))
    settings = {"topics": [f"^{other}", f"^{re.escape(named)}\\..*"], "metadata_max_age_s": 0.5}
    send(kafka, other, [(None, trace("other"))])
    send(kafka, f"{named}.eu", [(None, trace("eu")), (b"bad", b"not json")])
    with Lane(kafka, tmp_path, named, kafka=settings) as lane:
        eventually(lambda: sorted(lane.traces()) == ["eu", "other"], 40, lane.logs)
        make_topics(kafka, {f"{named}.us": 2, f"x{named}.us": 1})
        send(kafka, f"x{named}.us", [(None, trace("unread"))])
        send(kafka, f"{named}.us", [(None, trace(f"us-{n}")) for n in range(10)])
        eventually(lambda: {f"us-{n}" for n in range(10)} <= set(lane.traces()), 40, lane.logs)
        eventually(lambda: sum(committed(kafka, lane.group, f"{named}.us", 2).values()) == 10, 20, lane.logs)
        send(kafka, other, [(None, trace("after"))])
        eventually(lambda: "after" in lane.traces(), 20, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert sorted(set(lane.traces())) == sorted(["eu", "other", "after", *(f"us-{n}" for n in range(10))])
    assert [letter.key for letter in read(kafka, f"{named}.dead", 2, timeout_s=2)] == [b"bad"]
