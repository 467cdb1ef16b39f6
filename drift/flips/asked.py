"""Questions that were asked again lately: who asks any, and what follows from what a look saw of their answers."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.flips.links import STREAM
from drift.insights.shares import Share
from drift.kinds.recent import Health
from drift.leadership import Term
from drift.problems.events import Place
from drift.problems.problem import Kind
from drift.problems.troubles import Over, Trouble, Watched, tell
from drift.settings import RuleSettings
from sinks.clickhouse.database import Database

KIND: Kind = "inconsistency"


class Pair(NamedTuple):
    """By what two answers to a question differ, and their trace ids: of the one at odds, or worse, and of another."""

    by: str
    odd: str
    other: str


class Seen(NamedTuple):
    """What a look says of one place, by so many answers; `trouble` where it is bad.

    `share` of the questions is inconsistent, more than `limit` are too many; `pairs` are of some of them.
    """

    place: Place
    answers: int
    share: Share
    limit: float
    pairs: Sequence[Pair]
    health: Health
    trouble: Trouble | None


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
    pairs: Sequence[Pair]
    version: int


def asked_since(rules: RuleSettings, now: datetime) -> datetime:
    """From when on questions count at that moment; a whole minute."""
    return (now - timedelta(seconds=rules.asked_within_s)).replace(second=0, microsecond=0)


def asking(database: Database, since: datetime, until: datetime, askings: int = 1) -> dict[str, int]:
    """Applications with questions of [since, until), one of them asked so often, and how many traces ask any."""
    rows = database.rows(
        "SELECT app, sum(n) AS traces FROM ("
        f"SELECT app, question_hash, count() AS n FROM traces WHERE {STREAM} AND question_hash != '' "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} GROUP BY app, question_hash"
        f") GROUP BY app HAVING max(n) >= {askings} ORDER BY app",
        {"since": since, "until": until},
    )
    return {row["app"]: row["traces"] for row in rows}


def told(
    database: Database, seen: Iterable[Seen], before: Iterable[Place], rules: RuleSettings, term: Term, now: datetime
) -> Watched:
    """What was seen is stored and told when this returns; trouble at the places `before` is over where it is gone."""
    found: dict[Place, Trouble | Over] = {place: Over(place, KIND, now) for place in before}
    rows = []
    for one in seen:
        rows.append(_row(one, now.replace(second=0, microsecond=0), term.next_version()))
        if one.trouble is not None:
            found[one.place] = one.trouble
        elif one.health == "unclear":
            found.pop(one.place, None)
    database.insert("asked_again", rows)
    return Watched(sum(row.answers for row in rows), tell(database, list(found.values()), rules, term, now))


def _row(one: Seen, at: datetime, version: int) -> AskedAgainRow:
    place, share = one.place, one.share
    where = (place.app, place.environment, place.model, place.metric)
    return AskedAgainRow(*where, at, share.n, share.hits, one.answers, one.limit, one.pairs, version)
