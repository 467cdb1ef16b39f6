"""Send new scores to one target, behind a cursor: at least once, and each repeat with the same bytes.

The lanes have no part in it: rows are read from table `scores` after they were stored. A target that is away stops the
cursor, and attempts slow down. No more is kept in memory than one page.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from ragtide.drift import cursors
from ragtide.drift.export.events import EventWriter, ScoredRow, subject_of
from ragtide.drift.export.source import count_rows, read_page
from ragtide.drift.export_settings import ExportSettings
from ragtide.drift.job_history import StopRequested
from ragtide.evaluators.errors import ConfigError, RagtideError, Refused, Transient
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.otlp_http import Accepted

logger = logging.getLogger(__name__)

Outcome = Literal["sent", "rejected", "refused", "too_old", "no_trace_id"]
_MOST_REFUSED = 20  # rows in a row, before a target that takes none of them is an error of the settings


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


@dataclass(slots=True)
class _Run:
    """One run's counts."""

    events: dict[Outcome, int] = field(default_factory=dict)
    refused: int = 0  # events of the page
    refused_in_a_row: int = 0  # rows

    def count(self, outcome: Outcome, number: int) -> None:
        if number:
            self.events[outcome] = self.events.get(outcome, 0) + number

    @property
    def attempted(self) -> int:
        return sum(self.events.values())


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
        self._version = version
        self._measure = measure
        self._delays = delays
        self._stopped = stopped
        self._delays_s = delays()
        self._retry_at: datetime | None = None
        self._cursor = f"export:{sender.name}"

    def run(self, evaluators: Mapping[str, Evaluator], now: datetime) -> int:
        """Send scores that were stored until a minute ago; return the number of events. `now` is the server's time.

        The first run ever sends none: it begins with the scores from then on. Raises `Transient` or `ConfigError` if
        the target is away or needs another setting, and `Transient` during the pause after that.
        """
        done = _Run()
        try:
            if self._retry_at is not None and now < self._retry_at:
                left_s = (self._retry_at - now).total_seconds()
                raise Transient(f"scores wait after a failure of {self._sender.name}; next attempt in {left_s:.0f} s")
            self._send(evaluators, now, done)
        except RagtideError as error:
            if self._retry_at is None or now >= self._retry_at:
                asked_s = float(getattr(error, "retry_after_s", 0.0))
                self._retry_at = now + timedelta(seconds=max(next(self._delays_s), asked_s))
            raise
        else:
            self._delays_s, self._retry_at = self._delays(), None
        finally:
            self._measure(Measured(done.events, self._lag_s(now)))
        return done.events.get("sent", 0)

    def _send(self, evaluators: Mapping[str, Evaluator], now: datetime, done: _Run) -> None:
        settings = self._settings
        writer = EventWriter(
            evaluators, settings.metrics, settings.signal, self._version, explanations=settings.explanations
        )
        until = now - cursors.INGEST_OVERLAP  # an insert is visible a little after its rows' time
        since = self._begin(writer, now, until, done)
        if since >= until:
            return
        with self._sender.connected():
            while since < until and done.attempted < self._budget:
                if self._stopped():
                    raise StopRequested("scores were not all sent")
                page = read_page(self._database, writer.wanted, since, until, settings.batch_events)
                done.refused = 0
                self._send_page(writer, page.rows, done)
                done.count("refused", done.refused)  # not before: if it takes none at all, they are sent again
                since = page.until
                cursors.save(self._database, self._cursor, _milliseconds(since))

    def _begin(self, writer: EventWriter, now: datetime, until: datetime, done: _Run) -> datetime:
        """The position to read from. What is too old is counted and left out."""
        position = cursors.load(self._database, self._cursor)
        if not position:
            cursors.save(self._database, self._cursor, _milliseconds(until))
            return until
        since = datetime.fromtimestamp(position / 1000, UTC)
        oldest = now - timedelta(seconds=self._settings.max_age_s)
        if since >= oldest:
            return since
        left_out = count_rows(self._database, writer.wanted, since, oldest)
        cursors.save(self._database, self._cursor, _milliseconds(oldest))
        done.count("too_old", left_out)
        if left_out:
            logger.error(
                "%d rows of scores are not sent to %s: they have waited for longer than otel.export.max_age_s",
                left_out,
                self._sender.name,
            )
        return oldest

    def _send_page(self, writer: EventWriter, rows: Sequence[ScoredRow], done: _Run) -> None:
        batch: list[ScoredRow] = []
        size = 0
        for row in rows:
            number = writer.count(row)
            if subject_of(row) is None:
                done.count("no_trace_id", number)
            elif number:
                if batch and size + number > self._settings.batch_events:
                    self._send_batch(writer, batch, done)
                    batch, size = [], 0
                batch.append(row)
                size += number
        if batch:
            self._send_batch(writer, batch, done)

    def _send_batch(self, writer: EventWriter, rows: Sequence[ScoredRow], done: _Run) -> None:
        """Send the rows. Where the target refuses them, the halves, down to the rows that it refuses alone."""
        number = sum(map(writer.count, rows))
        try:
            accepted = self._sender.send(writer.encode(rows))
        except Refused as error:
            if len(rows) > 1:
                middle = len(rows) // 2
                self._send_batch(writer, rows[:middle], done)
                self._send_batch(writer, rows[middle:], done)
                return
            done.refused_in_a_row += 1
            if done.refused_in_a_row > _MOST_REFUSED and not done.events.get("sent"):
                raise ConfigError(
                    f"{self._sender.name} refuses every score, so that none is left out: {error}"
                ) from None
            logger.error("%s refused a score of evaluator %s: %s", self._sender.name, rows[0].evaluator, error)
            done.refused += number
            return
        done.refused_in_a_row = 0
        rejected = min(accepted.rejected, number)
        done.count("sent", number - rejected)
        done.count("rejected", rejected)
        if rejected:
            logger.warning("%s rejected %d of %d scores: %s", self._sender.name, rejected, number, accepted.why)

    def _lag_s(self, now: datetime) -> float:
        try:
            position = cursors.load(self._database, self._cursor)
        except RagtideError:
            return math.nan  # not known
        return max(now.timestamp() - position / 1000, 0.0) if position else 0.0


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)
