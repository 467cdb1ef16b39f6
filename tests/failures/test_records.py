"""Good and bad records mixed, through a real worker: every good one is stored, every bad one is a dead letter."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.failures.bad_records import Dead, dead_ones, of_days, trace
from tests.failures.site import Message, Place, of
from tests.infra.kafka_node import KafkaNode
from tests.stream.core.traffic import Broker, read

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(240)]

LARGEST_TRACE = 6 << 20
LARGEST_DEAD_LETTER = 1 << 20
ANSWER = "it left the house yesterday"
HEADERS = [("traceparent", b"00-4bf92f35"), ("empty", b"")]

# What is odd and good: how the answer is stored.
ODD: dict[str, tuple[bytes, str]] = {
    "large": (trace("large", answer="word " * (1 << 20)), "word " * (1 << 20)),
    "surrogates": (trace("surrogates", answer="a\ud800b \udc00"), "a\ufffdb \ufffd"),
    "raw surrogate": (trace("raw surrogate").replace(ANSWER.encode(), b"a\xed\xa0\x80b"), "a\ufffdb"),
    "name \ufffd": (trace("name \ud800", segments={"t\udc00": "\ud83d"}, attributes={"\udfff": ["\ud800"]}), ANSWER),
    "nul": (trace("nul", answer="a\x00b"), "a\x00b"),
    "nul in a name \x00": (trace("nul in a name \x00", segments={"t\x00": "\x00"}), ANSWER),
    "long names": (trace("long names", model={"served": "m" * 60_000}, segments={"s" * 300: "v" * 100_000}), ANSWER),
    "unknown fields": (trace("unknown fields", thumbs="up", latency={"total_s": 1, "queue_s": 2}), ANSWER),
    "every letter": (
        trace("every letter", answer="\u202e\U0001f600 ' \" \\ \t\n` {x:String}"),
        "\u202e\U0001f600 ' \" \\ \t\n` {x:String}",
    ),
}


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def any_broker(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_good_and_bad_records_mixed(any_broker: Broker, database: Database, tmp_path: Path) -> None:
    days = of_days(1000)
    dead = dead_ones() + [Dead(value, "too_old") for _, value in days[8:]]
    dead.append(Dead(trace("poison", answer="x" * (3 << 20)) + b"!", "not_json"))
    dead.append(Dead(trace("huge", answer="x" * (7 << 20)), "too_big"))
    good = {f"t-{n}": (trace(f"t-{n}"), ANSWER) for n in range(2400)} | ODD
    good |= {trace_id: (value, ANSWER) for trace_id, value in days[:7]}

    of_good = [Message(value, trace_id.encode()) for trace_id, (value, _) in good.items()]
    of_good += of_good[:50]  # the same trace again
    of_dead = {f"dead-{n}".encode(): one for n, one in enumerate(dead)}
    messages = _mixed(of_good, [Message(one.value, key, HEADERS) for key, one in of_dead.items()])

    site = of(tmp_path, any_broker, database, {"ingest": {"max_bytes": LARGEST_TRACE}})
    with site.up(largest_dead_letter=LARGEST_DEAD_LETTER):
        places = {message.key: place for message, place in zip(messages, site.produce(messages), strict=True)}
        worker = site.worker()
        site.until(lambda: site.committed() == len(messages), "every offset committed", 90)
        assert worker.stop() == 0, site.logs()
        letters = {letter.key: letter for letter in read(any_broker, site.dead_topic, len(dead))}

    _check_stored(database, {trace_id: answer for trace_id, (_, answer) in good.items()})
    rows = database.rows("SELECT partition, offset, reason, stage, size, sha256 FROM dead_letters FINAL")
    assert {Place(row["partition"], row["offset"]): row for row in rows} == {
        places[key]: {**places[key]._asdict(), "reason": one.reason, "stage": "decode", **_told(one.value)}
        for key, one in of_dead.items()
    }
    assert letters.keys() == of_dead.keys()
    limited = isinstance(any_broker, KafkaNode)  # the embedded broker knows no limit of a topic
    for key, one in of_dead.items():
        omitted = limited and one.value is not None and len(one.value) > LARGEST_DEAD_LETTER
        _check_letter(letters[key], one, site.topic, places[key], omitted=omitted)


def _told(value: bytes | None) -> dict[str, Any]:
    return {"size": len(value or b""), "sha256": hashlib.sha256(value or b"").hexdigest()}


def _check_letter(letter: Any, one: Dead, topic: str, place: Place, *, omitted: bool) -> None:
    """As it was sent, and where it lay and why; only where and what hash where it does not fit the topic."""
    headers = dict(letter.headers)
    assert headers["dlq.reason"] == one.reason.encode()
    assert headers["dlq.topic"] == topic.encode()
    assert Place(int(headers["dlq.partition"]), int(headers["dlq.offset"])) == place
    if omitted:
        assert json.loads(letter.value) == {"topic": topic, **place._asdict(), **_told(one.value)}
        assert headers["dlq.omitted"] == b"value"
    else:
        assert letter.value == one.value
        assert list(letter.headers)[: len(HEADERS)] == HEADERS
        assert "dlq.omitted" not in headers


def _check_stored(database: Database, answers: dict[str, str]) -> None:
    """Each good trace once, its text as it should be, one score of every evaluator, none of them failed."""
    traces = [row["trace_id"] for row in database.rows("SELECT trace_id FROM traces FINAL")]
    assert sorted(traces) == sorted(answers)
    texts = database.rows("SELECT trace_id, answer, attributes FROM trace_texts FINAL")
    assert {row["trace_id"]: row["answer"] for row in texts} == answers
    attributes = {row["trace_id"]: json.loads(row["attributes"]) for row in texts}
    assert attributes["unknown fields"] == {"thumbs": "up", "latency.queue_s": 2}
    scores = database.rows("SELECT trace_id, evaluator, status FROM scores FINAL")
    assert {row["status"] for row in scores} == {"scored", "not_applicable"}
    by_evaluator: dict[str, list[str]] = {}
    for row in scores:
        by_evaluator.setdefault(row["evaluator"], []).append(row["trace_id"])
    assert {"inputs", "operations", "pii_leakage"} <= by_evaluator.keys()
    assert all(sorted(ids) == sorted(answers) for ids in by_evaluator.values())
    assert database.rows("SELECT count() AS n FROM dirty_windows WHERE lane = 'fast'")[0]["n"] > 0


def _mixed(good: Sequence[Message], dead: Sequence[Message]) -> list[Message]:
    """Evenly: never more dead ones in a row, or of the latest 1,000, than a worker puts up with."""
    count = len(good) + len(dead)
    left = [iter(good), iter(dead)]
    return [next(left[(n + 1) * len(dead) // count - n * len(dead) // count]) for n in range(count)]
