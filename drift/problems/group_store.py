"""Table `problem_groups`: the parent of each symptom, for readers that know no Python. View `problems` shows it."""

from datetime import datetime, timedelta
from typing import NamedTuple, get_args

from ragtide.drift.leadership import Term
from ragtide.drift.problems.groups import LONGEST_EXPECTED, EpisodeKey, parents
from ragtide.drift.problems.model import State
from ragtide.drift.problems.store import load_recent_problems
from ragtide.sinks.clickhouse.database import Database

_SETTLES = timedelta(hours=1)  # after its end, a problem may still get a parent that is found late


class GroupRow(NamedTuple):
    """Table `problem_groups`; an empty parent: the problem stands alone again."""

    problem_id: str
    episode: int
    parent_id: str
    parent_episode: int
    version: int


def record_groups(database: Database, now: datetime, term: Term) -> int:
    """Store the parents that changed, of problems that are unresolved or resolved not long ago; return their number."""
    known = load_recent_problems(database, now - LONGEST_EXPECTED - _SETTLES, states=get_args(State))
    parent_of = parents(known, now)
    stored = {
        EpisodeKey(row["problem_id"], row["episode"]): EpisodeKey(row["parent_id"], row["parent_episode"])
        for row in database.rows("SELECT problem_id, episode, parent_id, parent_episode FROM problem_groups FINAL")
    }
    nobody = EpisodeKey("", 0)
    changed = []
    for one in known:
        if one.resolved_at is not None and one.resolved_at < now - _SETTLES:
            continue
        key = EpisodeKey.of(one)
        parent = parent_of.get(key)
        found = nobody if parent is None else EpisodeKey.of(parent)
        if found != stored.get(key, nobody):
            changed.append(GroupRow(*key, *found, term.next_version()))
    database.insert("problem_groups", changed)
    return len(changed)
