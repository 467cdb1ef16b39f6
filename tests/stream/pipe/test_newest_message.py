"""Tables and windows hold what the newest message about a trace gives, in any order of arrival."""

import itertools
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest

from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.rollup import Rollup
from ragtide.drift.windows.watermark import Idleness
from ragtide.evaluators.encoder.hashing import HashingEncoder
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.spec import Evaluator, Lane, Method, Metric, NoParams, Shared, evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import LIVE, PROBE, ScoreRow
from ragtide.stream.ingest.enriched import enrichment_headers, resolve_enrichment, version_of
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings
from tests.drift.windows_model import Key, base_windows
from tests.drift.world import World, score_row, trace_row

pytestmark = pytest.mark.clickhouse

TOPIC = "rag.traces"
REPLAY = "candidate"
TRACES = 60
LATER_S = (
    3_700  # than every window; and before the server's own time, by which `tombstone_moved_traces` knows what is new
)


@dataclass(frozen=True)
class Answer:
    answer: str


def counting(id_: str, method: Method) -> Evaluator:
    """An evaluator whose metric is the number that the answer is."""

    @evaluator(id_, version=2, domain="generation", method=method, inputs=Answer, metrics=[Metric("n", high=1e9)])
    def score(rows: Sequence[Answer], shared: Shared, params: NoParams) -> Iterable[Outcome]:
        """The answer as a number."""
        return [Scored({"n": float(row.answer)}) for row in rows]

    return score


TASKS: dict[str, tuple[str, ...]] = {
    "every": (),
    "for_alpha": ("alpha",),
    "for_beta": ("beta",),
    "slow_every": (),
    "slow_alpha": ("alpha",),
    "slow_beta": ("beta",),
}
EVALUATORS = {id_: counting(id_, "lm" if id_.startswith("slow") else "rule") for id_ in TASKS}


def pipeline(lane: Lane | None, run_id: str = LIVE, without: str = "") -> Pipeline:
    plan = [
        PreparedEvaluator(one, NoParams(), "f", TASKS[id_])
        for id_, one in EVALUATORS.items()
        if lane in (None, one.lane) and id_ != without
    ]
    return Pipeline(plan, Resources(HashingEncoder(4)), Settings(), lane=lane, run_id=run_id, timely=False)


@dataclass(frozen=True)
class Message:
    """One about a trace. `revision` 0: as its producer sent it; above: it enriches what lay there."""

    trace_id: str
    task: str
    app: str
    environment: str
    time: datetime
    number: int
    probe: bool
    question: str
    partition: int
    offset: int
    timestamp: int
    revision: int
    readable: bool = True

    @property
    def run_id(self) -> str:
        return PROBE if self.probe else LIVE

    @property
    def record(self) -> StoredRecord:
        body: dict[str, Any] = {
            "trace_id": self.trace_id,
            "time": self.time.isoformat() if self.readable else "no time",
            "app": self.app,
            "environment": self.environment,
            "question": self.question,
            "answer": str(self.number),
            "task": self.task,
        }
        if self.probe:
            body["probe"] = "p"
        place = (TOPIC, self.partition, self.offset, self.timestamp)
        if not self.revision:
            return StoredRecord(*place, None, json.dumps(body).encode())
        return StoredRecord(
            TOPIC, 0, 10**6, 0, None, json.dumps(body).encode(), enrichment_headers(*place, self.revision)
        )

    @property
    def version(self) -> int:
        return version_of(resolve_enrichment(self.record))


def drawn(dice: random.Random, world: World) -> list[Message]:
    """Messages about `TRACES` traces; many have the timestamp of another, and its offset in another partition."""
    messages = []
    for trace in range(TRACES):
        sent: list[Message] = []
        for number in range(dice.randint(2, 5)):
            again = dice.choice(sent) if sent and dice.random() < 0.2 else None
            sent.append(
                Message(
                    f"t-{trace}",
                    dice.choice(("alpha", "beta", "gamma")),
                    dice.choice(("x", "x", "y")),
                    dice.choice(("prod", "prod", "test")),
                    world.at(dice.choice((5, 5, 50, 65, 3605))),
                    number,
                    dice.random() < 0.3,
                    dice.choice(("", "where", "when")),
                    partition=again.partition if again else number,
                    offset=again.offset if again else trace * 10 + dice.randrange(2),
                    timestamp=again.timestamp if again else int(world.start.timestamp()) * 1000 + dice.randrange(3),
                    revision=len(sent) if again else 0,
                    readable=dice.random() < 0.9,
                )
            )
        messages += sent
    return messages


def slices(dice: random.Random, messages: Sequence[Message]) -> list[list[StoredRecord]]:
    """All of them, some twice, in any order."""
    records = [one.record for one in [*messages, *dice.sample(messages, len(messages) // 5)]]
    dice.shuffle(records)
    return [records[at : at + 40] for at in range(0, len(records), 40)]


@dataclass
class Installation:
    world: World

    def take(self, records: Sequence[StoredRecord], by: Pipeline) -> None:
        ClickHouseSink(self.world.database).write(by.process(records).block)

    def watch(self) -> None:
        for lane in ("fast", "model"):
            self.world.progress(LATER_S, lane=lane, lag=0)
        jobs, now = self.world.jobs, self.world.at(LATER_S)
        tombstone_moved_traces(jobs.database, 60, now)  # in this order, as `Jobs.watch` does
        Rollup(jobs.database, jobs.evaluators, jobs.windows, jobs.term, Idleness(), jobs.retention).run(now)


def installation(database: Database) -> Installation:
    windows = WindowSettings(base_s=60, sizes_s=(60,), out_of_orderness_s=0)
    return Installation(World(database, windows=windows, evaluators=EVALUATORS))


@pytest.mark.parametrize("seed", range(2))
def test_tables_and_windows_are_those_of_the_newest_message(database: Database, seed: int) -> None:
    dice = random.Random(seed)
    site = installation(database)
    messages = drawn(dice, site.world)
    replayed = [one for one in messages if dice.random() < 0.5]
    steps = [(pipeline("fast"), part) for part in slices(dice, messages)]
    steps += [(pipeline("model"), part) for part in slices(dice, messages)]
    steps += [(pipeline(None, REPLAY), part) for part in slices(dice, replayed)]
    dice.shuffle(steps)
    for by, records in steps:
        site.take(records, by)
        if dice.random() < 0.2:
            site.watch()
    database.command(f"INSERT INTO runs (run_id, state, version) VALUES ('{REPLAY}', 'completed', 1)")
    for _ in range(2):
        site.watch()
    standing = {(message.run_id, message) for message in newest(messages)}
    standing |= {(REPLAY, message) for message in newest(replayed)}
    found, wanted = stored(database), expected(standing)
    for table, rows in wanted.items():
        assert sorted(found[table] - rows) == [], table
        assert sorted(rows - found[table]) == [], table
    assert stored_windows(database) == expected_windows(standing)


def newest(messages: Iterable[Message]) -> list[Message]:
    found: dict[str, Message] = {}
    for message in messages:
        if message.readable:
            before = found.setdefault(message.trace_id, message)
            found[message.trace_id] = max(before, message, key=lambda one: one.version)
    return list(found.values())


def selected(task: str) -> list[str]:
    return [id_ for id_, tasks in TASKS.items() if not tasks or task in tasks]


def expected(standing: Iterable[tuple[str, Message]]) -> dict[str, set[tuple[Any, ...]]]:
    found: dict[str, set[tuple[Any, ...]]] = {"traces": set(), "trace_texts": set(), "embeddings": set()}
    found["scores"] = set()
    for run_id, one in standing:
        place = (run_id, one.app, one.environment, one.time, one.trace_id)
        found["traces"].add((*place, one.version, one.task))
        found["trace_texts"].add((*place, one.version, one.question, str(one.number)))
        found["scores"] |= {(*place, one.version + 2, id_, float(one.number)) for id_ in selected(one.task)}
        if one.question:
            found["embeddings"].add((*place, one.version))
    return found


def stored(database: Database) -> dict[str, set[tuple[Any, ...]]]:
    columns = {
        "traces": ", task",
        "trace_texts": ", question, answer",
        "embeddings": "",
        "scores": ", evaluator, metrics['n'] AS n",
    }
    place = "run_id, app, environment, time, trace_id, version"
    return {
        table: {tuple(row.values()) for row in database.rows(f"SELECT {place}{more} FROM {table} FINAL")}
        for table, more in columns.items()
    }


def expected_windows(standing: Iterable[tuple[str, Message]]) -> dict[Key, tuple[int, int, float]]:
    scores: list[ScoreRow] = [
        score_row(
            one.time,
            one.trace_id,
            {"n": float(one.number)},
            evaluator=id_,
            run_id=run_id,
            app=one.app,
            environment=one.environment,
            fingerprint="f",
            model="",
            prompt_version="",
        )
        for run_id, one in standing
        for id_ in selected(one.task)
    ]
    windows = base_windows(scores, [trace_row(row) for row in scores], EVALUATORS, {}, 60)
    return {key: (one.seen, one.scored, sum(one.values)) for key, one in windows.items() if one.scored}


def stored_windows(database: Database) -> dict[Key, tuple[int, int, float]]:
    names = ", ".join(name for name in Key._fields if name != "start")
    rows = database.rows(
        f"SELECT {names}, toUnixTimestamp(start) AS at, seen, scored, sum FROM windows FINAL WHERE scored > 0"
    )
    return {
        Key(*(row["at"] if name == "start" else row[name] for name in Key._fields)): (
            row["seen"], row["scored"], row["sum"],
        )
        for row in rows
    }  # fmt: skip


def message(world: World, task: str, offset: int, **changes: Any) -> Message:
    """A small one; `changes` of its fields."""
    told: dict[str, Any] = {"partition": 0, "timestamp": int(world.start.timestamp()) * 1000, "revision": 0}
    told |= {"app": "x", "environment": "prod", "time": world.at(5), "number": offset, "probe": False}
    return Message(**{"trace_id": "t", "task": task, "question": "where", "offset": offset, **told, **changes})


def evaluators_of(database: Database) -> list[str]:
    return [row["evaluator"] for row in database.rows("SELECT evaluator FROM scores FINAL ORDER BY evaluator")]


def test_an_evaluator_that_was_switched_off_leaves_no_score_of_an_older_message(database: Database) -> None:
    site = installation(database)
    first, second = (message(site.world, "alpha", offset).record for offset in (1, 2))
    site.take([first], pipeline("fast"))
    site.watch()
    assert evaluators_of(database) == ["every", "for_alpha"]
    site.take([first], pipeline("fast", without="every"))  # the same message, read again: nothing is newer
    site.watch()
    assert evaluators_of(database) == ["every", "for_alpha"]
    site.take([second], pipeline("fast", without="every"))
    site.watch()
    assert evaluators_of(database) == ["for_alpha"]
    assert {key.metric for key in stored_windows(database)} == {"for_alpha.n"}


def test_a_lane_that_comes_later_stores_its_rows_of_the_newest_message(database: Database) -> None:
    """The tombstone of the older row is there before, and hides neither the newer row nor lets the older one back."""
    site = installation(database)
    first, second = (message(site.world, task, at).record for at, task in enumerate(("alpha", "beta")))
    for record in (first, second):
        site.take([record], pipeline("fast"))
    site.take([first], pipeline("model"))
    site.watch()
    assert evaluators_of(database) == ["every", "for_beta"]
    assert database.rows("SELECT * FROM embeddings FINAL") == []
    site.take([second], pipeline("model"))
    site.take([first], pipeline("model"))
    site.watch()
    assert evaluators_of(database) == ["every", "for_beta", "slow_beta", "slow_every"]
    assert len(database.rows("SELECT * FROM embeddings FINAL")) == 1


def test_rows_that_an_older_release_stored_are_of_the_record_that_is_read_again(database: Database) -> None:
    """Their versions have no source. Lane fast reads the topic again; what lane model stored before stays."""
    site = installation(database)
    sent = message(site.world, "alpha", 7)
    site.take([sent.record], pipeline("fast"))
    for lane in ("fast", "model"):
        block = pipeline(lane).process([sent.record]).block
        without = ~(255 << 72)
        block.traces = [row._replace(version=row.version & without) for row in block.traces]
        block.texts = [row._replace(version=row.version & without) for row in block.texts]
        block.scores = [row._replace(version=row.version & without) for row in block.scores]
        block.embeddings = [row._replace(version=row.version & without) for row in block.embeddings]
        ClickHouseSink(database).write(block)
    site.watch()
    assert evaluators_of(database) == ["every", "for_alpha", "slow_alpha", "slow_every"]
    site.take([message(site.world, "beta", 8).record], pipeline("fast"))
    site.watch()
    assert evaluators_of(database) == ["every", "for_beta"]


@pytest.mark.parametrize("place", [{}, {"app": "y"}, {"probe": True}])
def test_messages_with_one_timestamp_and_one_offset_have_an_order(database: Database, place: dict[str, Any]) -> None:
    """Of two partitions; every order of arrival, also read again, leaves the same message."""
    site = installation(database)
    orders = [order for order in itertools.product((0, 1), repeat=3) if set(order) == {0, 1}]
    for at, order in enumerate(orders):
        pair = (
            message(site.world, "alpha", at, trace_id=f"t-{at}", number=1, partition=0),
            message(site.world, "beta", at, trace_id=f"t-{at}", number=2, partition=1, **place),
        )
        for one in order:
            site.take([pair[one].record], pipeline("fast"))
    for _ in range(2):
        site.watch()
    assert {row["task"] for row in database.rows("SELECT task FROM traces FINAL")} == {"beta"}
    rows = database.rows("SELECT trace_id, groupArraySorted(9)(evaluator) AS found FROM scores FINAL GROUP BY trace_id")
    assert len(rows) == len(orders)
    assert {tuple(row["found"]) for row in rows} == {("every", "for_beta")}
