"""What is known of the last answers to each question that was asked again, from the tables."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from drift.flips.disagreement import Answer
from drift.flips.links import STREAM, batches
from drift.windows import sql
from sinks.clickhouse.database import Database

ANSWERS = 10  # of a question, the last ones: of hundreds one differs by chance
TRACES = 20_000  # of an application, about; where more asked again, questions are drawn by lot
_REFUSALS = "unsuccessful_requests"  # evaluator; where its metric `unsuccessful` is 1, the answer is none
_WITHIN = (
    f"{STREAM} AND app = {{app:String}} AND time >= {{since:DateTime64(3, 'UTC')}} "
    "AND time < {until:DateTime64(3, 'UTC')}"
)
_NUMBERS = "arrayStringConcat(arrayMap(number -> hex(number), answer))"  # a tenth of the memory of lists

_Row = Mapping[str, Any]
_Key = tuple[str, str]  # environment, trace id


class Asked(NamedTuple):
    """A question under one prompt version, and its answers of which something is known, the newest first."""

    environment: str
    model: str
    encoder: str  # of all vectors of the answers; empty: there are none
    first: datetime
    last: datetime
    answers: Sequence[Answer]


def asked_again(database: Database, app: str, askings: int, since: datetime, until: datetime) -> Iterator[Asked]:
    """Questions of which so many of the last answers are known, in one order for the same rows."""
    within = {"app": app, "since": since, "until": until}
    rows = _traces(database, within, askings)
    ids = {row["trace_id"] for row in rows}
    said, refusals = _said(database, within, ids), _refusals(database, within, ids)
    groups: dict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in rows:
        groups[row["environment"], row["model"], row["prompt_version"], row["question_hash"]].append(row)
    for (environment, model, *_), some in groups.items():
        keys = [(environment, row["trace_id"]) for row in some]
        encoder = _encoder([said[key] for key in keys if key in said])
        made = [
            (row["time"], _answer(key, said.get(key), refusals, encoder)) for row, key in zip(some, keys, strict=True)
        ]
        known = [(time, answer) for time, answer in made if answer.is_known]
        if len(known) >= askings:
            times = [time for time, _ in known]
            yield Asked(environment, model, encoder, min(times), max(times), [answer for _, answer in known])


def answer_of(trace_id: str, is_refusal: bool | None, claims: Sequence[str], numbers: npt.NDArray[np.int8]) -> Answer:
    """From the columns of `embeddings`; where there are no numbers, there is no vector."""
    by_kind: dict[str, set[str]] = defaultdict(set)
    for claim in claims:
        kind, _, value = claim.partition(":")
        by_kind[kind].add(value)
    stated = {kind: frozenset(values) for kind, values in by_kind.items()}
    return Answer(trace_id, is_refusal, stated, numbers.astype(np.float32) if numbers.size else None)


def _traces(database: Database, within: Mapping[str, Any], askings: int) -> Sequence[_Row]:
    """The last ones that ask a question asked so often, by model and prompt version."""
    again = f"SELECT question_hash FROM traces WHERE {_WITHIN} AND question_hash != ''"
    often = f"GROUP BY question_hash HAVING count() >= {askings}"
    [counted] = database.rows(
        f"SELECT sum(least(n, {ANSWERS})) AS n FROM (SELECT count() AS n FROM traces "
        f"WHERE {_WITHIN} AND question_hash != '' {often})",
        within,
    )
    drawn = f"cityHash64(question_hash) % {math.ceil(counted['n'] / TRACES) or 1} = 0"
    return database.rows(
        f"""
        SELECT environment, model, prompt_version, question_hash, trace_id, time FROM traces FINAL
        WHERE {_WITHIN} AND question_hash IN ({again} AND {drawn} {often})
        ORDER BY environment, model, prompt_version, question_hash, time DESC, trace_id
        LIMIT {ANSWERS} BY environment, model, prompt_version, question_hash""",
        within,
    )


def _said(database: Database, within: Mapping[str, Any], ids: set[str]) -> dict[_Key, _Row]:
    return {
        (row["environment"], row["trace_id"]): row
        for some in batches(sorted(ids))
        for row in database.rows(
            f"SELECT environment, trace_id, model AS encoder, {_NUMBERS} AS numbers, answer_claims AS claims "
            f"FROM embeddings FINAL WHERE {_WITHIN} AND trace_id IN {sql.texts(some)}",
            within,
        )
    }


def _refusals(database: Database, within: Mapping[str, Any], ids: set[str]) -> dict[_Key, bool]:
    """Of the traces that the evaluator of refusals scored."""
    return {
        (row["environment"], row["trace_id"]): bool(row["refused"])
        for some in batches(sorted(ids))
        for row in database.rows(
            f"SELECT environment, trace_id, metrics['unsuccessful'] >= 0.5 AS refused FROM scores FINAL "
            f"WHERE {_WITHIN} AND evaluator = '{_REFUSALS}' AND status = 'scored' AND trace_id IN {sql.texts(some)}",
            within,
        )
    }


def _encoder(said: Sequence[_Row]) -> str:
    """That of most vectors: those of two never compare."""
    counted = Counter(row["encoder"] for row in said if row["numbers"])
    return max(counted, key=lambda name: (counted[name], name), default="")


def _answer(key: _Key, said: _Row | None, refusals: Mapping[_Key, bool], encoder: str) -> Answer:
    claims = said["claims"] if said is not None else ()
    encoded = bytes.fromhex(said["numbers"]) if said is not None and said["encoder"] == encoder else b""
    return answer_of(key[1], refusals.get(key), claims, np.frombuffer(encoded, np.int8))
