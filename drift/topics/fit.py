"""Fit topic models; topics that continue keep their ids and names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from ragtide.drift.leadership import Term
from ragtide.drift.settings import TopicSettings
from ragtide.drift.topics import store
from ragtide.drift.topics.clusters import NO_CLUSTER, Labels, find_clusters_apart
from ragtide.drift.topics.model import OTHER_TOPIC, Topic, TopicModel, centroid_of, cosines_of, min_cosine_of
from ragtide.drift.topics.naming import names_of
from ragtide.drift.topics.source import QuestionCount, TopicQuestions, question_counts, sample_questions
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database

_MIN_COSINE = 0.8  # of two centroids of one topic; those of different topics have about 0.4
_OUTLIER_SHARE = 0.02  # of a topic's questions, farthest from its centroid, do not count for its radius
_MAX_TOPICS = 200  # each topic has one in 200 questions at least
_MAX_RETIRED = 200  # topics without questions whose names are kept


def match_topics(centroids: Vectors, known: Sequence[Topic]) -> list[Topic | None]:
    """Match each centroid [n, dimension] with the known topic that it continues; None: it is new.

    The assignment maximises the sum of cosines (Kuhn 1955). Topics in use are matched before retired ones, so a topic
    that comes back gets its name again but takes no other's.
    """
    found: list[Topic | None] = [None] * len(centroids)
    for some in ([topic for topic in known if topic.questions], [topic for topic in known if not topic.questions]):
        free = [at for at, topic in enumerate(found) if topic is None]
        if free and some:
            for at, topic in _assign(centroids[free], some):
                found[free[at]] = topic
    return found


def _assign(centroids: Vectors, known: Sequence[Topic]) -> list[tuple[int, Topic]]:
    from scipy.optimize import linear_sum_assignment

    cosines = cosines_of(centroids, np.stack([topic.centroid for topic in known]))
    worth = np.where(
        cosines >= _MIN_COSINE, cosines, 0.0
    )  # a cosine below the minimum must not influence the assignment
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return [(row, known[at]) for row, at in zip(rows.tolist(), columns.tolist(), strict=True) if worth[row, at] > 0]


@dataclass(frozen=True, slots=True, eq=False)
class PreviousTopics:
    """Topics of the encoder's last model, and the last topic id of any model."""

    topics: Sequence[Topic] = ()
    last_id: int = 0


def fit_topics(database: Database, settings: TopicSettings, named: bool, term: Term, now: datetime) -> list[TopicModel]:
    """Fit and store the models of applications that are due.

    An application with enough questions is due if its encoder has no model, an old one, or one of half as many
    questions. `named`: names may contain words, if the settings allow it too. Raises `Unavailable` without
    scikit-learn.
    """
    since = now - timedelta(days=settings.period_days)
    made = []
    for found in question_counts(database, since, now):
        last = store.load_newest_models(database, found.encoder).get(found.app)
        if not _is_due(found, last, settings, now):
            continue
        questions = sample_questions(database, found.app, found.encoder, since, now, settings.questions, settings.seed)
        before = PreviousTopics(last.topics if last else (), store.last_id(database, found.app))
        model = TopicModel(
            app=found.app,
            encoder=found.encoder,
            version=term.next_version(),
            fitted_at=now,
            questions=questions.total,
            topics=find_topics(questions, settings, before, named),
        )
        store.save_model(database, model, term.epoch)
        made.append(model)
    return made


def find_topics(
    questions: TopicQuestions, settings: TopicSettings, before: PreviousTopics, named: bool
) -> tuple[Topic, ...]:
    """Find the topics of these questions; retired topics follow them."""
    least = max(settings.min_questions, len(questions.vectors) // _MAX_TOPICS)
    labels = find_clusters_apart(questions.vectors, least, settings.seed)
    members = [np.flatnonzero(labels == label) for label in range(labels.max(initial=NO_CLUSTER) + 1)]
    members.sort(key=lambda rows: (-len(rows), int(rows[0])))
    vectors = [questions.vectors[rows] for rows in members]
    centroids = [centroid_of(some) for some in vectors]
    known = match_topics(np.stack(centroids), before.topics) if centroids else []
    of_words = named and settings.named and None in known
    names = _names(questions, labels, members, settings.word_questions) if of_words else [""] * len(members)
    taken = {OTHER_TOPIC, *(topic.name for topic in before.topics)}
    topics: list[Topic] = []
    last_id = before.last_id
    for some, centroid, old, name in zip(vectors, centroids, known, names, strict=True):
        reach = min_cosine_of(some, centroid, _OUTLIER_SHARE)
        if old is None:
            last_id += 1
            old = Topic(last_id, _unique(name, last_id, taken), centroid, reach, len(some))
            taken.add(old.name)
        topics.append(replace(old, centroid=centroid, min_cosine=reach, questions=len(some)))
    kept = {topic.id for topic in topics}
    gone = [replace(topic, questions=0) for topic in before.topics if topic.id not in kept]
    return (*topics, *sorted(gone, key=lambda topic: -topic.id)[:_MAX_RETIRED])


def _is_due(found: QuestionCount, last: TopicModel | None, settings: TopicSettings, now: datetime) -> bool:
    if found.questions < settings.from_questions:
        return False
    if last is None or (now - last.fitted_at).total_seconds() >= settings.every_s:
        return True
    return min(found.questions, settings.questions) >= 2 * last.questions


def _names(questions: TopicQuestions, labels: Labels, members: Sequence[Labels], least: int) -> list[str]:
    texts = questions.texts
    return names_of(
        [[texts[row] for row in rows.tolist()] for rows in members],
        [text for text, label in zip(texts, labels.tolist(), strict=True) if label == NO_CLUSTER],
        least,
    )


def _unique(name: str, id_: int, taken: set[str]) -> str:
    """Make a name unique by its id."""
    if not name:
        return f"topic {id_}"
    return f"{name} ({id_})" if name in taken else name
