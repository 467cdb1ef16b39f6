"""Schedule the scoring of canaries: once in each interval, in parts of some minutes, with few tries."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ragtide.drift import cursors
from ragtide.drift.job_history import RunResult, StopRequested
from ragtide.evaluators.errors import RagtideError, Transient
from ragtide.evaluators.judge.canaries import Canary
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.judge_canaries import CanaryScorer, RunCounts, load_canaries
from ragtide.stream.settings.loader import Settings
from ragtide.stream.telemetry.registry import Telemetry

_RETRY = timedelta(minutes=10)  # after a run that limits, the endpoint or an error left incomplete
_MOST_TRIES = 4  # in a row that score nothing or fail
_SLICE_S = 120.0  # of a run of the job, plus the time of a portion
_CURSOR = "canaries"
_STATES = 2 * (_MOST_TRIES + 1)  # of a pass, in its cursor: tries, and whether the last one failed


@dataclass(slots=True)
class _Pass:
    """The state of the run at `run_at`: a pass over all canaries, which several runs of the job share.

    `next_at` is when to go on with canary `first`; None: the run is over. `tries` are passes in a row that scored
    nothing or failed, and `failure` is the error of the last one.
    """

    run_at: datetime
    next_at: datetime | None
    first: int = 0
    scored: int = 0
    is_complete: bool = True
    tries: int = 0
    failure: Exception | None = None

    def add(self, found: RunCounts, now: datetime) -> None:
        """Note what a run of the job scored."""
        self.failure = None
        self.scored += found.scored
        self.is_complete &= found.is_complete
        if found.next is None:
            self.end(now)
        else:
            self.first = found.next

    def fail(self, error: Exception, now: datetime) -> None:
        """Note an error. Calls before it may have been paid for."""
        self.failure, self.is_complete, self.scored = error, False, 0
        self.end(now)

    @property
    def position(self) -> int:
        """The cursor after this pass. It only grows, so a success within the interval leaves the tries before it."""
        return int(self.run_at.timestamp()) * _STATES + 2 * self.tries + (self.failure is not None)

    def resume(self, position: int) -> None:
        """Take over the tries of an earlier process, if they are of this run."""
        run_s, state = divmod(position, _STATES)
        if run_s != int(self.run_at.timestamp()):
            return
        self.tries = state // 2
        if self.tries >= _MOST_TRIES:
            self.next_at = None
            if state % 2:
                self.failure = Transient("canaries could not be scored or stored in four tries of an earlier process")

    def end(self, now: datetime) -> None:
        """End the pass, and say when the next one begins."""
        self.tries = 0 if self.scored else self.tries + 1
        self.next_at = None if self.is_complete or self.tries >= _MOST_TRIES else now + _RETRY
        self.first, self.scored, self.is_complete = 0, 0, True


@dataclass(slots=True)
class CanaryJob:
    """Scores canaries once in each interval. A run that is left incomplete is tried again within its interval.

    Each call scores for a few minutes at most, so that a slow judge does not look like a job that hangs; the next call
    continues. A try that fails may have been paid for, so it counts, also after a restart. Until the next try its error
    is raised again: otherwise the job would look healthy meanwhile.
    """

    settings: Settings
    database: Database
    telemetry: Telemetry
    stopped: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic
    canaries: Sequence[Canary] = field(init=False)
    _pass: _Pass | None = None

    def __post_init__(self) -> None:
        """Raise `ConfigError` at the start of the process for canaries that cannot be used."""
        self.canaries = load_canaries(self.settings)

    def run(
        self, evaluators: Mapping[str, Evaluator], now: datetime, leads: Callable[[], bool] = lambda: True
    ) -> RunResult:
        """Score canaries if that is due, while this process leads. `now` is the server's time.

        Raises `StopRequested` once it does not lead, as if `stopped`.
        """
        run_at = run_start(now, self.settings.evaluators.judge.canaries.every_s)
        if self._pass is None or self._pass.run_at != run_at:
            self._pass = _Pass(run_at, now)
            self._pass.resume(cursors.load(self.database, _CURSOR))
        state = self._pass
        if state.next_at is None or now < state.next_at:
            if state.failure is not None:
                raise state.failure.with_traceback(None)
            return RunResult(read=0, raised=0)
        scorer = CanaryScorer(
            self.settings,
            self.database,
            self.canaries,
            evaluators,
            scheduled=True,
            telemetry=self.telemetry,
            stopped=lambda: self.stopped() or not leads(),
            clock=self.clock,
        )
        try:
            found = scorer.run(run_at, state.first, _SLICE_S)
        except StopRequested:
            raise
        except Exception as error:  # a try of a scheduled job: counted, and raised
            state.fail(error, now)
            with suppress(RagtideError):  # the database may be the reason
                self._save(state)
            raise
        state.add(found, now)
        self._save(state)
        return RunResult(read=found.scored + found.failed + found.not_applicable, raised=0)

    def _save(self, state: _Pass) -> None:
        """Note the tries for the next process."""
        if state.tries:
            cursors.save(self.database, _CURSOR, state.position)


def run_start(now: datetime, every_s: float) -> datetime:
    """Return the start of the scheduled run that contains `now`: a multiple of the interval since 1970."""
    return datetime.fromtimestamp(now.timestamp() // every_s * every_s, UTC)
