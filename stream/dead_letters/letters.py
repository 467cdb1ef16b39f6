"""What the tables know of dead letters: where each lay, why it was set aside, and what became of it since."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.ingest.records import Record, broker_time
from ragtide.stream.replay.runs import STARTED, Runs

State = Literal["open", "replayed", "dropped"]


class Place(NamedTuple):
    """Where a record lay; `time` is the broker's and tells two topics of one name apart, made one after the other."""

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
    def place(self) -> Place:
        """Where it lay."""
        return Place(self.topic, self.partition, self.offset, self.time)


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one reason and partition; `first` and `last` are times of the broker."""

    reason: str
    topic: str
    partition: int
    count: int
    first: datetime
    last: datetime


class MarkRow(NamedTuple):
    """Table `dead_letter_marks`: the newest of a letter holds."""

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
    """Which letters of a run: from `since` on and before `until` by the broker's time; nothing given, every one."""

    run_id: str = LIVE
    state: State = "open"
    reasons: Sequence[str] = ()
    topics: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    limit: int | None = None

    def __str__(self) -> str:
        """As `runs` tells it; without the limit, since any part of them belongs to the same run."""
        told = [f"reason {', '.join(self.reasons)}"] if self.reasons else []
        told += [f"topic {', '.join(self.topics)}"] if self.topics else []
        told += [f"from {self.since.astimezone(UTC).isoformat()}"] if self.since else []
        told += [f"to {self.until.astimezone(UTC).isoformat()}"] if self.until else []
        return " ".join(["dead letters", *told])


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
        self._database = database
        self._clock = clock

    def find(self, wanted: Wanted, marks: Sequence[str] = ()) -> list[Letter]:
        """Those wanted, the newest first; what was replayed or dropped in one of the runs `marks` is not open."""
        where, bound = _condition(wanted, marks)
        order = "ORDER BY time DESC, topic, partition, offset DESC"
        found = self._database.rows(f"SELECT {_COLUMNS} FROM {_LETTERS} {where} {order} {_limit(wanted)}", bound)
        return [Letter(**row) for row in found]

    def to_replay(self, wanted: Wanted, run_id: str) -> list[Letter]:
        """The open ones; where a replay into another run was stopped, without those that it stored before."""
        left = Runs(self._database).find(run_id)
        return self.find(wanted, [run_id] if left is not None and left.state == STARTED else [])

    def groups(self, wanted: Wanted) -> list[Group]:
        """Those wanted by reason and partition, the most numerous first; a limit is one of groups."""
        where, bound = _condition(wanted, ())
        counted = "count() AS count, min(time) AS first, max(time) AS last"
        by = "GROUP BY reason, topic, partition ORDER BY count DESC, reason, topic, partition"
        sql = f"SELECT reason, topic, partition, {counted} FROM {_LETTERS} {where} {by} {_limit(wanted)}"
        return [Group(**row) for row in self._database.rows(sql, bound)]

    def at(self, topic: str, partition: int, offset: int, run_id: str) -> list[Letter]:
        """Whatever its state; several where a topic was made anew under its name."""
        bound = {"run": run_id, "marks": [run_id], "topic": topic, "partition": partition, "offset": offset}
        where = "topic = {topic:String} AND partition = {partition:UInt32} AND offset = {offset:UInt64}"
        sql = f"SELECT {_COLUMNS} FROM {_LETTERS} WHERE {where} ORDER BY time DESC"
        return [Letter(**row) for row in self._database.rows(sql, bound)]

    def mark(self, places: Iterable[Place], run_id: str, state: State, actor: str) -> None:
        """Durable when this returns; twice is as once."""
        at = self._clock()
        self._database.insert("dead_letter_marks", [MarkRow(run_id, *place, state, actor, at) for place in places])


def place_of(record: Record) -> Place:
    """Where it lay, as the tables have it; raises `ValueError`, `OverflowError` or `OSError` for no possible time."""
    return Place(record.topic, record.partition, record.offset, broker_time(record))


def _condition(wanted: Wanted, marks: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """A WHERE and what the server binds into it and into `_LETTERS`."""
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
