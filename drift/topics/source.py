"""Questions of an application drawn by lot, with their vectors, and what may be read of their words."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.stats.sampling import sample_minutes
from ragtide.drift.topics.naming import MAX_CHARACTERS
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database

_LIVE = "run_id = 'live' AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}"
# A tenth of the memory that lists of numbers take.
# All four bytes of each float32: arrayStringConcat drops zero bytes at the end of a FixedString, and so 0.0.
_BYTES = "char(bits, bitShiftRight(bits, 8), bitShiftRight(bits, 16), bitShiftRight(bits, 24))"
_BITS = "arrayMap(number -> reinterpretAsUInt32(number), vector)"
ENCODED = f"base64Encode(arrayStringConcat(arrayMap(bits -> {_BYTES}, {_BITS})))"
START_OF_MINUTE = "toUnixTimestamp(toStartOfMinute(time))"


@dataclass(frozen=True, slots=True, eq=False)
class TopicQuestions:
    """Row i of `vectors` (float32 [n, dimension]) is question i; no two vectors are the same.

    `texts` are empty where none is stored. `question_counts` counts all that were drawn, repeated ones too.
    """

    vectors: Vectors
    texts: Sequence[str]
    total: int


class QuestionCount(NamedTuple):
    """How many live questions of an application have a vector of the encoder that it was last seen with."""

    app: str
    encoder: str
    questions: int


def question_counts(database: Database, since: datetime, until: datetime) -> list[QuestionCount]:
    """Every application that asked in [since, until), by name."""
    rows = database.rows(
        f"""
        SELECT app, argMax(model, newest) AS encoder, toUInt64(argMax(n, newest)) AS questions
        FROM (
            SELECT app, model, count() AS n, max(time) AS newest FROM embeddings
            WHERE {_LIVE} AND is_deleted = 0 GROUP BY app, model
        )
        GROUP BY app ORDER BY app
        """,
        {"since": since, "until": until},
    )
    return [QuestionCount(**row) for row in rows]


def sample_questions(
    database: Database, app: str, encoder: str, since: datetime, until: datetime, most: int, seed: int
) -> TopicQuestions:
    """At most `most` live questions asked in [since, until), the same for the same rows and seed.

    Where there are many more, whole minutes are drawn first: the database reads no others.
    """
    of_app, of_encoder = f"{_LIVE} AND app = {{app:String}}", "model = {encoder:String}"
    within = {"since": since, "until": until, "app": app, "encoder": encoder}
    minutes = sample_minutes(minute_counts(database, f"{of_app} AND {of_encoder}", within), most, seed)
    if not minutes:
        return TopicQuestions(np.zeros((0, 0), np.float32), (), 0)
    drawn_from = f"{of_app} AND {START_OF_MINUTE} IN ({', '.join(map(str, minutes))})"
    rows = database.rows(
        f"""
        SELECT vector, text
        FROM (
            SELECT environment, trace_id, {ENCODED} AS vector FROM embeddings FINAL
            WHERE {drawn_from} AND {of_encoder}
            ORDER BY cityHash64(trace_id, {{seed:UInt64}}), environment, trace_id LIMIT {{most:UInt64}}
        ) AS lot
        LEFT JOIN (
            SELECT environment, trace_id, substringUTF8(ifNull(question, ''), 1, {MAX_CHARACTERS}) AS text
            FROM trace_texts FINAL WHERE {drawn_from}
        ) AS texts USING (environment, trace_id)
        ORDER BY cityHash64(trace_id, {{seed:UInt64}}), environment, trace_id
        """,
        {**within, "most": most, "seed": seed},
    )
    texts = {row["vector"]: row["text"] for row in reversed(rows)}
    return TopicQuestions(decode_vectors(list(texts)[::-1]), list(texts.values())[::-1], len(rows))


def decode_vectors(encoded: Sequence[str]) -> Vectors:
    """The vectors that a SELECT of `ENCODED` gave, float32 [n, dimension]."""
    data = b"".join(map(base64.b64decode, encoded))
    return np.frombuffer(data, "<f4").reshape(len(encoded), -1)


def minute_counts(database: Database, where: str, parameters: Mapping[str, object]) -> dict[int, int]:
    """How many vectors of questions each minute has, in its order (seconds since 1970)."""
    rows = database.rows(
        f"SELECT {START_OF_MINUTE} AS minute, count() AS n FROM embeddings WHERE {where} AND is_deleted = 0 "
        "GROUP BY minute ORDER BY minute",
        parameters,
    )
    return {int(row["minute"]): int(row["n"]) for row in rows}
