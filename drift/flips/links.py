"""Which traces are perturbed forms of which: as the newest messages tell it, by trace id or by test case."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from drift.windows import sql
from drift.windows.scope import STREAMED
from evaluators.trace import Relationship, Technique
from sinks.clickhouse.database import Database

STREAM = f"run_id IN {sql.texts(STREAMED)}"
NEWEST = "(version, NOT is_deleted)"  # where a trace moved, its tombstone has the version of its new place
_RELATION = "perturbation_of"
_PERTURBED = f"position(relationships, '{_RELATION}') > 0"
_SINCE = "time >= {since:DateTime64(3, 'UTC')}"
_CHARACTERS = 100_000  # of the ids in one statement, which may be 256 KiB long
_TECHNIQUES = 10
_NAME = 60  # characters of one technique


class Link(NamedTuple):
    """A perturbed trace; `original_id` is empty where the original was never seen or cannot be told."""

    trace_id: str
    app: str
    environment: str
    model: str
    time: datetime
    techniques: str
    original_id: str


def links(database: Database, since: datetime, reach: timedelta) -> list[Link]:
    """The perturbed traces of that time on, by id. An original may be older, one told as a test case by `reach`.

    Of originals with the same test case, application and model the nearest in time is meant.
    """
    rows = _known(database, "app, environment, model, time, relationships", _PERTURBED, since)
    told = [(row, said) for row in rows if (said := _said(row["relationships"])) is not None]
    cases = {said.test_case for _, said in told if said.test_case and not said.trace_id}
    asked = _by_test_case(database, cases, since - reach)
    found = []
    for row, said in told:
        original_id = said.trace_id or ""
        if not original_id:
            there = asked.get((row["app"], row["environment"], row["model"], said.test_case or ""), [])
            original_id = _nearest(there, row["time"])
        place = (row["trace_id"], row["app"], row["environment"], row["model"], row["time"])
        found.append(Link(*place, named(said.techniques), original_id))
    return found


def named(techniques: Iterable[Technique]) -> str:
    """In the order applied, each with its intensity: `typo 0.1 > paraphrase`."""
    return " > ".join(_name(one) for one in tuple(techniques)[:_TECHNIQUES]) or "unnamed"


def batches(ids: Iterable[str]) -> Iterator[list[str]]:
    """In parts that one statement can name."""
    some: list[str] = []
    length = 0
    for one in ids:
        if some and length + len(one) > _CHARACTERS:
            yield some
            some, length = [], 0
        some.append(one)
        length += len(one) + 4
    if some:
        yield some


def _known(database: Database, columns: str, condition: str, since: datetime) -> list[Mapping[str, Any]]:
    """The newest row of each trace that any row of fits, tombstones left out; whole, whichever minute it is in."""
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


def _said(relationships: str) -> Relationship | None:
    """What the trace is a perturbed form of; of several the first."""
    every = msgspec.json.decode(relationships, type=tuple[Relationship, ...])
    return next((one for one in every if one.type == _RELATION), None)


def _name(one: Technique) -> str:
    intensity = f"{one.intensity:.3g}" if isinstance(one.intensity, int | float) else one.intensity or ""
    return " ".join(f"{one.technique} {intensity}".split())[:_NAME]


def _by_test_case(
    database: Database, cases: Iterable[str], since: datetime
) -> dict[tuple[str, str, str, str], list[tuple[datetime, str]]]:
    """Times and ids of unperturbed traces, by application, environment, model and test case."""
    found: dict[tuple[str, str, str, str], list[tuple[datetime, str]]] = {}
    for some in batches(sorted(cases)):
        condition = f"test_case != '{{}}' AND JSONExtractString(test_case, 'key') IN {sql.texts(some)}"
        for row in _known(database, "app, environment, model, time, relationships, test_case", condition, since):
            case = msgspec.json.decode(row["test_case"]).get("key", "")
            if _said(row["relationships"]) is None:
                key = (row["app"], row["environment"], row["model"], case)
                found.setdefault(key, []).append((row["time"], row["trace_id"]))
    return found


def _nearest(there: Iterable[tuple[datetime, str]], time: datetime) -> str:
    return min(there, key=lambda one: (abs(one[0] - time), one), default=(time, ""))[1]
