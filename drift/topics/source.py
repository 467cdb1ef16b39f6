"""Random samples of an application's questions: vectors and, where stored, texts."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.stats import sample_minutes
from ragtide.drift.topics.naming import MAX_CHARACTERS
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database

_LIVE = "run_id = 'live' AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')}"
# Base64 takes a tenth of the memory of lists of numbers.
# All four bytes of each float32: arrayStringConcat drops zero bytes at the end of a FixedString, and so 0.0.
_BYTES = "char(bits, bitShiftRight(bits, 8), bitShiftRight(bits, 16), bitShiftRight(bits, 24))"
_BITS = "arrayMap(number -> reinterpretAsUInt32(number), vector)"
ENCODED_VECTOR = f"base64Encode(arrayStringConcat(arrayMap(bits -> {_BYTES}, {_BITS})))"
START_OF_MINUTE = "toUnixTimestamp(toStartOfMinute(time))"


@dataclass(frozen=True, slots=True, eq=False)
class TopicQuestions:
    """Row i of `vectors` (float32 [n, dimension]) is question i; vectors are distinct.

    `texts` are empty if not stored. `total` counts the sampled questions, repeated ones too.
    """

    vectors: Vectors
    texts: Sequence[str]
    total: int


class QuestionCount(NamedTuple):
    """Number of live questions of an application with a vector of its current encoder."""

    app: str
    encoder: str
    questions: int


def question_counts(database: Database, since: datetime, until: datetime) -> list[QuestionCount]:
    """Count the questions of every application in [since, until), by name."""
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
    """Sample at most `most` live questions of [since, until), the same for the same rows and seed.

    If there are many more, whole minutes are sampled first, so the database reads no others.
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
            SELECT environment, trace_id, {ENCODED_VECTOR} AS vector FROM embeddings FINAL
            WHERE {drawn_from} AND {of_encoder}
            ORDER BY cityHash64(trace_id, {{seed:UInt64}}), environment, trace_id LIMIT {{most:UInt64}}
        ) AS sampled
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
    """Decode the vectors that a SELECT of `ENCODED_VECTOR` returned: float32 [n, dimension]."""
    data = b"".join(map(base64.b64decode, encoded))
    return np.frombuffer(data, "<f4").reshape(len(encoded), -1)


def minute_counts(database: Database, where: str, parameters: Mapping[str, object]) -> dict[int, int]:
    """Count the vectors of each minute (seconds since 1970), ascending."""
    rows = database.rows(
        f"SELECT {START_OF_MINUTE} AS minute, count() AS n FROM embeddings WHERE {where} AND is_deleted = 0 "
        "GROUP BY minute ORDER BY minute",
        parameters,
    )
    return {int(row["minute"]): int(row["n"]) for row in rows}
