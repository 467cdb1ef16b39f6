"""Check repeated questions: the base of the checks that compare their scores and their answers."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift.checks import Check, CheckContext, CheckState, Observation
from ragtide.drift.problems import bad_share_attributes
from ragtide.drift.robustness.perturbation_links import STREAM
from ragtide.drift.settings import JobSettings
from ragtide.drift.stats import Share, calendar, wilson
from ragtide.drift.text import percent
from ragtide.sinks.clickhouse.database import Database


class AnswerPair(NamedTuple):
    """Two answers to a question that differ: in what, the trace id of the odd or worse one, and of another."""

    by: str
    odd: str
    other: str


class Consistency(NamedTuple):
    """The observation of one key: `share` of the questions is inconsistent, the limit is `limit`.

    `pairs` are of some of these questions.
    """

    observation: Observation
    share: Share
    limit: float
    pairs: Sequence[AnswerPair]


def above_limit(share: Share, limit: float) -> CheckState:
    """Return bad if the whole 95 % interval (Wilson) lies above the limit, good if the share itself does not.

    Between the two nothing changes, so that a share near its limit does not flap.
    """
    if wilson(share).low > limit:
        return "bad"
    return "good" if share.value <= limit else "unclear"


def describe_share(name: str, share: Share, limit: float) -> str:
    """State a share that is above its limit, with its interval."""
    low, high = wilson(share)
    interval = f"95 % interval {low * 100:.3g} to {percent(high)}"
    return f"{name}: {percent(share.value)} ({interval}), above the limit of {percent(limit)}."


def share_attributes(share: Share, limit: float) -> dict[str, Any]:
    """Return the attributes that describe a share above its limit."""
    return {**bad_share_attributes(share.hits, share.n, limit), "interval": list(wilson(share))}


class RepeatedQuestionsRow(NamedTuple):
    """Table `repeated_questions`."""

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
    """Too many repeated questions have inconsistent scores, or conflicting answers."""

    kind = "inconsistency"
    job = "inconsistency"

    def interval_s(self, jobs: JobSettings) -> float:
        """Return the seconds between two runs."""
        return jobs.repeats_every_s

    @abstractmethod
    def compare(
        self, ctx: CheckContext, apps: Mapping[str, int], since: datetime, until: datetime
    ) -> Iterator[Consistency]:
        """Compare answers to questions of [since, until) of these applications, with their numbers of traces."""

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe the questions of `rules.repeats_within_s`; a live run stores the result in its table."""
        since = lookback_start(ctx, now)
        found = list(self.compare(ctx, _apps_with_repeats(ctx.database, since, now), since, now))
        if ctx.term is not None:
            at, version = now.replace(second=0, microsecond=0), ctx.term.next_version
            ctx.database.insert("repeated_questions", [_row(one, at, version()) for one in found])
        yield from (one.observation for one in found)

    def history(self, ctx: CheckContext, first: int, until: int) -> Iterator[tuple[int, Observation]]:
        """Observe as `observe` does, if any application repeats a question often enough."""
        min_repeats = min(ctx.rules.of(app).inconsistency_askings for app in (*ctx.rules.apps, ""))
        since = lookback_start(ctx, calendar.utc(first))
        if _apps_with_repeats(ctx.database, since, calendar.utc(until), min_repeats):
            yield from super().history(ctx, first, until)


def lookback_start(ctx: CheckContext, now: datetime) -> datetime:
    """Return the start of the lookback, a whole minute."""
    return (now - timedelta(seconds=ctx.rules.repeats_within_s)).replace(second=0, microsecond=0)


def _apps_with_repeats(database: Database, since: datetime, until: datetime, min_repeats: int = 1) -> dict[str, int]:
    """Count traces with questions in [since, until), by application with a question repeated often enough."""
    rows = database.rows(
        "SELECT app, sum(n) AS traces FROM ("
        f"SELECT app, question_hash, count() AS n FROM traces WHERE {STREAM} AND question_hash != '' "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} GROUP BY app, question_hash"
        f") GROUP BY app HAVING max(n) >= {min_repeats} ORDER BY app",
        {"since": since, "until": until},
    )
    return {row["app"]: row["traces"] for row in rows}


def _row(one: Consistency, at: datetime, version: int) -> RepeatedQuestionsRow:
    key, answers = one.observation.key, one.observation.read
    where = (key.app, key.environment, key.model, key.metric)
    return RepeatedQuestionsRow(*where, at, one.share.n, one.share.hits, answers, one.limit, one.pairs, version)
