"""The job that fits topics, on planted topics in the real tables: found, named, kept, retired, and stored once."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from ragtide.drift.leadership import Term
from ragtide.drift.settings import TopicSettings
from ragtide.drift.topics import store as stored
from ragtide.drift.topics.fit import PreviousTopics, find_topics, fit_topics
from ragtide.drift.topics.model import OTHER_TOPIC, Topic
from ragtide.drift.topics.source import TopicQuestions, question_counts, sample_questions
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import EmbeddingRow
from tests.drift.topics.synthetic import around, directions, scattered
from tests.drift.world import score_row, text_row

NOW = datetime.now(UTC).replace(second=0, microsecond=0)  # what is old has expired
SETTINGS = TopicSettings(from_questions=60, period_days=1, every_s=3600)
ABOUT = ("refund order", "reset password", "deliver norway", "cancel contract")
OF_PLANTED = ("order, refund", "password, reset", "deliver, norway", "cancel, contract")


def sentences(what: str, count: int) -> list[str]:
    return [f"how can i {what} {chr(97 + i % 26) * 3}{chr(97 + i // 26) * 3}?" for i in range(count)]


def planted(topics: Sequence[int], each: int = 30, seed: int = 0) -> TopicQuestions:
    vectors = [around(directions(8)[topic], each, 10 * seed + topic) for topic in topics]
    texts = [text for topic in topics for text in sentences(ABOUT[topic], each)]
    return TopicQuestions(np.concatenate(vectors), texts, len(texts))


def ask(
    database: Database,
    questions: TopicQuestions,
    at: datetime,
    app: str = "shop",
    encoder: str = "e@1",
    name: str = "t",
) -> None:
    """As the stream stores them, 0.1 s apart."""
    rows = [score_row(at + i * timedelta(seconds=0.1), f"{name}{i}", app=app) for i in range(len(questions.texts))]
    database.insert("trace_texts", [text_row(*pair) for pair in zip(rows, questions.texts, strict=True)])
    database.insert(
        "embeddings",
        [
            EmbeddingRow("live", app, "prod", row.time, row.trace_id, row.version, encoder, vector.tolist())
            for row, vector in zip(rows, questions.vectors, strict=True)
        ],
    )


def names(topics: Sequence[Topic]) -> list[str]:
    return [topic.name for topic in topics if topic.questions]


def ids(topics: Sequence[Topic]) -> dict[str, int]:
    return {topic.name: topic.id for topic in topics}


def test_planted_topics_are_found_and_named() -> None:
    topics = find_topics(planted([0, 1, 2, 3]), SETTINGS, PreviousTopics(), named=True)
    assert sorted(names(topics)) == sorted(OF_PLANTED)
    assert sorted(topic.id for topic in topics) == [1, 2, 3, 4]
    assert all(topic.min_cosine > 0.8 for topic in topics)


def test_names_and_ids_are_kept_over_refits_with_more() -> None:
    first = find_topics(planted([0, 1, 2]), SETTINGS, PreviousTopics(), named=True)
    more = planted([2, 1, 0, 3], each=45, seed=1)
    second = find_topics(more, SETTINGS, PreviousTopics(first, last_id=3), named=True)
    assert ids(second) == {**ids(first), OF_PLANTED[3]: 4}


def test_a_vanished_topic_retires_and_comes_back_under_its_name() -> None:
    first = find_topics(planted([0, 1, 2]), SETTINGS, PreviousTopics(), named=True)
    second = find_topics(planted([0, 1, 3], seed=1), SETTINGS, PreviousTopics(first, last_id=3), named=True)
    assert [topic.name for topic in second if not topic.questions] == [OF_PLANTED[2]]
    assert ids(second)[OF_PLANTED[3]] == 4
    third = find_topics(planted([1, 2, 3], seed=2), SETTINGS, PreviousTopics(second, last_id=4), named=True)
    assert ids(third) == ids(second)
    assert sorted(names(third)) == sorted(OF_PLANTED[1:])


@pytest.mark.parametrize(("stored", "wanted"), [(False, True), (True, False)])
def test_without_words_topics_are_numbered(stored: bool, wanted: bool) -> None:
    settings = SETTINGS.model_copy(update={"named": wanted})
    topics = find_topics(planted([0, 1]), settings, PreviousTopics(last_id=7), named=stored)
    assert sorted(names(topics)) == ["topic 8", "topic 9"]


def test_another_topic_of_the_same_words_is_told_apart() -> None:
    first = find_topics(planted([0, 1, 2]), SETTINGS, PreviousTopics(), named=True)
    far = [topic for topic in first if topic.name == OF_PLANTED[0]]
    elsewhere = planted([0, 1])
    moved = TopicQuestions(
        np.concatenate([around(directions(8)[6], 30, 5), elsewhere.vectors[30:]]), elsewhere.texts, 60
    )
    second = find_topics(moved, SETTINGS, PreviousTopics(first, last_id=3), named=True)
    assert f"{OF_PLANTED[0]} (4)" in names(second)
    assert far[0].id in {topic.id for topic in second if not topic.questions}


def test_few_questions_have_no_topics() -> None:
    assert find_topics(planted([0], each=12), SETTINGS, PreviousTopics(), named=True) == ()


@pytest.mark.clickhouse
def test_a_model_is_fitted_when_due_and_read_back_whole(database: Database) -> None:
    term = Term(3, NOW)
    ask(database, planted([0, 1, 2], each=25), NOW - timedelta(hours=2))
    ask(database, planted([0], each=20), NOW - timedelta(hours=2), app="small", name="s")
    (made,) = fit_topics(database, SETTINGS, True, term, NOW)
    assert (made.app, made.encoder, made.questions, made.version >> 32) == ("shop", "e@1", 75, 3)
    assert sorted(names(made.topics)) == sorted(OF_PLANTED[:3])
    read = stored.load_newest_models(database, "e@1")["shop"]
    assert ids(read.topics) == ids(made.topics)
    assert read.assign(around(directions(8)[0], 50, 77)).count(OF_PLANTED[0]) >= 45
    assert read.assign(scattered(50, 78)).count(OTHER_TOPIC) == 50
    assert stored.newest_model_version(database, "e@1") == made.version
    assert fit_topics(database, SETTINGS, True, term, NOW + timedelta(minutes=1)) == []

    ask(database, planted([3], each=80), NOW, name="more")  # twice as many as then
    (second,) = fit_topics(database, SETTINGS, True, term, NOW + timedelta(minutes=2))
    assert ids(second.topics).items() >= ids(made.topics).items()
    (third,) = fit_topics(database, SETTINGS, True, term, NOW + timedelta(hours=2))
    assert ids(third.topics) == ids(second.topics)
    assert stored.last_id(database, "shop") == 4


@pytest.mark.clickhouse
def test_another_encoder_has_topics_of_its_own_and_new_ids(database: Database) -> None:
    ask(database, planted([0, 1]), NOW - timedelta(hours=2))
    fit_topics(database, SETTINGS, False, Term(1, NOW), NOW)
    ask(database, planted([0, 1], seed=1), NOW - timedelta(hours=1), encoder="f@2", name="u")
    (second,) = fit_topics(database, SETTINGS, False, Term(1, NOW), NOW)
    assert (second.encoder, sorted(names(second.topics))) == ("f@2", ["topic 3", "topic 4"])
    assert set(names(stored.load_newest_models(database, "e@1")["shop"].topics)) == {"topic 1", "topic 2"}


@pytest.mark.clickhouse
def test_a_zombie_never_has_the_newest_model(database: Database) -> None:
    ask(database, planted([0, 1]), NOW - timedelta(hours=2))
    fit_topics(database, SETTINGS, True, Term(5, NOW), NOW)
    newest = stored.newest_model_version(database, "e@1")
    late = NOW + timedelta(hours=3)
    (zombies,) = fit_topics(database, SETTINGS, True, Term(4, NOW), late)
    assert zombies.version < newest
    assert stored.load_newest_models(database, "e@1")["shop"].version == newest


@pytest.mark.clickhouse
def test_questions_are_drawn_by_lot_the_same_each_time(database: Database) -> None:
    many = planted([0, 1], each=100)
    ask(database, many, NOW - timedelta(hours=3))
    ask(database, TopicQuestions(many.vectors[:40], many.texts[:40], 40), NOW - timedelta(hours=2), name="again")
    since = NOW - timedelta(days=1)
    assert [(one.app, one.questions) for one in question_counts(database, since, NOW)] == [("shop", 240)]

    def lot(most: int, seed: int) -> TopicQuestions:
        return sample_questions(database, "shop", "e@1", since, NOW, most, seed)

    everything = lot(1000, 1)
    assert (everything.total, len(everything.vectors)) == (240, 200)  # one that is asked again is one
    assert sorted(everything.texts) == sorted(many.texts)
    text_of = {vector.tobytes(): text for vector, text in zip(many.vectors, many.texts, strict=True)}
    assert [text_of[vector.tobytes()] for vector in everything.vectors] == list(everything.texts)
    some, same, others = lot(50, 1), lot(50, 1), lot(50, 2)
    assert some.total == 50
    assert some.texts == same.texts
    assert set(some.texts) != set(others.texts)
