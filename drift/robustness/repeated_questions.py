"""Check questions that were asked again lately: the base of the checks that compare their scores and their answers."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.robustness.perturbation_links import STREAM
from ragtide.drift.settings import JobSettings
from ragtide.drift.stats import calendar
from ragtide.drift.stats.proportions import Share
from ragtide.sinks.clickhouse.database import Database


class AnswerPair(NamedTuple):
    """By what two answers to a question differ, and their trace ids: of the one at odds, or worse, and of another."""

    by: str
    odd: str
    other: str


class Consistency(NamedTuple):
    """The state of one key, by so many answers: `share` of the questions is inconsistent, above `limit` is too much.

    `pairs` are of some of these questions.
    """

    observation: Observation
    share: Share
    limit: float
    pairs: Sequence[AnswerPair]


class AskedAgainRow(NamedTuple):
    """Table `asked_again`."""

    app: str
    environment: str
    model: str
    metric: str
    time: datetime
    questions: int
    inconsistent: int
    answers: int
    allowed: float
    pairs: Sequence[AnswerPair]
    version: int


class RepeatedQuestions(Check):
    """Too many questions that were asked again have inconsistent scores, or answers at odds."""

    kind = "inconsistency"
    job = "inconsistency"

    def interval_s(self, jobs: JobSettings) -> float:
        """Seconds between two runs."""
        return jobs.repeats_every_s

    @abstractmethod
    def compare(
        self, ctx: CheckContext, apps: Mapping[str, int], since: datetime, until: datetime
    ) -> Iterator[Consistency]:
        """What questions of [since, until) say of these applications, of which so many traces ask some."""

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """The questions of the last day or so; a live run stores what it found in table `asked_again`."""
        since = lookback_start(ctx, now)
        found = list(self.compare(ctx, _apps_with_repeats(ctx.database, since, now), since, now))
        if ctx.term is not None:
            at, version = now.replace(second=0, microsecond=0), ctx.term.next_version
            ctx.database.insert("asked_again", [_row(one, at, version()) for one in found])
        yield from (one.observation for one in found)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """What `observe` finds, if any application repeats a question often enough."""
        min_repeats = min(ctx.rules.of(app).inconsistency_askings for app in (*ctx.rules.apps, ""))
        since = lookback_start(ctx, calendar.utc(first))
        if _apps_with_repeats(ctx.database, since, calendar.utc(until), min_repeats):
            yield from super().history(ctx, first, until)


def lookback_start(ctx: CheckContext, now: datetime) -> datetime:
    """From when on questions count; a whole minute."""
    return (now - timedelta(seconds=ctx.rules.asked_within_s)).replace(second=0, microsecond=0)


def _apps_with_repeats(database: Database, since: datetime, until: datetime, min_repeats: int = 1) -> dict[str, int]:
    """Applications with questions of [since, until), one of them asked so often, and how many traces ask any."""
    rows = database.rows(
        "SELECT app, sum(n) AS traces FROM ("
        f"SELECT app, question_hash, count() AS n FROM traces WHERE {STREAM} AND question_hash != '' "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} GROUP BY app, question_hash"
        f") GROUP BY app HAVING max(n) >= {min_repeats} ORDER BY app",
        {"since": since, "until": until},
    )
    return {row["app"]: row["traces"] for row in rows}


def _row(one: Consistency, at: datetime, version: int) -> AskedAgainRow:
    key, answers = one.observation.key, one.observation.read
    where = (key.app, key.environment, key.model, key.metric)
    return AskedAgainRow(*where, at, one.share.n, one.share.hits, answers, one.limit, one.pairs, version)
