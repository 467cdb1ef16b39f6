"""Queries for dead letters: position, reason and what operators did about each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.ingest.records import Record, broker_time
from ragtide.stream.replay.runs import STARTED, Runs

State = Literal["open", "replayed", "dropped"]


class RecordPosition(NamedTuple):
    """Position of a record. `time`, the broker's, distinguishes a topic from one that was deleted and created again."""

    topic: str
    partition: int
    offset: int
    time: datetime


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter. `actor` and `marked_at` say who replayed or dropped it, and when; "" and None while open."""

    topic: str
    partition: int
    offset: int
    time: datetime
    reason: str
    stage: str
    detail: str
    size: int
    sha256: str
    state: State
    actor: str
    marked_at: datetime | None

    @property
    def position(self) -> RecordPosition:
        """Position of the record."""
        return RecordPosition(self.topic, self.partition, self.offset, self.time)


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one reason and partition; `first` and `last` are times of the broker."""

    reason: str
    topic: str
    partition: int
    count: int
    first: datetime
    last: datetime


class LetterNames(NamedTuple):
    """Reasons and topics of the letters of a run."""

    reasons: Sequence[str]
    topics: Sequence[str]


class MarkRow(NamedTuple):
    """Table `dead_letter_marks`: the newest row of a letter counts."""

    run_id: str
    topic: str
    partition: int
    offset: int
    time: datetime
    state: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filter of dead letters of one run, by the broker's time in [since, until). Empty fields match all."""

    run_id: str = LIVE
    state: State = "open"
    reasons: Sequence[str] = ()
    topics: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None

    def __str__(self) -> str:
        """The `source` of the run, without the limit: any part of the letters belongs to the same run."""
        parts = [f"reason {', '.join(self.reasons)}"] if self.reasons else []
        parts += [f"topic {', '.join(self.topics)}"] if self.topics else []
        parts += [f"from {self.since.astimezone(UTC).isoformat()}"] if self.since else []
        parts += [f"to {self.until.astimezone(UTC).isoformat()}"] if self.until else []
        return " ".join(["dead letters", *parts])


_COLUMNS = ", ".join(field.name for field in fields(Letter))
# A mark of any of the runs `marks` counts. Letters are few, so that both sides are read whole.
_LETTERS = """
(
    SELECT topic, partition, offset, time, reason, stage, detail, size, sha256,
           if(mark = '', 'open', mark) AS state, actor, if(mark = '', NULL, marked) AS marked_at
    FROM (SELECT * FROM dead_letters FINAL WHERE run_id = {run:String}) AS letter
    LEFT JOIN
    (
        SELECT topic, partition, offset, time,
               argMax(state, at) AS mark, argMax(actor, at) AS actor, max(at) AS marked
        FROM dead_letter_marks WHERE run_id IN {marks:Array(String)}
        GROUP BY topic, partition, offset, time
    ) AS done USING (topic, partition, offset, time)
)
"""


class Letters:
    """Reads dead letters and marks what became of them; raises as `Database` does."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.database = database
        self._clock = clock

    def find(self, wanted: Wanted, marks: Sequence[str] = ()) -> list[Letter]:
        """Find letters, newest first. Letters replayed or dropped in one of the runs `marks` are not open."""
        where, bound = _condition(wanted, marks)
        order = "ORDER BY time DESC, topic, partition, offset DESC"
        found = self.database.rows(f"SELECT {_COLUMNS} FROM {_LETTERS} {where} {order} {_limit(wanted)}", bound)
        return [Letter(**row) for row in found]

    def to_replay(self, wanted: Wanted, run_id: str) -> list[Letter]:
        """Find the open letters, without those that an unfinished replay into `run_id` has stored."""
        left = Runs(self.database).find(run_id)
        return self.find(wanted, [run_id] if left is not None and left.state == STARTED else [])

    def groups(self, wanted: Wanted) -> list[Group]:
        """Count letters by reason and partition, the largest group first. The limit counts groups."""
        where, bound = _condition(wanted, ())
        columns = "count() AS count, min(time) AS first, max(time) AS last"
        by = "GROUP BY reason, topic, partition ORDER BY count DESC, reason, topic, partition"
        sql = f"SELECT reason, topic, partition, {columns} FROM {_LETTERS} {where} {by} {_limit(wanted)}"
        return [Group(**row) for row in self.database.rows(sql, bound)]

    def at(self, topic: str, partition: int, offset: int, run_id: str) -> list[Letter]:
        """Find the letters at an offset in any state: several if the topic was deleted and created again."""
        bound = {"run": run_id, "marks": [run_id], "topic": topic, "partition": partition, "offset": offset}
        where = "topic = {topic:String} AND partition = {partition:UInt32} AND offset = {offset:UInt64}"
        sql = f"SELECT {_COLUMNS} FROM {_LETTERS} WHERE {where} ORDER BY time DESC"
        return [Letter(**row) for row in self.database.rows(sql, bound)]

    def names(self, run_id: str) -> LetterNames:
        """Every reason and topic that a letter of the run has, in whatever state."""
        sql = """SELECT groupUniqArray(toString(reason)) AS reasons, groupUniqArray(toString(topic)) AS topics
            FROM dead_letters WHERE run_id = {run:String}"""
        (row,) = self.database.rows(sql, {"run": run_id})
        return LetterNames(row["reasons"], row["topics"])

    def runs(self) -> list[str]:
        """Every run, those without letters too."""
        rows = self.database.rows("SELECT run_id FROM runs FINAL UNION DISTINCT SELECT run_id FROM dead_letters")
        return [row["run_id"] for row in rows]

    def mark(self, positions: Iterable[RecordPosition], run_id: str, state: State, actor: str) -> None:
        """Mark the letters. Durable when this returns; idempotent."""
        at = self._clock()
        self.database.insert(
            "dead_letter_marks", [MarkRow(run_id, *position, state, actor, at) for position in positions]
        )


def position_of(record: Record) -> RecordPosition:
    """Position of the record. Raises `ValueError`, `OverflowError` or `OSError` for an impossible time."""
    return RecordPosition(record.topic, record.partition, record.offset, broker_time(record))


def _condition(wanted: Wanted, marks: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The WHERE clause, and the parameters of it and of `_LETTERS`."""
    conditions = {
        "state = {state:String}": ("state", wanted.state),
        "reason IN {reasons:Array(String)}": ("reasons", list(wanted.reasons)),
        "topic IN {topics:Array(String)}": ("topics", list(wanted.topics)),
        "time >= {since:DateTime64(3, 'UTC')}": ("since", wanted.since),
        "time < {until:DateTime64(3, 'UTC')}": ("until", wanted.until),
    }
    given = {sql: (name, value) for sql, (name, value) in conditions.items() if value}
    bound = {"run": wanted.run_id, "marks": [wanted.run_id, *marks], "limit": wanted.limit or 0}
    return f"WHERE {' AND '.join(given)}", {**bound, **dict(given.values())}


def _limit(wanted: Wanted) -> str:
    return "LIMIT {limit:UInt64}" if wanted.limit is not None else ""
