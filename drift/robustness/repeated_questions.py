"""Questions that were asked again lately: who asks any, and what follows from what a look saw of their answers."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.checks.hysteresis import CheckState
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import Kind
from ragtide.drift.problems.report import CheckResult, Clear, Detection, ProblemKey, report
from ragtide.drift.robustness.perturbation_links import STREAM
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats.proportions import Share
from ragtide.sinks.clickhouse.database import Database

KIND: Kind = "inconsistency"


class AnswerPair(NamedTuple):
    """By what two answers to a question differ, and their trace ids: of the one at odds, or worse, and of another."""

    by: str
    odd: str
    other: str


class ConsistencyObservation(NamedTuple):
    """What a look says of one place, by so many answers; `detection` where it is bad.

    `share` of the questions is inconsistent, more than `limit` are too many; `pairs` are of some of them.
    """

    key: ProblemKey
    answers: int
    share: Share
    limit: float
    pairs: Sequence[AnswerPair]
    state: CheckState
    detection: Detection | None


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


def lookback_start(rules: RuleSettings, now: datetime) -> datetime:
    """From when on questions count at that moment; a whole minute."""
    return (now - timedelta(seconds=rules.asked_within_s)).replace(second=0, microsecond=0)


def apps_with_repeats(database: Database, since: datetime, until: datetime, min_repeats: int = 1) -> dict[str, int]:
    """Applications with questions of [since, until), one of them asked so often, and how many traces ask any."""
    rows = database.rows(
        "SELECT app, sum(n) AS traces FROM ("
        f"SELECT app, question_hash, count() AS n FROM traces WHERE {STREAM} AND question_hash != '' "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} GROUP BY app, question_hash"
        f") GROUP BY app HAVING max(n) >= {min_repeats} ORDER BY app",
        {"since": since, "until": until},
    )
    return {row["app"]: row["traces"] for row in rows}


def store_and_report(
    database: Database,
    observations: Iterable[ConsistencyObservation],
    open_keys: Iterable[ProblemKey],
    rules: RuleSettings,
    term: Term,
    now: datetime,
) -> CheckResult:
    """What was seen is stored and told when this returns; trouble at the places `before` is over where it is gone."""
    found: dict[ProblemKey, Detection | Clear] = {key: Clear(key, KIND, now) for key in open_keys}
    rows = []
    for one in observations:
        rows.append(_row(one, now.replace(second=0, microsecond=0), term.next_version()))
        if one.detection is not None:
            found[one.key] = one.detection
        elif one.state == "unclear":
            found.pop(one.key, None)
    database.insert("asked_again", rows)
    return CheckResult(sum(row.answers for row in rows), report(database, list(found.values()), rules, term, now))


def _row(one: ConsistencyObservation, at: datetime, version: int) -> AskedAgainRow:
    key, share = one.key, one.share
    where = (key.app, key.environment, key.model, key.metric)
    return AskedAgainRow(*where, at, share.n, share.hits, one.answers, one.limit, one.pairs, version)
