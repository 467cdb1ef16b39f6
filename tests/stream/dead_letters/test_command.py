"""`ragtide dead-letters` on real brokers and the real ClickHouse."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.ingest.enriched import version_of
from tests.failures.bad_records import trace
from tests.stream.core.traffic import Broker
from tests.stream.dead_letters.scene import SMALL, Scene, Sent

pytestmark = [pytest.mark.clickhouse, pytest.mark.timeout(240)]

OLD = (datetime.now(UTC) - timedelta(days=8)).isoformat()  # ingest.max_age_s is 7 days
LONG = "word " * SMALL
POISON = b'{"trace_id": "\x1b[2J\xe2\x80\xae\xff '
SENT = (
    Sent(trace("good")),
    Sent(trace("late", time=OLD), partition=1),
    Sent(trace("big", answer=LONG)),
    Sent(trace("big and broken", answer=LONG)[:-1], partition=1),
    Sent(POISON, b"k\x07", [("dlq.topic", b"elsewhere"), ("traceparent", b"00-4b\x1b")]),
)
REASONS = {"too_old": 1, "too_big": 2, "not_utf8": 1}


@pytest.fixture(
    params=[pytest.param("broker", marks=pytest.mark.broker), pytest.param("kafka", marks=pytest.mark.kafka)]
)
def any_broker(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


@pytest.fixture
def scene(any_broker: Broker, database: Database) -> Scene:
    made = Scene(any_broker, database)
    made.send(*SENT)
    made.take_in()
    return made


def listed(scene: Scene, *args: str) -> list[dict[str, Any]]:
    told = scene.command("list", "--json", *args)
    assert told.exit_code == 0, told.output
    found: list[dict[str, Any]] = json.loads(told.stdout)
    return found


def reasons(scene: Scene, *args: str) -> Counter[str]:
    return Counter(letter["reason"] for letter in listed(scene, "--each", *args))


def replayed(scene: Scene, *args: str) -> str:
    told = scene.command("replay", *args)
    assert told.exit_code == 0, told.output
    return told.stdout


def test_letters_are_listed_by_reason_time_and_topic(scene: Scene) -> None:
    times = {place: datetime.fromtimestamp(at.timestamp / 1000, UTC) for place, at in scene.records().items()}
    groups = {(one["reason"], one["partition"]): one for one in listed(scene)}
    assert {key: one["count"] for key, one in groups.items()} == {
        ("too_old", 1): 1,
        ("too_big", 0): 1,
        ("too_big", 1): 1,
        ("not_utf8", 0): 1,
    }
    assert {one["topic"] for one in groups.values()} == {scene.topic}
    poison = groups["not_utf8", 0]
    assert datetime.fromisoformat(poison["first"]) == datetime.fromisoformat(poison["last"]) == times[0, 2]
    assert reasons(scene) == REASONS
    assert reasons(scene, "--reason", "too_old,not_utf8") == {"too_old": 1, "not_utf8": 1}
    assert "there is no 'elsewhere'" in scene.command("list", "--topic", "elsewhere").output
    assert reasons(scene, "--since", times[0, 2].isoformat()) == {"not_utf8": 1}
    assert reasons(scene, "--until", times[0, 2].isoformat()) == {"too_old": 1, "too_big": 2}
    assert reasons(scene, "--limit", "1") == {"not_utf8": 1}
    table = scene.command("list", "--each").stdout.splitlines()
    assert len(table) == 5
    assert f"{scene.topic}/0/2" in table[1]
    assert scene.command("list", "--reason", "too_old", "--until", "2020-01-01").exit_code == 0


def test_one_is_shown_with_its_bytes_escaped_and_its_own_headers(scene: Scene) -> None:
    told = scene.command("show", f"{scene.topic}/0/2").stdout
    assert "not_utf8, at stage decode, open" in told
    assert told.endswith('value:\n| {"trace_id": "\\x1b[2J\\u202e\\xff \n')
    assert "  key: k\\x07\n" in told
    assert "  header dlq.topic: elsewhere\n  header traceparent: 00-4b\\x1b\n" in told
    assert "dlq.reason" not in told
    assert "\x1b" not in told
    missing = scene.command("show", f"{scene.topic}/0/0")
    assert missing.exit_code == 2
    assert "no dead letter" in missing.output
    assert scene.command("show", "rag.traces/0").exit_code == 2


def test_replayed_are_those_that_succeed_and_the_others_have_their_new_reason(scene: Scene) -> None:
    assert "2 of 4 dead letters replayed, 2 failed again, 0 in no topic any more" in replayed(scene, "--by", "ann")
    assert reasons(scene) == {"not_json": 1, "not_utf8": 1}
    assert {(one["reason"], one["actor"]) for one in listed(scene, "--each", "--state", "replayed")} == {
        ("too_old", "ann"),
        ("too_big", "ann"),
    }
    stored = scene.stored()
    records = scene.records()
    places = {"good": (0, 0), "late": (1, 0), "big": (0, 1)}
    assert {row["trace_id"]: row["version"] for row in stored["traces"]} == {
        name: version_of(records[at]) for name, at in places.items()
    }
    texts = {row["trace_id"]: row["answer"] for row in stored["trace_texts"]}
    assert texts["big"] == LONG
    assert {row["trace_id"] for row in stored["scores"]} == places.keys()
    marked = "SELECT count() AS n FROM dirty_windows WHERE start < now() - INTERVAL 7 DAY"
    assert scene.database.rows(marked)[0]["n"] > 0
    assert "0 of 2 dead letters replayed, 2 failed again" in replayed(scene)
    assert scene.stored() == stored
    assert "no open dead letters reason too_big" in replayed(scene, "--reason", "too_big")


def test_an_original_that_is_read_again_opens_nothing_and_moves_no_row(scene: Scene) -> None:
    replayed(scene)
    before = scene.stored()
    scene.take_in()
    assert reasons(scene) == {"too_big": 1, "not_utf8": 1}, "as live traffic decides, of those still open"
    after = scene.stored()
    assert {table: after[table] for table in after if table != "dead_letters"} == {
        table: before[table] for table in before if table != "dead_letters"
    }


def test_a_newer_message_about_the_trace_stands(scene: Scene) -> None:
    scene.send(Sent(trace("big", answer="newer"), partition=1))
    scene.take_in()
    assert "2 of 4" in replayed(scene)
    texts = {row["trace_id"]: row["answer"] for row in scene.stored()["trace_texts"]}
    assert texts["big"] == "newer"


def test_another_run_is_filled_beside_live(scene: Scene) -> None:
    live = scene.stored()
    assert "2 of 4" in replayed(scene, "--run", "mended")
    assert scene.stored() == live
    assert reasons(scene) == REASONS
    filled = scene.stored("mended")
    assert {row["trace_id"] for row in filled["traces"]} == {"late", "big"}
    assert {row["reason"] for row in filled["dead_letters"]} == {"not_json", "not_utf8"}
    assert "2 of 4" in replayed(scene, "--run", "mended")
    assert scene.stored("mended") == filled
    runs = scene.database.rows("SELECT state, traces, dead_letters FROM runs FINAL WHERE run_id = 'mended'")
    assert runs == [{"state": "completed", "traces": 2, "dead_letters": 2}]
    other = scene.command("replay", "--run", "mended", "--reason", "too_old")
    assert other.exit_code == 2
    assert "choose another --run name" in other.output


def test_dropped_ones_stay_dropped_and_tell_by_whom(scene: Scene) -> None:
    asked = scene.command("drop", "--reason", "too_old", typed="n\n")
    assert asked.exit_code == 130
    assert "drop 1 dead letters (too_old 1) of run live?" in asked.stderr
    assert reasons(scene) == REASONS
    done = scene.command("drop", "--reason", "too_old,not_utf8", "--yes", "--by", "ben")
    assert done.stdout == "dropped 2 dead letters (not_utf8 1, too_old 1), as ben\n"
    scene.take_in()
    assert reasons(scene) == {"too_big": 2}
    assert "1 of 2" in replayed(scene)
    assert {row["trace_id"] for row in scene.stored()["traces"]} == {"good", "big"}
    dropped = listed(scene, "--each", "--state", "dropped")
    assert {one["actor"] for one in dropped} == {"ben"}
    asked_since = datetime.now(UTC) - timedelta(hours=1)
    assert all(asked_since < datetime.fromisoformat(one["marked_at"]) <= datetime.now(UTC) for one in dropped)
    assert "dropped by ben at " in scene.command("show", f"{scene.topic}/0/2").stdout


def test_what_is_in_no_dead_letter_topic_is_read_where_it_lay(any_broker: Broker, database: Database) -> None:
    scene = Scene(any_broker, database)
    scene.send(*SENT)
    scene.take_in(send_letters=False)
    assert "2 of 4 dead letters replayed, 2 failed again, 0 in no topic any more" in replayed(scene)


@pytest.mark.kafka
def test_what_did_not_fit_the_dead_letter_topic_is_read_where_it_lay(kafka: Broker, database: Database) -> None:
    scene = Scene(kafka, database, largest_letter=1500)
    scene.send(*SENT)
    scene.take_in()
    assert LONG in scene.command("show", f"{scene.topic}/0/1").stdout
    assert "2 of 4 dead letters replayed, 2 failed again, 0 in no topic any more" in replayed(scene)


def test_what_is_gone_stays_open_and_is_told(scene: Scene) -> None:
    """Rows whose hash is of no record that any topic has: one beyond its end, one at the place of another."""
    for offset, topic in ((77, scene.topic), (0, scene.topic), (1, "file:traces.jsonl")):
        scene.database.command(
            "INSERT INTO dead_letters (run_id, topic, partition, offset, time, reason, sha256) "
            "VALUES ('live', {topic:String}, 0, {offset:UInt64}, now64(3), 'lost', 'ab')",
            {"topic": topic, "offset": offset},
        )
    assert "0 of 3 dead letters replayed, 0 failed again, 3 in no topic any more" in replayed(scene, "--reason", "lost")
    assert reasons(scene, "--reason", "lost") == {"lost": 3}
    assert "its bytes are gone" in scene.command("show", f"{scene.topic}/0/77").stdout
