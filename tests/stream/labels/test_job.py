"""Labels find their traces whatever comes first, and the final rows are the same."""

import json
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from click.testing import CliRunner

from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.version import revision_of
from ragtide.stream.cli import main
from ragtide.stream.ingest.enriched import version_of
from ragtide.stream.ingest.names import cut_name
from ragtide.stream.ingest.records import Record
from ragtide.stream.local.broker import EmbeddedBroker
from tests.drift.world import dies_before
from tests.infra.fresh_database import reached
from tests.stream.labels.scene import Scene

pytestmark = pytest.mark.clickhouse

NEW = "It returns a string."
ORIGINAL, AGAIN, NEWER, LABEL, LABEL_AGAIN = range(5)


def interleavings() -> Iterator[tuple[int, ...]]:
    """Every order in which the original comes before it is delivered again, and so for the label."""
    for order in permutations(range(5)):
        if order.index(ORIGINAL) < order.index(AGAIN) and order.index(LABEL) < order.index(LABEL_AGAIN):
            yield order


def test_every_interleaving_leaves_the_same_rows(database: Database) -> None:
    """Those side by side, each about a trace of its own; what enriches is read 0 to 4 steps after it was sent.

    The newer message of some has moved to another minute.
    """
    scene = Scene(database)
    cases = [(order, delay) for order in interleavings() for delay in (0, 1, 4)]
    names = [f"{''.join(map(str, order))}-{delay}{'moved' * (delay == 1)}" for order, delay in cases]
    at = scene.now_ms
    originals = {name: scene.trace(name, answer="old", time=at) for name in names}
    newer = {name: scene.trace(name, answer=NEW, time=at - 60_000 * ("moved" in name)) for name in names}
    labels = {name: scene.label(name, expected=[NEW]) for name in names}
    twice = {name: scene.label(name, expected=[NEW]) for name in names}
    sources = (originals, originals, newer, labels, twice)
    waiting: list[tuple[int, Record]] = []
    for step in range(5):
        events = [(order[step], sources[order[step]][name]) for (order, _), name in zip(cases, names, strict=True)]
        scene.read([record for kind, record in events if kind >= LABEL])
        due = [record for at, record in waiting if at <= step]
        waiting = [(at, record) for at, record in waiting if at > step]
        scene.take([*(record for kind, record in events if kind < LABEL), *due])
        scene.join()
        scene.reconcile()
        delays = dict(zip(names, (delay for _, delay in cases), strict=True))
        for record in scene.enriched:
            delay = delays[_trace_id(record)]
            waiting.append((step + 1 + delay, record))
        scene.enriched = []
    scene.take([record for _, record in waiting])
    scene.settle()
    scene.reconcile()
    before = scene.everything()
    for name in names:
        newest = newer[name]
        version = version_of(newest) + (2 << 16)
        assert [row["version"] for row in rows_of(before, "traces", name)] == [version], name
        (texts,) = rows_of(before, "trace_texts", name)
        assert (texts["version"], texts["expected"], texts["answer"]) == (version, [NEW], NEW), name
        scores = {row["evaluator"]: row for row in rows_of(before, "scores", name)}
        assert {row["version"] >> 16 << 16 for row in scores.values()} == {version}, name
        assert scores["exact_match"]["metrics"] == {"exact_match": 1.0}, name
        alike = [{**row, "version": 0, "trace_id": ""} for row in scores.values()]
        first = [{**row, "version": 0, "trace_id": ""} for row in rows_of(before, "scores", names[0])]
        assert alike == first, name
    scene.restart_jobs()
    assert scene.join() == {}
    assert scene.everything() == before


def rows_of(tables: dict[str, list[dict[str, Any]]], table: str, trace_id: str) -> list[dict[str, Any]]:
    return [row for row in tables[table] if row["trace_id"] == trace_id]


def _trace_id(record: Record) -> str:
    assert record.value is not None
    found: str = json.loads(record.value)["trace_id"]
    return found


def test_what_came_with_the_trace_is_scored_as_before(database: Database) -> None:
    """Every evaluator sees the trace that it saw, and the new facts."""
    scene = Scene(database)
    came = {
        "condition": '"string"',
        "labels": {"predicted": "b", "scores": {"a": 0.9}},
        "relevance": {"c-1": 1.0},
        "task": "classification",
        "contexts": [{"id": "c-0", "text": "Nothing."}, {"id": "c-1", "text": "A string.", "score": 0.9}],
        "user_id": "ada",
    }
    scene.take([scene.trace("t", **came), scene.trace("other", **came)])
    before = {evaluator: scene.score("t", evaluator) for evaluator in ("inputs", "text_matching")}
    assert before["text_matching"]["status"] == "scored"
    assert scene.score("t", "classification")["reason"] == "missing_expected"
    others = scene.rows("scores", "other")
    scene.read([scene.label("t", labels={"expected": "a"}, expected=[NEW])])
    scene.settle()
    for evaluator, row in before.items():
        assert scene.score("t", evaluator) | {"version": 0} == row | {"version": 0}
    assert scene.score("t", "classification")["status"] == "scored"
    assert scene.score("t", "exact_match")["metrics"] == {"exact_match": 1.0}
    assert scene.rows("scores", "other") == others
    assert [row["user_id"] for row in scene.rows("traces", "t")] == ["ada"]
    scene.read([scene.label("t", relevance={"c-0": 1.0, "c-1": 0.0})])  # a later one, of another fact
    scene.settle()
    (texts,) = scene.rows("trace_texts", "t")
    assert json.loads(texts["rest"])["relevance"] == {"c-0": 1.0, "c-1": 0.0}
    assert scene.score("t", "exact_match")["metrics"] == {"exact_match": 1.0}
    assert [revision_of(row["version"]) for row in scene.rows("traces", "t")] == [2]


def test_a_later_label_takes_the_place_of_an_earlier_one_whoever_reads_it_first(database: Database) -> None:
    scene = Scene(database)
    wrong, right = scene.label("t", expected=["wrong"]), scene.label("t", expected=[NEW])
    scene.take([scene.trace("t")])
    scene.read([right])
    scene.settle()
    scene.read([wrong])
    scene.settle()
    assert scene.score("t", "exact_match")["metrics"] == {"exact_match": 1.0}
    scene.read([scene.label("t", expected=[])])
    scene.settle()
    assert scene.score("t", "exact_match")["status"] == "not_applicable"


def test_one_that_finds_no_trace_is_counted_once_and_joined_when_it_comes(database: Database) -> None:
    scene = Scene(database)
    scene.read([scene.label("t", expected=[NEW])])
    assert scene.join() == {"no_trace": 1}
    assert scene.join() == {}
    assert scene.count("label_joins", result="no_trace") == 1
    scene.take([scene.trace("t")])
    scene.settle()
    assert scene.count("label_joins", result="sent") == 1
    assert scene.score("t", "exact_match")["metrics"] == {"exact_match": 1.0}


def test_grades_of_a_chunk_with_a_long_id_find_it(database: Database) -> None:
    """The id is cut alike in traces, labels and enriched traces."""
    scene, long = Scene(database), "https://docs.example.org/" + "a" * 5_000
    scene.take([scene.trace("t", contexts=[{"id": long, "text": "A string."}])])
    scene.read([scene.label("t", relevance={long: 1.0}, author="a" * 300)])
    scene.settle()
    [texts] = scene.rows("trace_texts", "t")
    assert json.loads(texts["rest"])["relevance"] == {cut_name(long): 1.0}
    assert texts["chunk_ids"] == [cut_name(long)]
    assert scene.count("names_cut", lane="labels", field="author") == 1


@pytest.mark.parametrize(("store", "result"), [("off", "no_texts"), ("masked", "not_whole")])
def test_where_texts_are_not_in_full_nothing_is_guessed(database: Database, store: str, result: str) -> None:
    before = Scene(database, {"privacy": {"store_texts": store}})
    before.take([before.trace("t")])
    stored = before.rows("scores")
    scene = Scene(database)  # from now on they are
    scene.read([scene.label("t", expected=[NEW])])
    assert scene.join() == {result: 1}
    assert scene.count("label_joins", result=result) == 1
    assert not scene.enriched
    assert scene.rows("scores") == stored


def test_an_enriched_trace_goes_where_its_own_is_read_else_to_the_first_topic_with_a_name(database: Database) -> None:
    elsewhere = Scene(database)
    elsewhere.take([elsewhere.trace("t")])  # on rag.traces
    elsewhere.read([elsewhere.label("t", expected=[NEW])])
    assert Scene(database, {"kafka": {"topics": ["^orders\\..*"]}}).join() == {"no_topic": 1}
    for topics, chosen in ((["^x", "orders", "last"], "orders"), (["orders", "^rag\\..*"], "rag.traces")):
        scene = Scene(database, {"kafka": {"topics": topics}})
        assert scene.join() == {"sent": 1}
        assert [record.topic for record in scene.enriched] == [chosen]


def test_one_too_big_for_the_topic_stops_no_other(database: Database) -> None:
    scene = Scene(database)
    scene.take([scene.trace("big"), scene.trace("small")])
    scene.read([scene.label("big", expected=["x" * (1 << 20)]), scene.label("small", expected=["y"])])
    assert scene.join() == {"too_big": 1, "sent": 1}


def test_verdicts_are_stored_and_send_nothing(database: Database) -> None:
    scene = Scene(database)
    scene.take([scene.trace("t")])
    scene.read([scene.label("t", author="ada", verdict={"thumbs": "down", "score": 0.25, "comment": "no"})])
    assert scene.join() == {}
    found = database.rows("SELECT author, thumbs, score, comment FROM labels FINAL")
    assert found == [{"author": "ada", "thumbs": "down", "score": 0.25, "comment": "no"}]
    assert scene.count("labels", kind="verdict") == 1


def test_bad_labels_are_set_aside_and_the_others_stored(database: Database) -> None:
    scene = Scene(database)
    bad = scene.placed("rag.labels", b"{")
    scene.read([bad, scene.label("t", expected=["a"])])
    assert [(letter.record, letter.reason, letter.stage) for letter in scene.letters.sent] == [
        (bad, "not_json", "label")
    ]
    assert database.rows("SELECT topic, offset, reason, run_id FROM dead_letters FINAL") == [
        {"topic": "rag.labels", "offset": bad.offset, "reason": "not_json", "run_id": "live"}
    ]
    assert len(scene.rows("labels")) == 1
    assert scene.count("dead_letters", lane="labels", stage="label", reason="not_json") == 1


@pytest.mark.parametrize("table", ["labels", "dead_letters", "cursors", "traces", "trace_texts", "scores"])
def test_who_is_killed_anywhere_and_starts_again_leaves_the_same_rows(database: Database, table: str) -> None:
    """By the table before whose insert it happens: while labels are read, after sending, or while a lane stores."""
    scene = Scene(database)
    trace, label = scene.trace("t"), scene.label("t", expected=[NEW])
    bad = scene.placed("rag.labels", b"{")
    scene.take([trace])
    if table in ("labels", "dead_letters"):
        with dies_before(table):
            scene.read([label, bad])
    scene.read([label, bad])  # again, or for the first time
    if table == "cursors":
        with dies_before(table):
            scene.join()
        scene.restart_jobs()
    scene.join()
    assert len(scene.enriched) == 1 + (table == "cursors")
    sent, scene.enriched = scene.enriched, []
    if table in ("traces", "trace_texts", "scores"):
        with dies_before(table):
            scene.take(sent)
        scene.restart_jobs()
        scene.join()
    scene.take(sent)
    scene.settle()
    found = scene.everything()
    assert [row["version"] for row in found["traces"]] == [version_of(trace) + (1 << 16)]
    assert len(found["labels"]) == 1
    assert scene.score("t", "exact_match")["metrics"] == {"exact_match": 1.0}
    scene.restart_jobs()
    assert scene.join() == {}
    assert scene.everything() == found


@pytest.mark.broker
def test_labels_are_not_replayed_as_traces(broker: EmbeddedBroker, database: Database) -> None:
    scene = Scene(database)
    scene.read([scene.placed("rag.labels", b"{")])
    brokers = {"RAGTIDE_KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap}
    told = CliRunner().invoke(
        main, ["dead-letters", "replay"], env={"RAGTIDE_CONFIG": None, **brokers, **reached(database)}
    )
    assert told.output == (
        "1 are labels, which are no traces: mend them and send them again\nno open dead letters\n"
    ), told.output
    assert [row["reason"] for row in database.rows("SELECT reason FROM dead_letters FINAL")] == ["not_json"]


def test_brokers_that_are_away_cost_nothing(database: Database) -> None:
    scene = Scene(database)
    scene.take([scene.trace("t")])
    scene.read([scene.label("t", expected=[NEW])])
    there = scene.send

    def away(messages: Any) -> Any:
        raise Transient("no broker answers")

    scene.job._send = away
    with pytest.raises(Transient):
        scene.join()
    scene.job._send = there
    assert scene.join() == {"sent": 1}
    assert scene.join() == {}
