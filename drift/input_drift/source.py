"""Random samples of questions as vectors: at most a fixed number per interval."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple, Protocol

import numpy as np

from ragtide.drift.array_types import Flags, Integers
from ragtide.drift.stats import calendar, sample_minutes
from ragtide.drift.topics import ENCODED_VECTOR, START_OF_MINUTE, decode_vectors, minute_counts
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

_MAX_QUESTIONS = 10_000  # that one statement reads, about
_MAX_MINUTES = 5_000  # that one statement names, about
_SEED = 1
_WITHIN = (
    "run_id = {run_id:String} AND app = {app:String} AND environment = {environment:String} "
    "AND model = {encoder:String} AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}"
)


class QuestionSource(NamedTuple):
    """An application and the encoder of its questions' vectors; vectors of two encoders are not comparable."""

    app: str
    environment: str
    encoder: str
    run_id: str = LIVE


@dataclass(frozen=True, slots=True, eq=False)
class QuestionSample:
    """Questions by time `at` [n] (seconds since 1970); unknown `topics` are empty."""

    at: Integers
    trace_ids: tuple[str, ...]
    topics: tuple[str, ...]
    vectors: Vectors

    def select(self, those: Flags | Integers) -> "QuestionSample":
        """Select questions by flags or by index."""
        places = np.arange(len(self.at))[those].tolist()
        ids, topics = ([some[place] for place in places] for some in (self.trace_ids, self.topics))
        return QuestionSample(self.at[places], tuple(ids), tuple(topics), self.vectors[places])


EMPTY = QuestionSample(np.zeros(0, np.int64), (), (), np.zeros((0, 0), np.float32))


def active_sources(database: Database, since: datetime, until: datetime) -> list[QuestionSource]:
    """Return every application with questions in [since, until), with its newest encoder."""
    rows = database.rows(
        "SELECT app, environment, argMax(model, time) AS encoder FROM embeddings "
        "WHERE run_id = 'live' AND is_deleted = 0 AND time >= {since:DateTime64(3, 'UTC')} "
        "AND time < {until:DateTime64(3, 'UTC')} GROUP BY app, environment ORDER BY app, environment",
        {"since": since, "until": until},
    )
    return [QuestionSource(**row) for row in rows]


class QuestionStore(Protocol):
    """The questions that samples are taken from."""

    def sample(self, source: QuestionSource, since: int, until: int, every_s: int, most: int) -> QuestionSample:
        """Sample at most `most` questions of each interval of `every_s` in [since, until), both multiples of it.

        The sample of an interval depends on its questions only, not on the range.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClickHouseQuestionStore:
    """Samples from table `embeddings`. If there are many more questions, only a sample of whole minutes is read."""

    database: Database

    def sample(self, source: QuestionSource, since: int, until: int, every_s: int, most: int) -> QuestionSample:
        """See `QuestionStore`."""
        within = {**source._asdict(), "since": calendar.utc(since), "until": calendar.utc(until)}
        counts = minute_counts(self.database, _WITHIN, within)
        return concatenate(self._read(within, some, every_s, most) for some in _portions(counts, every_s, most))

    def _read(self, within: Mapping[str, object], minutes: Sequence[int], every_s: int, most: int) -> QuestionSample:
        rows = self.database.rows(
            f"""
            SELECT toInt64(toUnixTimestamp(time)) AS at, trace_id, topic, {ENCODED_VECTOR} AS vector
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
    """Concatenate samples."""
    some = [one for one in samples if len(one.at)] or [EMPTY]
    return QuestionSample(
        np.concatenate([one.at for one in some]),
        tuple(id_ for one in some for id_ in one.trace_ids),
        tuple(topic for one in some for topic in one.topics),
        np.concatenate([one.vectors for one in some]),
    )


def _portions(counts: Mapping[int, int], every_s: int, most: int) -> Iterator[Sequence[int]]:
    """Sample minutes of each interval; yield those of as many intervals as one statement reads."""
    portion: list[int] = []
    intervals = 0
    for interval, minutes in groupby(counts, key=lambda minute: minute // every_s):
        portion += sample_minutes({minute: counts[minute] for minute in minutes}, most, f"{_SEED} {interval}")
        intervals += 1
        if intervals * most >= _MAX_QUESTIONS or len(portion) >= _MAX_MINUTES:
            yield portion
            portion, intervals = [], 0
    if portion:
        yield portion
