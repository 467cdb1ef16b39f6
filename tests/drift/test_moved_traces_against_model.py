"""Traces that move, change their segment or come late, under changing leaders and zombies: windows are the model's."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from ragtide.drift.jobs import JobContext
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.moved_traces import tombstone_moved_traces
from ragtide.drift.windows.rollup import Rollup
from ragtide.drift.windows.watermark import Idleness
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow, TraceRow
from tests.drift.windows_model import Key, base_windows
from tests.drift.world import EVALUATORS, World, score_row, trace_row
from tests.drift.world import version as packed

pytestmark = pytest.mark.clickhouse

SEGMENTS: dict[str, tuple[str, ...]] = {"tenant": ("a", "b")}
LATER_S = (
    3_700  # than every window; and before the server's own time, by which `tombstone_moved_traces` knows what is new
)
_EXAMPLES = itertools.count(1)

sent = st.fixed_dictionaries(
    {
        "trace": st.integers(0, 3),
        "second": st.sampled_from([0, 5, 59, 60, 61, 119, 120, 3599, 3600]),
        "app": st.sampled_from(["x", "y"]),
        "tenant": st.sampled_from(["a", "b", "c"]),
        "value": st.integers(0, 100).map(lambda i: i / 100),
        "age": st.sampled_from([0, 0, 0, 1, 2]),  # messages that overtook it
        "slow": st.booleans(),  # lane `model` stores it only before the last round
    }
)
steps = st.lists(st.one_of(sent, sent, st.sampled_from(["watch", "watch", "elect", "zombie"])), min_size=4, max_size=10)


def message(second: int, *, app: str = "x", tenant: str = "a", age: int = 0) -> dict[str, Any]:
    """One of the same trace; its value tells the minute."""
    return {
        "trace": 0,
        "second": second,
        "app": app,
        "tenant": tenant,
        "value": second / 4000,
        "age": age,
        "slow": False,
    }


MOVES: list[str | Mapping[str, Any]] = [
    *(message(5), "watch", message(61), "watch", message(61, app="y"), "elect", "zombie", "watch"),
    *(message(62, app="y", tenant="b"), "zombie", "watch", message(3599, age=1), "zombie", "elect", "watch"),
]


# A zombie stores what loses against the leader's window, and takes the mark back: the leader or the next one repairs.
TAKEN_BACK: list[str | Mapping[str, Any]] = [message(5), "elect", "watch", message(6), "zombie", "watch"]
TAKEN_BACK_BEFORE_AN_ELECTION: list[str | Mapping[str, Any]] = [
    message(5),
    "elect",
    "watch",
    message(6),
    "zombie",
    "elect",
    "watch",
]


@dataclass
class Story:
    """What workers stored and leaders did; `number` keeps an example's rows apart."""

    world: World
    number: int
    scores: list[ScoreRow] = field(default_factory=list)
    waiting: list[ScoreRow] = field(default_factory=list)
    zombies: list[JobContext] = field(default_factory=list)
    _seconds: "itertools.count[int]" = field(default_factory=lambda: itertools.count(LATER_S, 10))

    def send(self, message: Mapping[str, Any]) -> None:
        name = f"{self.number}-{message['trace']}"
        offset = 10 * (len(self.scores) + 1) - 25 * message["age"]
        rows = [
            score_row(
                self.world.at(message["second"]),
                name,
                {key: message["value"]},
                evaluator=evaluator,
                app=f"{message['app']}{self.number}",
                segments={"tenant": message["tenant"]},
                version=packed(max(offset, 0) * 2 + 1),
            )
            for evaluator, key in (("quality", "good"), ("meaning", "near"))
        ]
        if any(row.version == rows[0].version for row in self.scores):
            return  # no two messages have one version
        self.scores += rows
        self.world.store(rows[:1])
        if message["slow"]:
            self.waiting += rows[1:]
        else:
            self.world.store(rows[1:], "model", traces=False)

    def watch(self, jobs: JobContext) -> None:
        second = next(self._seconds)
        for lane in ("fast", "model"):
            self.world.progress(second, lane=lane)
        now = self.world.at(second)
        tombstone_moved_traces(jobs.database, jobs.windows.base_s, now)  # in this order, as `JobContext.watch` does
        Rollup(jobs.database, jobs.evaluators, jobs.windows, jobs.term, Idleness(), jobs.retention).run(now)

    def step(self, step: str | Mapping[str, Any]) -> None:
        if isinstance(step, Mapping):
            self.send(step)
        elif step == "elect":
            self.zombies.append(self.world.elect())
        elif step == "zombie" and self.zombies:
            self.watch(self.zombies[-1])
        else:
            self.watch(self.world.jobs)

    def end(self) -> None:
        if self.waiting:
            self.world.store(self.waiting, "model", traces=False)
        for _ in range(2):
            self.watch(self.world.jobs)


@settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(story=MOVES)
@example(story=TAKEN_BACK)
@example(story=TAKEN_BACK_BEFORE_AN_ELECTION)
@given(story=steps)
def test_windows_are_those_of_where_each_trace_stands_last(
    database: Database, story: Sequence[str | Mapping[str, Any]]
) -> None:
    frames = WindowSettings(base_s=60, sizes_s=(60,), out_of_orderness_s=0, segments=SEGMENTS)
    world = World(database, windows=frames)
    told = Story(world, next(_EXAMPLES))
    for step in story:
        told.step(step)
    told.end()
    assert _stored(database, told.number) == _expected(told.scores)


def _expected(scores: Sequence[ScoreRow]) -> dict[Key, tuple[int, int, float]]:
    """Of each trace only what stands where its newest message put it."""
    newest: dict[str, ScoreRow] = {}
    for row in scores:
        if row.trace_id not in newest or row.version > newest[row.trace_id].version:
            newest[row.trace_id] = row
    kept = [row for row in scores if _place(row) == _place(newest[row.trace_id])]
    traces: list[TraceRow] = [trace_row(row) for row in kept]
    windows = base_windows(kept, traces, EVALUATORS, SEGMENTS, 60)
    told = {key: (one.seen, one.scored, round(sum(one.values), 6)) for key, one in windows.items()}
    return {key: numbers for key, numbers in told.items() if numbers[1]}


def _place(row: ScoreRow) -> tuple[str, int]:
    return row.app, int(row.time.timestamp()) // 60


def _stored(database: Database, number: int) -> dict[Key, tuple[int, int, float]]:
    rows = database.rows(
        f"SELECT {', '.join(name for name in Key._fields if name != 'start')}, toUnixTimestamp(start) AS at, "
        "seen, scored, sum FROM windows FINAL WHERE app IN {apps:Array(String)} AND size_s = 60 AND scored > 0",
        {"apps": [f"x{number}", f"y{number}"]},
    )
    return {
        Key(*(row["at"] if name == "start" else row[name] for name in Key._fields)): (
            row["seen"], row["scored"], round(row["sum"], 6),
        )
        for row in rows
    }  # fmt: skip
