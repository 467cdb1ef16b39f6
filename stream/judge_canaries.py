"""Have judges score canaries, and store the scores.

A run stores its rows portion by portion, so that a run that was interrupted continues where it stopped. Calls go past
the cache of replies, which would hide every change. They count, and are limited, as those of application
`ragtide-canaries`.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from ragtide.drift.canaries import CanaryScoreRow
from ragtide.drift.job_history import RunResult, StopRequested
from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.evaluators.judge.calls import LEFT_OUT, THROTTLED
from ragtide.evaluators.judge.canaries import BUILTIN, FORMS, Canary, Form, canary, changes_form_only, in_form
from ragtide.evaluators.judge.settings import JudgeCacheSettings
from ragtide.evaluators.outcome import Failed, Outcome, Scored
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.assembly import PipelineSetup, assemble, restrict
from ragtide.stream.ingest.decoding import Limits, decode_trace
from ragtide.stream.ingest.json_lines import read_file
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.judge import JudgeClient, Usage
from ragtide.stream.judge_metrics import count_judge
from ragtide.stream.settings.loader import Settings
from ragtide.stream.settings.sampling import SamplingSettings
from ragtide.stream.telemetry.registry import Telemetry

log = logging.getLogger(__name__)

MIN_CANARIES, MAX_CANARIES = 8, 200  # fewer cannot show a shift
_PORTION = 8  # canaries between two inserts
_THROTTLED_TRIES = 6
_THROTTLED_PAUSE_S = 10.0  # after which a limit of calls a minute admits a burst again
_RETRIED = frozenset({"judge_unavailable", "judge_timeout", "judge_throttled"})  # the endpoint may be back soon


def load_canaries(settings: Settings) -> list[Canary]:
    """Load the canaries of the settings. Raises `ConfigError` with the line of what cannot be used."""
    path = settings.evaluators.judge.canaries.file
    name = "evaluators.judge.canaries.file" if path is None else f"evaluators.judge.canaries.file: {path}"
    limits = Limits.of(settings.ingest, settings.retention, timely=False)
    found: dict[str, Canary] = {}
    try:
        with (BUILTIN if path is None else path).open("rb") as file:
            for number, line in read_file(file, name, limits.max_bytes):
                trace = decode_trace(StoredRecord(name, 0, number, 0, None, line), limits).trace
                if trace.trace_id in found:
                    raise ConfigError(f"{name}: line {number}: another canary has its trace_id; give each its own")
                found[trace.trace_id] = canary(trace)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {type(error).__name__}") from None
    except BadRecord as fault:
        detail = fault.detail or fault.reason
        raise ConfigError(f"{name}: line {number}: {detail}; `ragtide validate` shows every fault") from None
    if not MIN_CANARIES <= len(found) <= MAX_CANARIES:
        raise ConfigError(f"{name} has {len(found)} canaries; {MIN_CANARIES} to {MAX_CANARIES} are wanted")
    return list(found.values())


class RunCounts(NamedTuple):
    """Rows of a run that were stored now. `is_complete` is False if a limit or the endpoint left some out."""

    scored: int
    failed: int
    is_complete: bool
    usage: Mapping[str, Usage]


@dataclass(slots=True)
class CanaryScorer:
    """Scores canaries with every judge that the settings turn on. `pause` sleeps, `stopped` ends a run early.

    `evaluators` are all that are known; `only` restricts the judges to these.
    """

    settings: Settings
    database: Database
    canaries: Sequence[Canary]
    evaluators: Mapping[str, Evaluator]
    only: Collection[str] = ()
    telemetry: Telemetry | None = None
    stopped: Callable[[], bool] = lambda: False
    pause: Callable[[float], None] = time.sleep
    max_usd: float | None = None

    def run(self, run_at: datetime) -> RunCounts:
        """Score what the run has no row of yet, and store it. Raises `StopRequested` soon after `stopped`.

        Raises `ConfigError` if no judge can run.
        """
        made = self._assemble()
        with closing(made.resources):
            judges = [one for one in made.plan.prepared if one.evaluator.judge is not None and self._is_judged(one)]
            if not judges:
                raise ConfigError("no judge can run; `ragtide evaluators` shows why")
            if self.telemetry is not None and isinstance(made.resources.judge, JudgeClient):
                made.resources.judge.report_to(partial(count_judge, self.telemetry))
            judges = [self._on_every_task(one) for one in judges]
            run = _Run(self, made, run_at, _done(self.database, run_at))
            for at in range(0, len(self.canaries), _PORTION):
                run.score(self.canaries[at : at + _PORTION], judges, at)
            return RunCounts(
                run.counts["scored"], run.counts["failed"], not run.is_open, made.judge_usage_by_endpoint()
            )

    def _assemble(self) -> PipelineSetup:
        settings = restrict(self.settings, tuple(self.only), ("judge",), self.evaluators)
        judge = settings.evaluators.judge.model_copy(update={"cache": JudgeCacheSettings()})
        changed = {
            "evaluators": settings.evaluators.model_copy(update={"judge": judge}),
            "sampling": SamplingSettings(),
            "topics": settings.topics.model_copy(update={"enabled": False}),
            "privacy": settings.privacy.model_copy(update={"store_embeddings": False}),
        }
        return assemble(
            settings.model_copy(update=changed),
            "judge",
            evaluators=self.evaluators,
            database=self.database,
            max_usd=self.max_usd,
        )

    def _is_judged(self, one: PreparedEvaluator) -> bool:
        """Tell whether sampling gives the judge any trace. Agents have no canaries: what they find changes."""
        sampling, evaluator = self.settings.sampling, one.evaluator
        if evaluator.method == "agent":
            return False
        own = sampling.evaluators.get(evaluator.id, sampling.lanes.get(evaluator.lane, 1.0))
        ruled = (rule.rate for rule in sampling.rules if not rule.evaluators or evaluator.id in rule.evaluators)
        return any(rate > 0 for rate in (own, *ruled))

    def _on_every_task(self, one: PreparedEvaluator) -> PreparedEvaluator:
        """Let a judge of tasks that too few canaries have score all of them."""
        enough = sum(one.selects(other.trace) for other in self.canaries) >= MIN_CANARIES
        return one if enough else replace(one, tasks=())


_Key = tuple[str, str, str, str, str]  # evaluator, fingerprint, canary, form, content


@dataclass(slots=True)
class _Run:
    """One run: `done` are the keys of its stored rows; `is_open` if some have no row for good."""

    scorer: CanaryScorer
    made: PipelineSetup
    run_at: datetime
    done: set[_Key]
    counts: Counter[str] = field(default_factory=Counter)
    is_open: bool = False

    def score(self, bases: Sequence[Canary], judges: Sequence[PreparedEvaluator], first: int) -> None:
        """Score canaries, and each in one other form; `first` is the number of the first one."""
        self._score_all([(base, base) for base in bases], judges)
        if self.scorer.settings.evaluators.judge.canaries.forms:
            pairs = [(base, in_form(base, self._form_of(at))) for at, base in enumerate(bases, start=first)]
            self._score_all(pairs, judges)

    def _form_of(self, number: int) -> Form:
        """Return the form of a canary in this run: after as many runs as there are forms it had each."""
        runs = int(self.run_at.timestamp() // self.scorer.settings.evaluators.judge.canaries.every_s)
        return FORMS[(number + runs) % len(FORMS)]

    def _score_all(self, pairs: Sequence[tuple[Canary, Canary]], judges: Sequence[PreparedEvaluator]) -> None:
        """Score the second canary of each pair, with the judges that may be compared with the first."""
        for _ in range(_THROTTLED_TRIES):
            if self.scorer.stopped():
                raise StopRequested("scoring canaries")
            throttled = [self._score(some, group) for some, group in self._missing(pairs, judges)]
            if not any(throttled):
                return
            self.scorer.pause(_THROTTLED_PAUSE_S)
        self.is_open = True

    def _missing(
        self, pairs: Sequence[tuple[Canary, Canary]], judges: Sequence[PreparedEvaluator]
    ) -> Iterator[tuple[tuple[PreparedEvaluator, ...], list[Canary]]]:
        """Yield the judges without a row, with the canaries that they lack."""
        groups: dict[tuple[str, ...], list[Canary]] = {}
        by_id = {one.evaluator.id: one for one in judges}
        for base, other in pairs:
            lacking = tuple(
                one.evaluator.id
                for one in judges
                if _key(one, other) not in self.done
                and one.selects(other.trace)
                and (not other.form or changes_form_only(one.evaluator, base, other))
            )
            if lacking:
                groups.setdefault(lacking, []).append(other)
        for ids, group in groups.items():
            yield tuple(by_id[id] for id in ids), group

    def _score(self, judges: Sequence[PreparedEvaluator], group: Sequence[Canary]) -> bool:
        """Score and store; return whether the limit of calls a minute left some out."""
        outcomes = run_all(judges, [one.trace for one in group], self.made.resources.batch())
        rows: list[CanaryScoreRow] = []
        throttled = False
        for judge, of_judge in zip(judges, outcomes, strict=True):
            for one, outcome in zip(group, of_judge, strict=True):
                reason = getattr(outcome, "reason", "")
                if reason in LEFT_OUT:
                    throttled |= reason == THROTTLED.reason
                    self.is_open |= reason != THROTTLED.reason
                    continue
                self.done.add(_key(judge, one))
                if isinstance(outcome, (Scored, Failed)):
                    rows.append(self._row(judge, one, outcome))
        self.scorer.database.insert("canary_scores", rows)
        return throttled

    def _row(self, judge: PreparedEvaluator, one: Canary, outcome: Outcome) -> CanaryScoreRow:
        status, reason = ("failed", outcome.kind) if isinstance(outcome, Failed) else ("scored", "")
        self.is_open |= reason in _RETRIED
        self.counts[status] += 1
        if self.scorer.telemetry is not None:
            self.scorer.telemetry.canary_scores.labels(judge.evaluator.id, status).inc()
        endpoint = self.scorer.settings.evaluators.judge.endpoint_of(judge.evaluator.id) or ""
        metrics = outcome.metrics if isinstance(outcome, Scored) else {}
        return CanaryScoreRow(
            evaluator=judge.evaluator.id,
            fingerprint=judge.fingerprint,
            run_at=self.run_at,
            canary=one.name,
            form=one.form,
            content=one.content,
            direction=one.direction,
            endpoint=endpoint,
            status=status,
            reason=reason,
            metrics=metrics,
        )


def _key(judge: PreparedEvaluator, one: Canary) -> _Key:
    return judge.evaluator.id, judge.fingerprint, one.name, one.form, one.content


def _done(database: Database, run_at: datetime) -> set[_Key]:
    """Load the rows of a run that are not to be tried again."""
    rows = database.rows(
        "SELECT evaluator, toString(fingerprint) AS version, canary, form, content, reason FROM canary_scores FINAL "
        "WHERE run_at = {run_at:DateTime64(3, 'UTC')}",
        {"run_at": run_at},
    )
    return {
        (row["evaluator"], row["version"], row["canary"], row["form"], row["content"])
        for row in rows
        if row["reason"] not in _RETRIED
    }


_RETRY = timedelta(minutes=10)  # after a run that limits or the endpoint left incomplete
_MOST_TRIES = 4  # in a row that score nothing


@dataclass(slots=True)
class CanaryJob:
    """Scores canaries once in each interval. A run that is left incomplete is tried again within its interval."""

    settings: Settings
    database: Database
    telemetry: Telemetry
    stopped: Callable[[], bool]
    canaries: Sequence[Canary] = field(init=False)
    _run_at: datetime | None = None
    _next_at: datetime | None = None  # of the run at `_run_at`; None: it is over
    _tries: int = 0

    def __post_init__(self) -> None:
        """Raise `ConfigError` at the start of the process for canaries that cannot be used."""
        self.canaries = load_canaries(self.settings)

    def run(self, evaluators: Mapping[str, Evaluator], now: datetime) -> RunResult:
        """Score the canaries if that is due. `now` is the server's time."""
        run_at = run_start(now, self.settings.evaluators.judge.canaries.every_s)
        if run_at != self._run_at:
            self._run_at, self._next_at, self._tries = run_at, now, 0
        if self._next_at is None or now < self._next_at:
            return RunResult(read=0, raised=0)
        self._next_at = now + _RETRY  # also if it fails
        scorer = CanaryScorer(
            self.settings, self.database, self.canaries, evaluators, telemetry=self.telemetry, stopped=self.stopped
        )
        try:
            found = scorer.run(run_at)
        except ConfigError:  # no call was sent: fail at every run, so that it becomes a problem
            self._next_at = now
            raise
        self._tries = 0 if found.scored else self._tries + 1
        if found.is_complete or self._tries >= _MOST_TRIES:
            self._next_at = None
        return RunResult(read=found.scored + found.failed, raised=0)


def run_start(now: datetime, every_s: float) -> datetime:
    """Return the start of the scheduled run that contains `now`: a multiple of the interval since 1970."""
    return datetime.fromtimestamp(now.timestamp() // every_s * every_s, UTC)
