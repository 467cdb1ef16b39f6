"""Store topic models, one row per version; load them with the current number of questions per topic."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift.topics.model import OTHER_TOPIC, Topic, TopicModel
from ragtide.sinks.clickhouse.database import Database


class TopicModelRow(NamedTuple):
    """Table `topic_models`; arrays have one item per topic."""

    app: str
    encoder: str
    version: int
    epoch: int
    fitted_at: datetime
    questions: int
    ids: Sequence[int]
    names: Sequence[str]
    centroids: Sequence[Sequence[float]]
    least_cosines: Sequence[float]
    sizes: Sequence[int]


_COLUMNS = ", ".join(name for name in TopicModelRow._fields if name != "epoch")
_OF_APP = "({app:String} = '' OR app = {app:String})"


def save_model(database: Database, model: TopicModel, epoch: int) -> None:
    """Store a model; the row of an old epoch never becomes the newest."""
    topics = model.topics
    row = TopicModelRow(
        model.app,
        model.encoder,
        model.version,
        epoch,
        model.fitted_at,
        model.questions,
        ids=[topic.id for topic in topics],
        names=[topic.name for topic in topics],
        centroids=[topic.centroid.tolist() for topic in topics],
        least_cosines=[topic.min_cosine for topic in topics],
        sizes=[topic.questions for topic in topics],
    )
    database.insert("topic_models", [row])


def load_newest_models(database: Database, encoder: str) -> dict[str, TopicModel]:
    """Load the newest model of each application for this encoder."""
    rows = database.rows(
        f"SELECT {_COLUMNS} FROM topic_models FINAL WHERE encoder = {{encoder:String}} "
        "ORDER BY version DESC LIMIT 1 BY app",
        {"encoder": encoder},
    )
    return {row["app"]: _decode(row) for row in rows}


def newest_model_version(database: Database, encoder: str) -> int:
    """Return the newest version of any application, or 0; it rises whenever `load_newest_models` changes."""
    rows = database.rows(
        "SELECT max(version) AS version FROM topic_models WHERE encoder = {encoder:String}", {"encoder": encoder}
    )
    return int(rows[0]["version"])


def last_id(database: Database, app: str) -> int:
    """Return the largest topic id that this application ever had, with any encoder, or 0."""
    rows = database.rows(
        "SELECT max(arrayMax(arrayPushBack(ids, 0))) AS id FROM topic_models WHERE app = {app:String}", {"app": app}
    )
    return int(rows[0]["id"])


def _decode(row: Mapping[str, Any]) -> TopicModel:
    columns = (row["ids"], row["names"], row["centroids"], row["least_cosines"], row["sizes"])
    return TopicModel(
        app=row["app"],
        encoder=row["encoder"],
        version=row["version"],
        fitted_at=row["fitted_at"],
        questions=row["questions"],
        topics=tuple(
            Topic(id_, name, np.array(centroid, np.float32), least, questions)
            for id_, name, centroid, least, questions in zip(*columns, strict=True)
        ),
    )


class TopicView(NamedTuple):
    """`fitted_on`: distinct questions in the fit (0: retired); `asked`: recent questions; `share` of all recent ones.

    Questions of no topic are `other`, without an id. `share` is None if there are no recent questions.
    """

    id: int | None
    name: str
    fitted_on: int
    asked: int
    share: float | None


class TopicModelView(NamedTuple):
    """An application's newest model of any encoder; `topics` by number of recent questions, descending."""

    app: str
    encoder: str
    version: int
    fitted_at: datetime
    questions: int
    topics: tuple[TopicView, ...]


def current_models(database: Database, since: datetime, app: str | None = None) -> list[TopicModelView]:
    """Load the newest model of one or all applications, with live questions from `since` on."""
    asked = _question_counts(database, since, app)
    known = ("app", "encoder", "version", "fitted_at", "questions")
    rows = database.rows(
        f"SELECT {', '.join(known)}, arrayZip(ids, names, sizes) AS topics FROM topic_models FINAL WHERE {_OF_APP} "
        "ORDER BY version DESC LIMIT 1 BY app",
        {"app": app or ""},
    )
    models = [
        TopicModelView(
            **{name: row[name] for name in known}, topics=_topic_views(row["topics"], asked.get(row["app"], {}))
        )
        for row in rows
    ]
    return sorted(models, key=lambda one: one.app)


def fitted_at(database: Database, since: datetime) -> dict[str, datetime]:
    """Return when the newest model of each application with questions from `since` on was fitted."""
    rows = database.rows(
        "SELECT app, max(fitted_at) AS newest FROM topic_models WHERE app IN ("
        "SELECT DISTINCT app FROM embeddings WHERE run_id = 'live' AND time >= {since:DateTime64(3, 'UTC')}) "
        "GROUP BY app",
        {"since": since},
    )
    return {row["app"]: row["newest"] for row in rows}


def _topic_views(known: Iterable[tuple[int, str, int]], asked: Mapping[str, int]) -> tuple[TopicView, ...]:
    total = sum(asked.values())
    views = (
        TopicView(id_, name, size, asked.get(name, 0), asked.get(name, 0) / total if total else None)
        for id_, name, size in (*known, (None, OTHER_TOPIC, 0))
    )
    return tuple(sorted(views, key=lambda one: (-one.asked, -one.fitted_on, one.name)))


def _question_counts(database: Database, since: datetime, app: str | None) -> dict[str, Counter[str]]:
    """Count live questions with a topic, by application and topic."""
    rows = database.rows(
        "SELECT app, topic, count() AS n FROM embeddings FINAL WHERE run_id = 'live' AND topic != '' "
        f"AND time >= {{since:DateTime64(3, 'UTC')}} AND {_OF_APP} GROUP BY app, topic",
        {"since": since, "app": app or ""},
    )
    found: dict[str, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["app"], Counter())[row["topic"]] = row["n"]
    return found
