"""Traffic, workers' progress and jobs on the real engine, at times of the test's choosing."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from ragtide.drift.checks.engine import Check
from ragtide.drift.checks.run import run_check
from ragtide.drift.jobs import CycleResult, JobContext
from ragtide.drift.leadership import Term, elect
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.report import CheckResult
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.evaluators.outcome import Outcome
from ragtide.evaluators.parts import Combine
from ragtide.evaluators.spec import Domain, Evaluator, Lane, Method, Metric, NoParams, Shared, evaluator
from ragtide.sinks.clickhouse.database import Database, Row
from ragtide.sinks.rows import LIVE, DirtyRow, ScoreRow, TextRow, TraceRow
from ragtide.sinks.settings import RetentionSettings
from ragtide.sinks.version import pack

_numbers = itertools.count(1)


@dataclass(frozen=True)
class _Answer:
    answer: str | None


def made(
    id_: str,
    metrics: Iterable[Metric],
    *,
    method: Method = "rule",
    domain: Domain = "generation",
    combine: Combine | None = None,
) -> Evaluator:
    """An evaluator of that shape; nobody runs it here."""

    @evaluator(id_, version=1, domain=domain, method=method, inputs=_Answer, metrics=metrics, combine=combine)
    def score(rows: Sequence[_Answer], shared: Shared, params: NoParams) -> Iterable[Outcome]:
        """Of no use."""
        raise AssertionError("not run in these tests")

    return score


QUALITY = made("quality", [Metric("good", threshold=0.75, primary=True), Metric("other")])
LEAK = made("leak", [Metric("passes", threshold=0.5, primary=True)], domain="privacy")
CHECKED = made("checked", [Metric("passes", threshold=0.5, primary=True)])
SPEED = made("speed", [Metric("seconds", high=float("inf"), better="lower", unit="s", primary=True)])
MODEL = made("meaning", [Metric("near", threshold=0.75, primary=True)], method="embedding")
EVALUATORS = {one.id: one for one in (QUALITY, LEAK, CHECKED, SPEED, MODEL)}


class Heartbeat(NamedTuple):
    """A row of `progress` with its time."""

    lane: str
    topic: str
    partition: int
    worker: str
    newest: datetime
    offset: int
    lag: int
    heartbeat_at: datetime


def score_row(
    time: datetime,
    trace_id: str,
    metrics: Mapping[str, float] | None = None,
    *,
    evaluator: str = "quality",
    run_id: str = LIVE,
    app: str = "shop",
    environment: str = "prod",
    version: int | None = None,
    status: str = "scored",
    reason: str = "",
    categories: Mapping[str, str] | None = None,
    parts: Mapping[str, float] | None = None,
    evidence: str = "[]",
    fingerprint: str = "f1",
    model: str = "m1",
    prompt_version: str = "p1",
    segments: Mapping[str, str] | None = None,
    is_deleted: int = 0,
) -> ScoreRow:
    return ScoreRow(
        run_id=run_id,
        app=app,
        environment=environment,
        evaluator=evaluator,
        time=time,
        trace_id=trace_id,
        version=next(_numbers) if version is None else version,
        status=status,
        reason=reason,
        metrics=metrics or {},
        categories=categories or {},
        parts=parts or {},
        evidence=evidence,
        findings=[],
        fingerprint=fingerprint,
        weight=1.0,
        model=model,
        prompt_version=prompt_version,
        segments=segments or {},
        is_deleted=is_deleted,
    )


def trace_row(score: ScoreRow) -> TraceRow:
    """The trace that the score speaks of."""
    return TraceRow(
        run_id=score.run_id,
        app=score.app,
        environment=score.environment,
        time=score.time,
        trace_id=score.trace_id,
        version=score.version,
        session_id="",
        user_id="",
        task="",
        probe="",
        model=score.model,
        model_requested=score.model,
        provider="",
        prompt_version=score.prompt_version,
        latency_s=None,
        first_token_s=None,
        cost_usd=None,
        input_tokens=None,
        output_tokens=None,
        error="",
        chunk_ids=[],
        categories=[],
        segments=score.segments,
        relationships="[]",
        test_case="{}",
        topic="rag.traces",
        partition=0,
        offset=0,
        is_deleted=score.is_deleted,
    )


def text_row(score: ScoreRow, question: str, answer: str = "") -> TextRow:
    """What was said in the trace that the score speaks of."""
    return TextRow(
        run_id=score.run_id,
        app=score.app,
        environment=score.environment,
        time=score.time,
        trace_id=score.trace_id,
        version=score.version,
        question=question,
        answer=answer,
        chunk_ids=[],
        chunks=[],
        expected=[],
        error_message="",
        attributes="{}",
    )


@dataclass
class World:
    """One database, one leader; `start` is a whole hour, so that windows of every size begin there."""

    database: Database
    windows: WindowSettings = field(default_factory=lambda: WindowSettings(base_s=60, out_of_orderness_s=0))
    rules: RuleSettings = field(default_factory=lambda: RuleSettings(min_sample=10, k=2, m=3, resolve_after=2))
    evaluators: Mapping[str, Evaluator] = field(default_factory=lambda: EVALUATORS)
    settings: JobSettings = field(default_factory=JobSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    start: datetime = field(
        default_factory=lambda: datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    )
    term: Term = field(init=False)
    jobs: JobContext = field(init=False)

    def __post_init__(self) -> None:
        self.elect()

    def elect(self) -> JobContext:
        """A new leader; the jobs of the one before are given back: a zombie."""
        zombie = getattr(self, "jobs", None)
        self.term = elect(self.database, f"leader-{next(_numbers)}", sleep=lambda s: None)
        self.jobs = JobContext(
            self.database, self.evaluators, self.windows, self.rules, self.settings, self.term, self.retention
        )
        return zombie or self.jobs

    def at(self, seconds: float) -> datetime:
        return self.start + timedelta(seconds=seconds)

    def store(self, rows: Sequence[ScoreRow], lane: str = "fast", *, traces: bool = True) -> None:
        """As a worker stores them: rows first, then the marks of their windows."""
        if traces:
            seen = {(row.run_id, row.app, row.environment, row.time, row.trace_id): trace_row(row) for row in rows}
            self.database.insert("traces", list(seen.values()))
        self.database.insert("scores", rows)
        base_s = self.windows.base_s
        mark = f"mark-{next(_numbers)}"
        windows = {(row.run_id, row.app, row.environment, int(row.time.timestamp()) // base_s * base_s) for row in rows}
        self.database.insert(
            "dirty_windows",
            [DirtyRow(run, app, env, lane, datetime.fromtimestamp(s, UTC), mark) for run, app, env, s in windows],
        )

    def scores(
        self,
        second: float,
        values: Sequence[float],
        *,
        key: str = "good",
        evaluator: str = "quality",
        lane: str = "fast",
        name: str = "",
        **fields: Any,
    ) -> list[ScoreRow]:
        """One trace per value, a tenth of a second apart from `second` on; stored and marked."""
        rows = [
            score_row(
                self.at(second + i / 10),
                f"{name or f't{next(_numbers)}'}-{i}",
                {key: value},
                evaluator=evaluator,
                **fields,
            )
            for i, value in enumerate(values)
        ]
        self.store(rows, lane)
        return rows

    def progress(
        self,
        newest_s: float,
        *,
        lane: Lane = "fast",
        topic: str = "rag.traces",
        partition: int = 0,
        lag: int = 1,
        offset: int | None = None,
        heartbeat_s: float | None = None,
    ) -> None:
        """A worker says how far it is; heartbeat at the same second unless told otherwise."""
        at = self.at(newest_s if heartbeat_s is None else heartbeat_s)
        self.database.insert(
            "progress",
            [
                Heartbeat(
                    lane,
                    topic,
                    partition,
                    "w",
                    self.at(newest_s),
                    next(_numbers) if offset is None else offset,
                    lag,
                    at,
                )
            ],
        )

    def watch(self, second: float) -> CycleResult:
        """One round of the jobs, the clock at that second."""
        return self.jobs.run_cycle(self.at(second))

    def advance(self, second: float) -> CycleResult:
        """Everything up to `second` is stored, says the worker of lane fast; then a round of the jobs."""
        self.progress(second)
        return self.watch(second)

    def check(self, check: Check, now: datetime, rules: RuleSettings | None = None, **changed: Any) -> CheckResult:
        """One run of a check, by these rules where others than the world's are given."""
        ctx = replace(self.jobs.check_context(), rules=rules or self.rules, **changed)
        return run_check(check, ctx, now)

    def problems(self) -> list[Problem]:
        return load_problems(self.database, states=("pending", "open", "resolved"), every_episode=True)

    def open(self) -> list[Problem]:
        return load_problems(self.database, states=("open",))


def version(offset: int, revision: int = 0) -> int:
    """As the stream packs them."""
    return pack(1_700_000_000_000, offset, revision)


@contextmanager
def dies_before(table: str) -> Iterator[None]:
    """What runs inside is killed where it would store rows of that table."""
    insert = Database.insert

    def dies(self: Database, into: str, rows: Sequence[Row]) -> None:
        if into == table:
            raise KeyboardInterrupt
        insert(self, into, rows)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Database, "insert", dies)
        with pytest.raises(KeyboardInterrupt):
            yield
