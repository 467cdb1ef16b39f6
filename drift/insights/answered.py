"""Answered questions of a period, drawn by lot: which metrics they failed in, and whatever may explain that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.insights.insight import Period
from drift.insights.question_types import question_type
from drift.phrases import whereabouts
from drift.rules.records import lines
from drift.rules.series import Rule
from drift.topics.model import SEGMENT
from drift.topics.questions import ENCODED, vectors_of
from drift.windows import sql
from evaluators.spec import Vectors
from sinks.clickhouse.database import Database

_PERIOD = "time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"
_OF_APP = f"run_id = 'live' AND app = {{app:String}} AND {_PERIOD}"
_HEAD = 200  # characters that tell what kind of question it is


@dataclass(frozen=True, slots=True)
class Answered:
    """One trace. `failed`: its quality metrics beyond their lines; `lot`: a number that has nothing to do with it."""

    trace_id: str
    lot: int
    failed: tuple[str, ...]
    traits: Mapping[str, str]  # topic, question type, model, prompt version and segments, where known
    row: int | None = None  # of the vectors


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What was answered in one environment; `vectors` (float32 [n, dimension]) are of one encoder."""

    app: str
    environment: str
    answered: Sequence[Answered]
    vectors: Vectors

    @property
    def whereabouts(self) -> str:
        """Application and environment, in words."""
        return whereabouts(self.app, self.environment)


def judged(rules: Mapping[str, Rule]) -> str:
    """SELECT of environment, trace_id and `bad`, the metrics beyond the rules' lines, of live traces of a period.

    It stands where `with_lines` is said before; parameters are app, start and end.
    """
    return f"""
        SELECT environment, trace_id, any(model) AS some_model, any(prompt_version) AS some_prompt,
            any(segments) AS some_segments, groupArrayIf(metric, value < least[at] OR value > greatest[at]) AS bad
        FROM (
            SELECT environment, trace_id, model, prompt_version, segments, concat(evaluator, '.', key) AS metric, value,
                indexOf(names, metric) AS at
            FROM scores FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
            WHERE {_OF_APP} AND status = 'scored' AND evaluator IN {sql.texts(sorted({n.split(".")[0] for n in rules}))}
        )
        WHERE at > 0
        GROUP BY environment, trace_id"""


def with_lines(rules: Mapping[str, Rule]) -> str:
    """WITH that `judged` reads."""
    names = sorted(rules)
    least, greatest = ([repr(lines(rules[name])[side]) for name in names] for side in ("least", "greatest"))
    return (
        f"WITH {sql.array(map(sql.text, names), 'String')} AS names, {sql.array(least, 'Float64')} AS least, "
        f"{sql.array(greatest, 'Float64')} AS greatest"
    )


def samples(database: Database, app: str, rules: Mapping[str, Rule], period: Period, most: int) -> list[Sample]:
    """At most `most` scored traces of the app with their questions' vectors, by environment; the same each time."""
    within: dict[str, Any] = {"app": app, "start": period.start, "end": period.end}
    rows = database.rows(
        f"{with_lines(rules)} SELECT *, cityHash64(trace_id) AS lot FROM ({judged(rules)}) "
        "ORDER BY lot, environment, trace_id LIMIT {most:UInt64}",
        {**within, "most": most},
    )
    if not rows:
        return []
    # Of other tables those with a lot as low: no list of ids goes back, and no join holds their vectors in memory.
    drawn = f"{_OF_APP} AND cityHash64(trace_id) <= {{lot:UInt64}}"
    within["lot"] = rows[-1]["lot"]
    embedded = database.rows(
        f"SELECT environment, trace_id, topic, model, {ENCODED} AS encoded FROM embeddings FINAL WHERE {drawn}", within
    )
    asked = database.rows(
        f"SELECT environment, trace_id, substringUTF8(ifNull(question, ''), 1, {_HEAD}) AS head "
        f"FROM trace_texts FINAL WHERE {drawn}",
        within,
    )
    vectors = {(row["environment"], row["trace_id"]): row for row in embedded}
    types = {(row["environment"], row["trace_id"]): question_type(row["head"]) for row in asked if row["head"].strip()}
    found = []
    for environment in sorted({row["environment"] for row in rows}):
        here = [row for row in rows if row["environment"] == environment]
        found.append(_sample(app, environment, here, vectors, types))
    return found


def _sample(
    app: str,
    environment: str,
    rows: Sequence[Mapping[str, Any]],
    vectors: Mapping[tuple[str, str], Mapping[str, Any]],
    types: Mapping[tuple[str, str], str],
) -> Sample:
    encoders = [
        vectors[environment, row["trace_id"]]["model"] for row in rows if (environment, row["trace_id"]) in vectors
    ]
    encoder = max(sorted(set(encoders)), key=encoders.count, default="")
    answered: list[Answered] = []
    encoded: list[str] = []
    for row in rows:
        at = (environment, row["trace_id"])
        own = vectors.get(at)
        traits = {
            **{name: value for name, value in row["some_segments"].items() if name != SEGMENT},
            "model": row["some_model"],
            "prompt_version": row["some_prompt"],
            "question_type": types.get(at, ""),
            SEGMENT: own["topic"] if own else row["some_segments"].get(SEGMENT, ""),
        }
        place = None
        if own and own["model"] == encoder:
            place = len(encoded)
            encoded.append(own["encoded"])
        known = {name: value for name, value in traits.items() if value}
        answered.append(Answered(row["trace_id"], row["lot"], tuple(sorted(row["bad"])), known, place))
    return Sample(app, environment, answered, vectors_of(encoded) if encoded else np.zeros((0, 0), np.float32))
