"""Questions that were asked again lately: who asks any, and what follows from what a look saw of their answers."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.flips.links import STREAM
from drift.kinds.recent import Health
from drift.leadership import Term
from drift.problems.events import Place
from drift.problems.problem import Kind
from drift.problems.troubles import Over, Trouble, Watched, tell
from drift.settings import RuleSettings
from sinks.clickhouse.database import Database

KIND: Kind = "inconsistency"


class Seen(NamedTuple):
    """What a look says of one place, by so many answers; `trouble` where it is bad."""

    place: Place
    answers: int
    health: Health
    trouble: Trouble | None


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
    """What was seen is told when this returns; trouble at the places `before` is over where none is seen any more."""
    found: dict[Place, Trouble | Over] = {place: Over(place, KIND, now) for place in before}
    read = 0
    for one in seen:
        read += one.answers
        if one.trouble is not None:
            found[one.place] = one.trouble
        elif one.health == "unclear":
            found.pop(one.place, None)
    return Watched(read, tell(database, list(found.values()), rules, term, now))
