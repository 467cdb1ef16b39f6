"""The topic models in force, as people read them, and how much is asked of each topic now."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from drift.topics.model import OTHER
from sinks.clickhouse.database import Database


class TopicShown(NamedTuple):
    """`fitted_on` counts different questions, 0: retired; `asked` those of late, `share` of all that were placed.

    What is of no topic stands as `other`, without an id; share is None where nothing was asked.
    """

    id: int | None
    name: str
    fitted_on: int
    asked: int
    share: float | None


class ModelShown(NamedTuple):
    """An application's newest model, whichever encoder's; `topics`, those that are asked about most first."""

    app: str
    encoder: str
    version: int
    fitted_at: datetime
    questions: int
    topics: tuple[TopicShown, ...]


def in_force(database: Database, since: datetime, app: str | None = None) -> list[ModelShown]:
    """By application; what was asked is counted in live questions from `since` on. Of all applications where None."""
    asked = _asked(database, since, app)
    rows = database.rows(
        "SELECT app, encoder, version, fitted_at, questions, ids, names, sizes FROM topic_models FINAL"
        f"{'' if app is None else ' WHERE app = {app:String}'} ORDER BY version DESC LIMIT 1 BY app",
        {} if app is None else {"app": app},
    )
    models = [
        ModelShown(
            row["app"],
            row["encoder"],
            row["version"],
            row["fitted_at"],
            row["questions"],
            _topics(zip(row["ids"], row["names"], row["sizes"], strict=True), asked.get(row["app"], {})),
        )
        for row in rows
    ]
    return sorted(models, key=lambda one: one.app)


def fitted_at(database: Database, since: datetime) -> dict[str, datetime]:
    """When the newest model was fitted, of each application that has one and asked from `since` on."""
    rows = database.rows(
        "SELECT app, max(fitted_at) AS newest FROM topic_models WHERE app IN ("
        "SELECT DISTINCT app FROM embeddings WHERE run_id = 'live' AND time >= {since:DateTime64(3, 'UTC')}) "
        "GROUP BY app",
        {"since": since},
    )
    return {row["app"]: row["newest"] for row in rows}


def _topics(known: Iterable[tuple[int, str, int]], asked: Mapping[str, int]) -> tuple[TopicShown, ...]:
    total = sum(asked.values())
    found = [*known, (None, OTHER, 0)]
    shown = (
        TopicShown(id_, name, size, asked.get(name, 0), asked.get(name, 0) / total if total else None)
        for id_, name, size in found
    )
    return tuple(sorted(shown, key=lambda one: (-one.asked, -one.fitted_on, one.name)))


def _asked(database: Database, since: datetime, app: str | None) -> dict[str, Counter[str]]:
    """Live questions that were placed, by application and topic."""
    rows = database.rows(
        "SELECT app, topic, count() AS n FROM embeddings FINAL WHERE run_id = 'live' AND topic != '' "
        f"AND time >= {{since:DateTime64(3, 'UTC')}}{'' if app is None else ' AND app = {app:String}'} "
        "GROUP BY app, topic",
        {"since": since} if app is None else {"since": since, "app": app},
    )
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["app"], Counter())[row["topic"]] = row["n"]
    return found
