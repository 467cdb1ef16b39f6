"""Send new scores to one target, behind a position: at least once, and each repeat with the same id.

The lanes have no part in it: rows are read from table `scores` after they were stored. A target that is away stops the
position, and attempts slow down. No more is kept in memory than one page.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from ragtide.drift import cursors
from ragtide.drift.export.events import EventWriter, ScoredRow, subject_of
from ragtide.drift.export.source import Page, count_rows, end_of, read_page, time_of
from ragtide.drift.export_settings import ExportSettings
from ragtide.drift.job_history import StopRequested
from ragtide.evaluators.errors import ConfigError, RagtideError, Refused, Transient
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.http_post import StatusRefused
from ragtide.sinks.otlp_http import Accepted, Signal

logger = logging.getLogger(__name__)

Outcome = Literal["sent", "unknown", "rejected", "refused", "too_old", "superseded", "no_trace_id"]
_SERVER_ERROR = 500  # and above: the target is at fault
_MOST_REFUSED = 20  # rows in a row, before the target is at fault and not the rows


class EventSender(Protocol):
    """Delivers batches to one target."""

    @property
    def name(self) -> str:
        """The target's name in metrics, logs and the cursor."""
        ...

    def connected(self) -> AbstractContextManager[object]:
        """Hold a connection for the batches of one run."""
        ...

    def send(self, body: bytes) -> Accepted:
        """Send a batch. Raises `Refused` if the target will never accept it, `Transient` or `ConfigError` if it may."""
        ...


class Measured(NamedTuple):
    """Events by outcome of a run, and the age of the oldest score that is not sent yet."""

    events: Mapping[Outcome, int]
    lag_s: float


class _LeftOut(NamedTuple):
    position: int
    outcome: Outcome
    events: int


class _Tried(NamedTuple):
    error: Refused | None
    taken: bool  # any of the rows


class _Lost(NamedTuple):
    """Least and most events that a target may have rejected."""

    least: int
    most: int


@dataclass(slots=True)
class _Run:
    """One run's counts. Rows that are left out are counted once the position is stored beyond them."""

    writer: EventWriter
    epoch: int
    connection: ExitStack
    is_connected: bool = False
    events: dict[Outcome, int] = field(default_factory=dict)
    attempted: int = 0  # events in batches that were accepted
    left_out: list[_LeftOut] = field(default_factory=list)
    refused: int = 0  # rows since the target last accepted any
    error: Refused | None = None

    def count(self, outcome: Outcome, number: int) -> None:
        if number:
            self.events[outcome] = self.events.get(outcome, 0) + number

    def count_left_out(self, position: int) -> None:
        for one in self.left_out:
            if one.position <= position:
                self.count(one.outcome, one.events)
        self.left_out = [one for one in self.left_out if one.position > position]


class ScoreExport:
    """Sends scores to one target at intervals of `every_s`; remembers when to try again.

    `measure` gets the counts of each run; `delays` makes the pauses in seconds, from the first failure on. A target
    that asks for a longer pause (`Transient` with `retry_after_s`) gets it. Ends early once `stopped` returns true.
    """

    def __init__(
        self,
        database: Database,
        settings: ExportSettings,
        sender: EventSender,
        every_s: float,
        version: str,
        measure: Callable[[Measured], None],
        delays: Callable[[], Iterator[float]],
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database = database
        self._settings = settings
        self._sender = sender
        self._budget = math.ceil(settings.max_events_s * every_s)
        self._batch_events = min(settings.batch_events, self._budget)
        self._version = version
        self._measure = measure
        self._delays = delays
        self._stopped = stopped
        self._delays_s = delays()
        self._retry_at: datetime | None = None
        self._failure = ""
        self._cursor = f"export:{sender.name}"

    def run(self, evaluators: Mapping[str, Evaluator], epoch: int, now: datetime) -> int:
        """Send scores that were stored until a minute ago; return the number of events. `now` is the server's time.

        The first run ever sends none: it begins with the scores from then on. Raises `Transient` or `ConfigError` if
        the target is away or needs another setting, `Transient` during the pause after that, and `StopRequested` if
        the process stops or a newer leader than `epoch` was elected.
        """
        events: Mapping[Outcome, int] = {}
        try:
            if self._retry_at is not None and now < self._retry_at:
                left_s = (self._retry_at - now).total_seconds()
                raise Transient(f"scores wait; next attempt in {left_s:.0f} s. Last error: {self._failure}")
            settings = self._settings
            writer = EventWriter(
                evaluators, settings.metrics, settings.signal, self._version, explanations=settings.explanations
            )
            with ExitStack() as connection:
                run = _Run(writer, epoch, connection)
                events = run.events
                self._send(run, now)
        except RagtideError as error:
            if self._retry_at is None or now >= self._retry_at:
                asked_s = float(getattr(error, "retry_after_s", 0.0))
                self._retry_at = now + timedelta(seconds=max(next(self._delays_s), asked_s))
                self._failure = str(error)
            raise
        else:
            self._delays_s, self._retry_at = self._delays(), None
        finally:
            self._measure(Measured(events, self._lag_s(now)))
        return events.get("sent", 0)

    def _send(self, run: _Run, now: datetime) -> None:
        # an insert is visible a little after its rows' time
        end = end_of(now - max(cursors.INGEST_OVERLAP, timedelta(seconds=2 * self._database.settings.timeout_s)))
        position = self._begin(run, now, end)
        while position < end:
            self._check_may_go_on(run)
            page = read_page(self._database, run.writer.wanted, position, end, self._settings.batch_events)
            if not self._send_page(run, page):
                return
            position = page.end
        if run.refused:
            self._raise_refused(run)

    def _begin(self, run: _Run, now: datetime, end: int) -> int:
        """The position to read from. What is too old is counted and left out."""
        position = cursors.load(self._database, self._cursor)
        if not position:
            cursors.save(self._database, self._cursor, end)
            return end
        if position > end_of(now):
            raise ConfigError(
                f"the position of {self._cursor} is {time_of(position):%Y-%m-%d %H:%M:%S} UTC, after the time of "
                "ClickHouse's clock; set that clock right, or delete the position from table cursors to begin anew"
            )
        oldest = end_of(now - timedelta(seconds=self._settings.max_age_s))
        if position >= oldest:
            return position
        left_out = count_rows(self._database, run.writer.wanted, position, oldest)
        self._save(run, oldest)
        run.count("too_old", left_out)
        if left_out:
            logger.error(
                "%d rows of scores are not sent to %s: they have waited for longer than otel.export.max_age_s",
                left_out,
                self._sender.name,
            )
        return oldest

    def _send_page(self, run: _Run, page: Page) -> bool:
        """Send the rows of a page and store the position after each batch; false once the run's rate is used up.

        A batch that is refused is halved, down to the rows at fault. The position passes these only if the target
        accepted another row of the batch, or a later one.
        """
        batches = self._batches(run, page.rows)
        for number, batch in enumerate(batches):
            following = batches[number + 1][0].position - 1 if number + 1 < len(batches) else page.end
            pieces = deque([batch])
            accepted = False
            while pieces:
                rows = pieces.popleft()
                events = sum(map(run.writer.count, rows))
                if run.attempted and run.attempted + events > self._budget:
                    return False
                self._check_may_go_on(run)
                error, taken = self._try(run, rows, events)
                if error is None:
                    accepted |= taken
                    if taken or not run.refused:
                        self._save(run, pieces[0][0].position - 1 if pieces else following)
                elif len(rows) > 1:
                    middle = len(rows) // 2
                    pieces.extendleft([rows[middle:], rows[:middle]])
                else:
                    self._leave_out(run, rows[0], error)
            if accepted and run.refused:
                self._save(run, following)
        if not run.refused and not batches:
            self._save(run, page.end)
        return True

    def _batches(self, run: _Run, rows: Sequence[ScoredRow]) -> list[list[ScoredRow]]:
        batches: list[list[ScoredRow]] = []
        size = 0
        for row in rows:
            events = run.writer.count(row)
            if not row.is_newest or subject_of(row) is None:
                run.left_out.append(_LeftOut(row.position, "no_trace_id" if row.is_newest else "superseded", events))
            elif events:
                if not batches or size + events > self._batch_events:
                    batches.append([])
                    size = 0
                batches[-1].append(row)
                size += events
        return batches

    def _try(self, run: _Run, rows: Sequence[ScoredRow], events: int) -> _Tried:
        """Send the rows; return the error if they are at fault, else whether the target took any of them."""
        if not run.is_connected:
            run.connection.enter_context(self._sender.connected())
            run.is_connected = True
        try:
            accepted = self._sender.send(run.writer.encode(rows))
        except Refused as error:
            return _Tried(error, False)
        run.attempted += events
        if accepted.rejected is None:
            run.count("unknown", events)
            logger.warning("%s took %d scores with an answer that cannot be read", self._sender.name, events)
            return _Tried(None, True)
        lost = _rejected_events(run.writer, self._settings.signal, rows, accepted.rejected)
        run.count("rejected", lost.least)
        run.count("unknown", lost.most - lost.least)
        run.count("sent", events - lost.most)
        self._log_rejected(lost, events, accepted.why)
        return _Tried(None, lost.least < events)

    def _log_rejected(self, lost: _Lost, events: int, why: str) -> None:
        """Say what the target rejected, which is not sent again, and what it warns about."""
        name, reason = self._sender.name, why or "it gives no reason"
        if lost.least >= events:
            logger.error("%s rejected all of %d scores, which are not sent again: %s", name, events, reason)
        elif lost.most:
            number = f"{lost.least}" if lost.least == lost.most else f"{lost.least} to {lost.most}"
            logger.warning("%s rejected %s of %d scores, which are not sent again: %s", name, number, events, reason)
        elif why:
            logger.warning("%s took %d scores with a warning: %s", name, events, why)

    def _leave_out(self, run: _Run, row: ScoredRow, error: Refused) -> None:
        logger.error("%s refused a score of evaluator %s: %s", self._sender.name, row.evaluator, error)
        run.left_out.append(_LeftOut(row.position, "refused", run.writer.count(row)))
        run.error = error
        run.refused += 1
        if run.refused > _MOST_REFUSED:
            self._raise_refused(run)

    def _raise_refused(self, run: _Run) -> None:
        if isinstance(run.error, StatusRefused) and run.error.status >= _SERVER_ERROR:
            raise Transient(
                f"{self._sender.name} fails for every score, so that none is left out: {run.error}"
            ) from None
        raise ConfigError(f"{self._sender.name} refuses every score, so that none is left out: {run.error}") from None

    def _check_may_go_on(self, run: _Run) -> None:
        if self._stopped():
            raise StopRequested("scores were not all sent")
        newest = self._database.rows("SELECT max(epoch) AS newest FROM leaders")[0]["newest"]
        if int(newest) > run.epoch:
            raise StopRequested(f"a newer leader than epoch {run.epoch} sends the scores")

    def _save(self, run: _Run, position: int) -> None:
        cursors.save(self._database, self._cursor, position)
        run.refused = 0
        run.count_left_out(position)

    def _lag_s(self, now: datetime) -> float:
        try:
            position = cursors.load(self._database, self._cursor)
        except RagtideError:
            return math.nan  # not known
        return max((now - time_of(position)).total_seconds(), 0.0) if position else 0.0


def _rejected_events(writer: EventWriter, signal: Signal, rows: Sequence[ScoredRow], rejected: int) -> _Lost:
    """The events of so many rejected records. A span has all events of a row, and the answer does not name the rows."""
    counts = sorted(map(writer.count, rows))
    if signal == "logs":
        return _Lost(*[min(rejected, sum(counts))] * 2)
    number = min(rejected, len(counts))
    return _Lost(sum(counts[:number]), sum(counts[len(counts) - number :]))
