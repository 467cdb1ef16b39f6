"""A lane on a real broker: the embedded one, and Apache Kafka for the same promises."""

import hashlib
import json
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.infra.kafka_node import KafkaNode
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


def test_a_kill_in_the_middle_loses_nothing(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker)
    send(any_broker, topic, traces(6000))
    worker = {"slice_records": 100, "block_rows": 400, "block_wait_ms": 20}
    with Lane(any_broker, tmp_path, topic, worker=worker, nap_s=0.05) as lane:
        eventually(lambda: len(set(lane.traces())) > 1000, 40, lane.logs)
        lane.kill()
    stored = set(lane.traces())
    assert len(stored) < 6000, "killed too late to prove anything"
    below = committed(any_broker, lane.group, topic, PARTITIONS)
    offsets = {(int(n) % PARTITIONS, n) for n in below}  # partitions exist even where nothing is committed
    assert len(offsets) == PARTITIONS
    stored_offsets = sorted(offset for kind, _, offset in rows_in(tmp_path) if kind == "trace")
    assert sum(below.values()) <= len(stored_offsets), "committed past what was stored"
    with Lane(any_broker, tmp_path, topic) as again:
        eventually(lambda: len(set(again.traces())) == 6000, 60, again.logs)
        eventually(lambda: sum(committed(any_broker, lane.group, topic, PARTITIONS).values()) == 6000, 10, again.logs)
        assert again.terminate() == 0, again.logs()


def test_a_sink_away_for_longer_than_the_poll_interval_drains_afterwards(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker)
    (tmp_path / "away").touch()
    worker = {"in_flight_bytes": 1 << 20, "slice_records": 50}
    with Lane(any_broker, tmp_path, topic, kafka={"max_poll_interval_s": 10.0}, worker=worker) as lane:
        send(any_broker, topic, traces(20_000))
        eventually(lambda: "does not accept rows" in lane.logs(), 30, lane.logs)
        send(any_broker, topic, traces(1000, start=20_000))
        time.sleep(30)  # three poll intervals
        assert lane.process is not None
        assert lane.process.poll() is None, lane.logs()
        assert not lane.traces()
        assert sum(committed(any_broker, lane.group, topic, PARTITIONS).values()) == 0
        in_flight = lane.metric("ragtide_in_flight_bytes")
        assert 1 << 20 <= in_flight < 3 << 20, "20,000 records are 12 MB"
        assert lane.metric("ragtide_sink_blocked_seconds") > 20
        assert lane.metric("ragtide_lag_records") > 20_000, "what came while nothing was fetched is lag as well"
        assert lane.metric("ragtide_lag_seconds") > 20
        (tmp_path / "away").unlink()
        eventually(lambda: len(set(lane.traces())) == 21_000, 60, lane.logs)
        eventually(lambda: sum(committed(any_broker, lane.group, topic, PARTITIONS).values()) == 21_000, 10, lane.logs)
        assert lane.terminate() == 0, lane.logs()


def test_sigterm_commits_only_what_is_done(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 1)
    send(any_broker, topic, traces(1000))
    with Lane(any_broker, tmp_path, topic, worker={"slice_records": 10}, nap_s=0.2) as lane:
        eventually(lambda: len(lane.traces()) > 50, 40, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    done = len(lane.traces())
    assert done < 1000
    assert committed(any_broker, lane.group, topic, 1) == {0: done}  # what was begun is finished, the rest left


@pytest.mark.broker
def test_sigterm_with_the_sink_away_gives_up_in_time_and_commits_nothing(broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(broker, 1)
    (tmp_path / "away").touch()
    send(broker, topic, traces(100))
    with Lane(broker, tmp_path, topic, worker={"drain_s": 1.0}) as lane:
        eventually(lambda: "does not accept rows" in lane.logs(), 30, lane.logs)
        assert lane.terminate() == 0, lane.logs()
        assert "with work left unfinished" in lane.logs()
    assert committed(broker, lane.group, topic, 1) == {0: 0}


def test_poison_goes_to_the_dead_letters_as_it_was(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker)
    poison = b'{"trace_id": "broken", '
    send(any_broker, topic, [*traces(50), (b"key", poison), *traces(50, start=50)])
    with Lane(any_broker, tmp_path, topic) as lane:
        eventually(lambda: len(set(lane.traces())) == 100, 40, lane.logs)
        eventually(lambda: sum(committed(any_broker, lane.group, topic, PARTITIONS).values()) == 101, 10, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    (letter,) = read(any_broker, lane.dead_topic, 1)
    headers = dict(letter.headers)
    assert (letter.key, letter.value) == (b"key", poison)
    assert headers["dlq.topic"] == topic.encode()
    assert headers["dlq.reason"] == b"not_json"
    assert headers["dlq.lane"] == b"fast"
    where = int(headers["dlq.offset"])
    assert [offset for kind, _, offset in rows_in(tmp_path) if kind == "dead"] == [where]


@pytest.mark.kafka
def test_poison_too_big_for_the_dead_letter_topic_leaves_coordinates(kafka: Broker, tmp_path: Path) -> None:
    topic = f"rag.{uuid.uuid4().hex[:8]}"
    make_topics(kafka, {topic: 1}, {"max.message.bytes": str(8 << 20)})
    make_topics(kafka, {f"{topic}.dead": 1}, {"max.message.bytes": "100000"})
    poison = b"x" * 3_000_000
    send(kafka, topic, [(b"small", b"not json either"), (b"k", poison), (b"t1", trace("t1"))])
    with Lane(kafka, tmp_path, topic) as lane:
        eventually(lambda: committed(kafka, lane.group, topic, 1) == {0: 3}, 40, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    letters = {letter.key: letter for letter in read(kafka, lane.dead_topic, 2)}
    assert letters[b"small"].value == b"not json either"
    told = json.loads(letters[b"k"].value)
    assert told == {
        "topic": topic,
        "partition": 0,
        "offset": 1,
        "size": 3_000_000,
        "sha256": hashlib.sha256(poison).hexdigest(),
    }
    assert dict(letters[b"k"].headers)["dlq.omitted"] == b"value"
    assert lane.traces() == ["t1"]


def test_a_five_megabyte_answer_passes(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 1)
    make_big = {"max.message.bytes": str(8 << 20)}
    topic = f"{topic}.big"
    make_topics(any_broker, {topic: 1, f"{topic}.dead": 1}, make_big)
    big = (b"big", trace("big", answer="word " * (1 << 20)))
    send(any_broker, topic, [*traces(20), big, *traces(20, start=20)])
    with Lane(any_broker, tmp_path, topic) as lane:
        eventually(lambda: len(set(lane.traces())) == 41, 60, lane.logs)
        assert lane.terminate() == 0, lane.logs()


def test_a_trace_that_the_sink_refuses_is_a_dead_letter(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 1)
    bad = (b"key", trace("refuse-me"))
    send(any_broker, topic, [*traces(30), bad, *traces(30, start=30)])
    with Lane(any_broker, tmp_path, topic) as lane:
        eventually(lambda: committed(any_broker, lane.group, topic, 1) == {0: 61}, 40, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert sorted(lane.traces()) == sorted(f"t{n}" for n in range(60))
    (letter,) = read(any_broker, lane.dead_topic, 1)
    assert (letter.key, letter.value) == bad
    assert dict(letter.headers)["dlq.reason"] == b"refused"
    assert ("dead", "refused", 30) in rows_in(tmp_path)


def test_a_topic_of_nothing_but_poison_stops_the_worker_and_stays(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 1)
    send(any_broker, topic, [(None, b"poison")] * 1200)
    for _ in range(2):  # whoever starts it again empties the topic no further
        with Lane(any_broker, tmp_path, topic) as lane:
            assert lane.process is not None
            assert lane.process.wait(40) == 2, lane.logs()
            assert "worker.dead_letter_run" in lane.logs()
        assert committed(any_broker, lane.group, topic, 1) == {0: 0}
    assert read(any_broker, lane.dead_topic, 1, timeout_s=2) == []


def test_a_foreign_format_on_a_topic_of_its_own_stops_no_other_topic(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 1)
    foreign = f"{topic}.foreign"
    make_topics(any_broker, {foreign: 2})
    send(any_broker, foreign, [(b"k", b"2026-03-01 INFO not a trace")] * 1200)
    send(any_broker, topic, traces(300))
    worker = {"live_after_s": 3, "heartbeat_s": 0.2}
    with Lane(any_broker, tmp_path, topic, kafka={"topics": [foreign, topic]}, worker=worker) as lane:
        eventually(lambda: f"reads topic {foreign} no further" in lane.logs(), 40, lane.logs)
        send(any_broker, topic, traces(300, start=300))
        eventually(lambda: committed(any_broker, lane.group, topic, 1) == {0: 600}, 40, lane.logs)
        assert lane.metric("ragtide_topics_stopped") == 1
        assert f"topic {foreign} is read no further: the latest 500 records were all" in lane.asked("/ready")
        assert "reasons: not_json 100%. Example: " in lane.logs()
        send(any_broker, foreign, [(b"k", b"more of it")] * 50)
        eventually(lambda: lane.metric("ragtide_lag_records") == 1250, 30, lane.logs)
        time.sleep(4)  # longer than worker.live_after_s: its lag is nobody's to work off
        assert "nothing was committed" not in lane.asked("/live")
        assert lane.terminate() == 0, lane.logs()
    assert sorted(lane.traces()) == sorted(f"t{n}" for n in range(600))
    assert sum(committed(any_broker, lane.group, foreign, 2).values()) <= 700  # none from the slice that stopped it
    assert len(read(any_broker, lane.dead_topic, 1, timeout_s=2)) <= 700


@pytest.mark.broker
def test_live_says_for_how_long_nothing_was_committed(broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(broker, 1)
    send(broker, topic, traces(1))
    with Lane(broker, tmp_path, topic, worker={"live_after_s": 2}, nap_s=600) as lane:
        eventually(lambda: "records wait and nothing was committed" in lane.asked("/live"), 40, lane.logs)


@pytest.mark.broker
def test_another_lane_skips_what_it_cannot_read(broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(broker, 1)
    send(broker, topic, [(None, b"poison"), *traces(5)])
    with Lane(broker, tmp_path, topic, lane="model") as lane:
        eventually(lambda: committed(broker, lane.group, topic, 1) == {0: 6}, 40, lane.logs)
        assert lane.terminate() == 0, lane.logs()
    assert read(broker, lane.dead_topic, 1, timeout_s=2) == []
    assert not [row for row in rows_in(tmp_path) if row[0] in ("trace", "dead")]


def test_partitions_move_to_a_second_worker_and_back(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 4)
    slow = {"slice_records": 20}
    with Lane(any_broker, tmp_path, topic, worker=slow, nap_s=0.05) as first:
        send(any_broker, topic, traces(2000))
        eventually(lambda: len(set(first.traces())) > 100, 40, first.logs)
        with Lane(any_broker, tmp_path, topic, worker=slow, nap_s=0.05) as second:
            eventually(second.is_at_work, 40, second.logs)
            send(any_broker, topic, traces(2000, start=2000))
            eventually(lambda: len(set(first.traces())) > 3000, 60, first.logs)
            assert second.terminate() == 0, second.logs()
        eventually(lambda: len(set(first.traces())) == 4000, 60, first.logs)
        eventually(lambda: sum(committed(any_broker, first.group, topic, 4).values()) == 4000, 20, first.logs)
        assert first.terminate() == 0, first.logs()


def test_an_idle_partition_is_known_to_be_idle(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 2)
    send(any_broker, topic, [(b"t1", trace("t1"))])
    with Lane(any_broker, tmp_path, topic) as lane:

        def idle() -> set[str]:
            rows = [row for row in rows_in(tmp_path) if row[0] == "progress"]
            return {key.split()[0] for _, key, _ in rows if key.endswith(" 0")}

        eventually(lambda: idle() == {"0", "1"}, 40, lane.logs)
        before = len(rows_in(tmp_path))
        eventually(lambda: len(rows_in(tmp_path)) >= before + 4, 20, lane.logs)  # heartbeats go on
        assert lane.terminate() == 0, lane.logs()


@pytest.mark.kafka
def test_a_broker_away_for_longer_than_the_session_is_waited_for(tmp_path: Path) -> None:
    with KafkaNode(tmp_path / "kafka") as node:
        topic = topic_of(node)
        send(node, topic, traces(3000))
        with Lane(node, tmp_path, topic, worker={"slice_records": 50}, nap_s=0.1) as lane:
            eventually(lambda: len(set(lane.traces())) > 300, 60, lane.logs)
            node.kill()
            time.sleep(30)
            assert lane.process is not None
            assert lane.process.poll() is None, lane.logs()
            node.restart()
            eventually(lambda: len(set(lane.traces())) == 3000, 100, lane.logs)
            eventually(lambda: sum(committed(node, lane.group, topic, PARTITIONS).values()) == 3000, 30, lane.logs)
            assert lane.terminate() == 0, lane.logs()


def test_sigterm_waits_for_what_was_begun(any_broker: Broker, tmp_path: Path) -> None:
    topic = topic_of(any_broker, 1)
    send(any_broker, topic, traces(100))
    with Lane(any_broker, tmp_path, topic, worker={"block_wait_ms": 4000}) as lane:
        eventually(lambda: "telemetry at" in lane.logs(), 30, lane.logs)
        eventually(lambda: lane.metric("ragtide_records_total") == 100, 30, lane.logs)
        assert not lane.traces(), "stored too early to prove anything"
        assert lane.terminate() == 0, lane.logs()
    assert len(lane.traces()) == 100
    assert committed(any_broker, lane.group, topic, 1) == {0: 100}


@pytest.mark.kafka
def test_what_is_done_is_committed_before_partitions_move(kafka: Broker, tmp_path: Path) -> None:
    topic = topic_of(kafka, 2)
    send(kafka, topic, traces(500))
    never = {"commit_interval_s": 3600.0}
    with Lane(kafka, tmp_path, topic, kafka=never) as first:
        eventually(lambda: len(first.traces()) == 500, 40, first.logs)
        assert sum(committed(kafka, first.group, topic, 2).values()) == 0
        with Lane(kafka, tmp_path, topic, kafka=never) as second:
            eventually(lambda: sum(committed(kafka, first.group, topic, 2).values()) == 500, 40, second.logs)
        assert len(first.traces()) == 500, "read again by the new owner"
