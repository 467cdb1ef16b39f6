"""Link perturbed traces to their originals by the newest messages, by trace id or by test case."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from ragtide.drift import sql
from ragtide.drift.windows import STREAMED_RUNS
from ragtide.evaluators.trace import Relationship, Technique
from ragtide.sinks.clickhouse.database import Database

STREAM = f"run_id IN {sql.texts(STREAMED_RUNS)}"
NEWEST = "(version, NOT is_deleted)"  # where a trace moved, its tombstone has the version of its new place
_RELATION = "perturbation_of"
_PERTURBED = f"position(relationships, '{_RELATION}') > 0"
_SINCE = "time >= {since:DateTime64(3, 'UTC')}"
_MAX_CHARACTERS = 100_000  # of the ids in one statement, which may be 256 KiB long
_MAX_TECHNIQUES = 10
_MAX_NAME = 60  # characters of one technique


class PerturbationLink(NamedTuple):
    """A perturbed trace; `original_id` is empty if the original is unknown."""

    trace_id: str
    app: str
    environment: str
    model: str
    time: datetime
    techniques: str
    original_id: str


def perturbation_links(database: Database, since: datetime, reach: timedelta) -> list[PerturbationLink]:
    """Return the perturbed traces since then, by id. Originals named by test case may be older by `reach`.

    Of originals with the same test case, application and model the nearest in time counts.
    """
    rows = _newest_rows(database, "app, environment, model, time, relationships", _PERTURBED, since)
    related = [(row, relationship) for row in rows if (relationship := _relationship(row["relationships"])) is not None]
    cases = {
        relationship.test_case for _, relationship in related if relationship.test_case and not relationship.trace_id
    }
    asked = _by_test_case(database, cases, since - reach)
    found = []
    for row, relationship in related:
        original_id = relationship.trace_id or ""
        if not original_id:
            originals = asked.get((row["app"], row["environment"], row["model"], relationship.test_case or ""), [])
            original_id = _nearest(originals, row["time"])
        trace = (row["trace_id"], row["app"], row["environment"], row["model"], row["time"])
        found.append(PerturbationLink(*trace, technique_label(relationship.techniques), original_id))
    return found


def technique_label(techniques: Iterable[Technique]) -> str:
    """Name the techniques in the order applied, each with its intensity: `typo 0.1 > paraphrase`."""
    return " > ".join(_technique_name(one) for one in tuple(techniques)[:_MAX_TECHNIQUES]) or "unnamed"


def id_batches(ids: Iterable[str]) -> Iterator[list[str]]:
    """Split ids in batches that one statement can name."""
    some: list[str] = []
    length = 0
    for one in ids:
        if some and length + len(one) > _MAX_CHARACTERS:
            yield some
            some, length = [], 0
        some.append(one)
        length += len(one) + 4
    if some:
        yield some


def _newest_rows(database: Database, columns: str, condition: str, since: datetime) -> list[Mapping[str, Any]]:
    """Read the newest row of each trace with a row that fits, without tombstones, whichever minute it is in."""
    rows = database.rows(
        f"""
        SELECT trace_id, argMax(({columns}), {NEWEST}) AS known FROM traces
        WHERE {STREAM} AND {_SINCE} AND trace_id IN (
            SELECT trace_id FROM traces WHERE {STREAM} AND {_SINCE} AND {condition})
        GROUP BY trace_id HAVING NOT argMax(is_deleted, {NEWEST}) ORDER BY trace_id""",
        {"since": since},
    )
    names = columns.split(", ")
    return [{"trace_id": row["trace_id"], **dict(zip(names, row["known"], strict=True))} for row in rows]


def _relationship(relationships: str) -> Relationship | None:
    """Return the original that the message names; the first of several."""
    every = msgspec.json.decode(relationships, type=tuple[Relationship, ...])
    return next((one for one in every if one.type == _RELATION), None)


def _technique_name(one: Technique) -> str:
    intensity = f"{one.intensity:.3g}" if isinstance(one.intensity, int | float) else one.intensity or ""
    return " ".join(f"{one.technique} {intensity}".split())[:_MAX_NAME]


def _by_test_case(
    database: Database, cases: Iterable[str], since: datetime
) -> dict[tuple[str, str, str, str], list[tuple[datetime, str]]]:
    """Times and ids of unperturbed traces, by application, environment, model and test case."""
    found: dict[tuple[str, str, str, str], list[tuple[datetime, str]]] = {}
    for some in id_batches(sorted(cases)):
        condition = f"test_case != '{{}}' AND JSONExtractString(test_case, 'key') IN {sql.texts(some)}"
        for row in _newest_rows(database, "app, environment, model, time, relationships, test_case", condition, since):
            case = msgspec.json.decode(row["test_case"]).get("key", "")
            if _relationship(row["relationships"]) is None:
                key = (row["app"], row["environment"], row["model"], case)
                found.setdefault(key, []).append((row["time"], row["trace_id"]))
    return found


def _nearest(originals: Iterable[tuple[datetime, str]], time: datetime) -> str:
    return min(originals, key=lambda one: (abs(one[0] - time), one), default=(time, ""))[1]
