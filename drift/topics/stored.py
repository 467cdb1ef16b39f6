"""Topic models as they are stored: one row per version, so that nobody ever reads half of one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from drift.topics.model import Topic, TopicModel
from sinks.clickhouse.database import Database


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


def store(database: Database, model: TopicModel, epoch: int) -> None:
    """Durable when this returns; the row of an epoch that is over never becomes the newest."""
    topics = model.topics
    database.insert(
        "topic_models",
        [
            TopicModelRow(
                model.app,
                model.encoder,
                model.version,
                epoch,
                model.fitted_at,
                model.questions,
                [topic.id for topic in topics],
                [topic.name for topic in topics],
                [topic.centroid.tolist() for topic in topics],
                [topic.least_cosine for topic in topics],
                [topic.questions for topic in topics],
            )
        ],
    )


def newest(database: Database, encoder: str) -> dict[str, TopicModel]:
    """The newest model of each application, as this encoder sees its questions."""
    rows = database.rows(
        f"SELECT {_COLUMNS} FROM topic_models FINAL WHERE encoder = {{encoder:String}} "
        "ORDER BY version DESC LIMIT 1 BY app",
        {"encoder": encoder},
    )
    return {row["app"]: _model(row) for row in rows}


def newest_version(database: Database, encoder: str) -> int:
    """Of any application's model; 0 where there is none. Greater whenever `newest` has become another."""
    rows = database.rows(
        "SELECT max(version) AS version FROM topic_models WHERE encoder = {encoder:String}", {"encoder": encoder}
    )
    return int(rows[0]["version"])


def last_id(database: Database, app: str) -> int:
    """The greatest id of a topic that this application ever had, by any encoder; 0 where it had none."""
    rows = database.rows(
        "SELECT max(arrayMax(arrayPushBack(ids, 0))) AS id FROM topic_models WHERE app = {app:String}", {"app": app}
    )
    return int(rows[0]["id"])


def _model(row: Mapping[str, Any]) -> TopicModel:
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
