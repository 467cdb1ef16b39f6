"""Questions by lot, as vectors: a bounded number of each stretch of time, however many there are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np

from ragtide.drift.detectors.arrays import Flags, Integers
from ragtide.drift.stats import calendar
from ragtide.drift.stats.sampling import sample_minutes
from ragtide.drift.topics.source import ENCODED, START_OF_MINUTE, decode_vectors, minute_counts
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_MAX_QUESTIONS = 10_000  # questions that one statement reads at most, about
_MAX_MINUTES = 5_000  # that one statement names at most, about
_SEED = 1
_WITHIN = (
    "run_id = {run_id:String} AND app = {app:String} AND environment = {environment:String} "
    "AND model = {encoder:String} AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}"
)


class QuestionSource(NamedTuple):
    """Where questions come from: an application, and the encoder of their vectors; two encoders never compare."""

    app: str
    environment: str
    encoder: str
    run_id: str = LIVE


@dataclass(frozen=True, slots=True, eq=False)
class QuestionSample:
    """Questions in the order of their times `at` [n] (seconds since 1970); `topics` are empty where none was known."""

    at: Integers
    trace_ids: tuple[str, ...]
    topics: tuple[str, ...]
    vectors: Vectors

    def select(self, those: Flags | Integers) -> "QuestionSample":
        """Some of them, by flags or by places."""
        places = np.arange(len(self.at))[those].tolist()
        ids, topics = ([some[place] for place in places] for some in (self.trace_ids, self.topics))
        return QuestionSample(self.at[places], tuple(ids), tuple(topics), self.vectors[places])


EMPTY = QuestionSample(np.zeros(0, np.int64), (), (), np.zeros((0, 0), np.float32))


def active_sources(database: Database, since: datetime, until: datetime) -> list[QuestionSource]:
    """Every application that asked in [since, until), with the encoder that it was last seen with."""
    rows = database.rows(
        "SELECT app, environment, argMax(model, time) AS encoder FROM embeddings "
        "WHERE run_id = 'live' AND is_deleted = 0 AND time >= {since:DateTime64(3, 'UTC')} "
        "AND time < {until:DateTime64(3, 'UTC')} GROUP BY app, environment ORDER BY app, environment",
        {"since": since, "until": until},
    )
    return [QuestionSource(**row) for row in rows]


class QuestionStore(Protocol):
    """Where lots are drawn from."""

    def sample(self, source: QuestionSource, since: int, until: int, every_s: int, most: int) -> QuestionSample:
        """At most `most` questions of each whole stretch of `every_s` in [since, until), both multiples of it.

        The same for the same questions, whatever the range that a stretch is drawn with.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClickHouseQuestionStore:
    """Table `embeddings`. Where many more were asked, whole minutes are drawn first: no others are read."""

    database: Database

    def sample(self, source: QuestionSource, since: int, until: int, every_s: int, most: int) -> QuestionSample:
        """See `QuestionStore`."""
        within = {**source._asdict(), "since": calendar.utc(since), "until": calendar.utc(until)}
        counts = minute_counts(self.database, _WITHIN, within)
        return concatenate(self._read(within, some, every_s, most) for some in _portions(counts, every_s, most))

    def _read(self, within: Mapping[str, object], minutes: Sequence[int], every_s: int, most: int) -> QuestionSample:
        rows = self.database.rows(
            f"""
            SELECT toInt64(toUnixTimestamp(time)) AS at, trace_id, topic, {ENCODED} AS vector
            FROM embeddings FINAL
            WHERE {_WITHIN} AND {START_OF_MINUTE} IN ({", ".join(map(str, minutes))})
            ORDER BY cityHash64(trace_id, {_SEED}), trace_id LIMIT {most} BY intDiv(at, {every_s})
            """,
            within,
        )
        rows.sort(key=lambda row: (row["at"], row["trace_id"]))
        return QuestionSample(
            np.array([row["at"] for row in rows], np.int64),
            tuple(row["trace_id"] for row in rows),
            tuple(row["topic"] for row in rows),
            decode_vectors([row["vector"] for row in rows]) if rows else EMPTY.vectors,
        )


def concatenate(samples: Iterable[QuestionSample]) -> QuestionSample:
    """All of them, one after the other."""
    some = [one for one in samples if len(one.at)] or [EMPTY]
    return QuestionSample(
        np.concatenate([one.at for one in some]),
        tuple(id_ for one in some for id_ in one.trace_ids),
        tuple(topic for one in some for topic in one.topics),
        np.concatenate([one.vectors for one in some]),
    )


def _portions(counts: Mapping[int, int], every_s: int, most: int) -> Iterator[Sequence[int]]:
    """Sampled minutes of as many whole stretches as one statement reads."""
    portion: list[int] = []
    stretches = 0
    for stretch, minutes in groupby(counts, key=lambda minute: minute // every_s):
        portion += sample_minutes({minute: counts[minute] for minute in minutes}, most, f"{_SEED} {stretch}")
        stretches += 1
        if stretches * most >= _MAX_QUESTIONS or len(portion) >= _MAX_MINUTES:
            yield portion
            portion, stretches = [], 0
    if portion:
        yield portion
