"""Topic models are fitted anew, and topics that are still asked about keep their ids and names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from drift.leadership import Term
from drift.settings import TopicSettings
from drift.topics import stored
from drift.topics.apart import clusters_of
from drift.topics.clusters import NONE, Labels
from drift.topics.matching import continued
from drift.topics.model import OTHER, Topic, TopicModel, centroid_of, least_cosine_of
from drift.topics.naming import names_of
from drift.topics.questions import Asked, Questions, asked, drawn
from sinks.clickhouse.database import Database

_LEFT_OUT = 0.02  # of a topic's questions: what lies furthest from its middle does not say how far it reaches
_PARTS = 200  # a topic has at least so large a part of the questions: one in 200
_RETIRED = 200  # topics no longer asked about whose names are remembered


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What a new model goes on from: the topics of the last one of its encoder, and the last id of any."""

    topics: Sequence[Topic] = ()
    last_id: int = 0


def fit_topics(database: Database, settings: TopicSettings, named: bool, term: Term, now: datetime) -> list[TopicModel]:
    """The models of applications that are due, stored when this returns.

    Due is an application with enough questions that has no model of its encoder, one that is old, or one of half as
    many questions. `named`: words may stand in names, where the settings say so too. Raises `Unavailable` without
    scikit-learn.
    """
    since = now - timedelta(days=settings.period_days)
    made = []
    for found in asked(database, since, now):
        last = stored.newest(database, found.encoder).get(found.app)
        if not _due(found, last, settings, now):
            continue
        questions = drawn(database, found.app, found.encoder, since, now, settings.questions, settings.seed)
        before = Before(last.topics if last else (), stored.last_id(database, found.app))
        model = TopicModel(
            app=found.app,
            encoder=found.encoder,
            version=term.next_version(),
            fitted_at=now,
            questions=questions.asked,
            topics=fitted(questions, settings, before, named),
        )
        stored.store(database, model, term.epoch)
        made.append(model)
    return made


def fitted(questions: Questions, settings: TopicSettings, before: Before, named: bool) -> tuple[Topic, ...]:
    """The topics of these questions, those that are retired behind them."""
    least = max(settings.least_questions, len(questions.vectors) // _PARTS)
    labels = clusters_of(questions.vectors, least, settings.seed)
    members = [np.flatnonzero(labels == label) for label in range(labels.max(initial=NONE) + 1)]
    members.sort(key=lambda rows: (-len(rows), int(rows[0])))
    vectors = [questions.vectors[rows] for rows in members]
    centroids = [centroid_of(some) for some in vectors]
    known = continued(np.stack(centroids), before.topics) if centroids else []
    of_words = named and settings.named and None in known
    names = _names(questions, labels, members, settings.word_questions) if of_words else [""] * len(members)
    taken = {OTHER, *(topic.name for topic in before.topics)}
    topics: list[Topic] = []
    last_id = before.last_id
    for some, centroid, old, name in zip(vectors, centroids, known, names, strict=True):
        reach = least_cosine_of(some, centroid, _LEFT_OUT)
        if old is None:
            last_id += 1
            old = Topic(last_id, _unique(name, last_id, taken), centroid, reach, len(some))
            taken.add(old.name)
        topics.append(replace(old, centroid=centroid, least_cosine=reach, questions=len(some)))
    kept = {topic.id for topic in topics}
    gone = [replace(topic, questions=0) for topic in before.topics if topic.id not in kept]
    return (*topics, *sorted(gone, key=lambda topic: -topic.id)[:_RETIRED])


def _due(found: Asked, last: TopicModel | None, settings: TopicSettings, now: datetime) -> bool:
    if found.questions < settings.from_questions:
        return False
    if last is None or (now - last.fitted_at).total_seconds() >= settings.every_s:
        return True
    return min(found.questions, settings.questions) >= 2 * last.questions


def _names(questions: Questions, labels: Labels, members: Sequence[Labels], least: int) -> list[str]:
    texts = questions.texts
    return names_of(
        [[texts[row] for row in rows.tolist()] for rows in members],
        [text for text, label in zip(texts, labels.tolist(), strict=True) if label == NONE],
        least,
    )


def _unique(name: str, id_: int, taken: set[str]) -> str:
    """No other topic's name, also where the words are the same."""
    if not name:
        return f"topic {id_}"
    return f"{name} ({id_})" if name in taken else name
