"""Queries for labels and their stored traces."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.version import LAST_REVISION, revision_of
from ragtide.stream.ingest.stored_trace import StoredTexts
from ragtide.stream.labels.joining import Facts, MessagePosition

_TRACES = 50  # of one statement: their texts are in memory together
_CHARACTERS = 30_000  # of their ids: a statement may be 256 KiB long
_FACTS = "expected != '' OR relevance != '' OR classes != ''"
_DISLIKED = "thumbs = 'down' AND sample_rate = 0"  # of a sample for labelling: it has been judged already
_STREAMED = "run_id IN ('live', 'probe')"


class StoredTrace(NamedTuple):
    """The newest message about a trace, enriched or not."""

    position: MessagePosition
    time: datetime
    user_id: str


class VersionedTexts(NamedTuple):
    """Texts and the version of their row."""

    version: int
    texts: StoredTexts


class JudgeRow(NamedTuple):
    """The newest row of a judge about a trace: whether it has an answer, and whether that is one of the sample."""

    evaluator: str
    revision: int
    is_answered: bool
    in_sample: bool


def recently_labelled(database: Database, since: datetime, judges: Sequence[str]) -> list[str]:
    """Ids of traces with facts, if a label or the trace was stored after `since`.

    With `judges`, a thumbs-down is a fact, and a row of a judge counts like the trace.
    """
    joins = _joins(bool(judges))
    judged = f"""
        UNION DISTINCT
        SELECT DISTINCT trace_id FROM scores
        WHERE {_STREAMED} AND evaluator IN {sql.texts(judges)} AND ingested_at >= {{since:DateTime64(3, 'UTC')}}
            AND trace_id IN (SELECT trace_id FROM labels WHERE {_DISLIKED})"""
    rows = database.rows(
        f"""
        SELECT DISTINCT trace_id FROM labels WHERE {joins} AND ingested_at >= {{since:DateTime64(3, 'UTC')}}
        UNION DISTINCT
        SELECT DISTINCT trace_id FROM traces
        WHERE {_STREAMED} AND ingested_at >= {{since:DateTime64(3, 'UTC')}}
            AND trace_id IN (SELECT trace_id FROM labels WHERE {joins})
        {judged if judges else ""}
        """,
        {"since": since},
    )
    return sorted(row["trace_id"] for row in rows)


def batches(trace_ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split the ids into parts that fit into one statement."""
    start, length = 0, 0
    for at, trace_id in enumerate(trace_ids):
        length += len(trace_id)
        if at > start and (at - start == _TRACES or length > _CHARACTERS):
            yield trace_ids[start:at]
            start, length = at, len(trace_id)
    if start < len(trace_ids):
        yield trace_ids[start:]


def _joins(disliked: bool) -> str:
    """Condition of labels with facts."""
    return f"({_FACTS} OR {_DISLIKED})" if disliked else f"({_FACTS})"


def facts_of(database: Database, trace_ids: Sequence[str], *, disliked: bool) -> dict[str, Facts]:
    """Facts by trace; of several labels with the same fact the newest counts.

    With `disliked`, a thumbs-down is a fact that a later thumbs-up does not take back. The revision counts it in any
    case, so that it never falls.
    """
    newest = ", ".join(
        f"argMaxIf({fact}, (version, partition), {fact} != '') AS newest_{fact}"
        for fact in ("expected", "relevance", "classes")
    )
    rows = database.rows(
        f"SELECT trace_id, count() AS revision, {newest}, max({_DISLIKED}) AS is_disliked FROM labels FINAL "
        f"WHERE {_joins(True)} AND trace_id IN {sql.texts(trace_ids)} GROUP BY trace_id HAVING max({_joins(disliked)})"
    )
    return {
        row["trace_id"]: Facts(
            min(row["revision"], LAST_REVISION),
            row["newest_expected"],
            row["newest_relevance"],
            row["newest_classes"],
            disliked and bool(row["is_disliked"]),
        )
        for row in rows
    }


def traces_of(database: Database, trace_ids: Sequence[str]) -> dict[str, StoredTrace]:
    """The newest message of each trace, wherever it moved. Unknown traces are left out."""
    rows = database.rows(
        f"""
        SELECT trace_id, max(version) AS newest,
            argMax((topic, partition, offset, time, user_id), (version, NOT is_deleted)) AS known
        FROM traces WHERE {_STREAMED} AND trace_id IN {sql.texts(trace_ids)}
        GROUP BY trace_id HAVING NOT argMax(is_deleted, (version, NOT is_deleted))
        """
    )
    found = {}
    for row in rows:
        topic, partition, offset, time, user_id = row["known"]
        found[row["trace_id"]] = StoredTrace(MessagePosition(topic, partition, offset, row["newest"]), time, user_id)
    return found


def judge_rows_of(
    database: Database, traces: Mapping[str, StoredTrace], judges: Sequence[str]
) -> dict[str, list[JudgeRow]]:
    """The rows of these judges by trace. A trace that they have not read has none."""
    if not traces or not judges:
        return {}
    times = [trace.time for trace in traces.values()]
    rows = database.rows(
        f"""
        SELECT trace_id, evaluator, version, status IN ('scored', 'not_applicable') AS is_answered,
            weight > 0 AS in_sample
        FROM scores FINAL
        WHERE {_STREAMED} AND evaluator IN {sql.texts(judges)} AND trace_id IN {sql.texts(traces)}
            AND time >= {{first:DateTime64(3, 'UTC')}} AND time <= {{last:DateTime64(3, 'UTC')}}
        ORDER BY trace_id, evaluator
        """,
        {"first": min(times), "last": max(times)},
    )
    found: dict[str, list[JudgeRow]] = {}
    for row in rows:
        own = JudgeRow(row["evaluator"], revision_of(row["version"]), bool(row["is_answered"]), bool(row["in_sample"]))
        found.setdefault(row["trace_id"], []).append(own)
    return found


def texts_of(database: Database, traces: dict[str, StoredTrace]) -> dict[str, VersionedTexts]:
    """The newest texts of each trace. Traces without texts are left out."""
    if not traces:
        return {}
    times = [trace.time for trace in traces.values()]
    columns = ", ".join(StoredTexts.__struct_fields__)
    rows = database.rows(
        f"""
        SELECT trace_id, version, {columns} FROM trace_texts
        WHERE {_STREAMED} AND is_deleted = 0 AND trace_id IN {sql.texts(traces)}
            AND time >= {{first:DateTime64(3, 'UTC')}} AND time <= {{last:DateTime64(3, 'UTC')}}
        ORDER BY version DESC LIMIT 1 BY trace_id
        """,
        {"first": min(times), "last": max(times)},
    )
    return {row.pop("trace_id"): VersionedTexts(row.pop("version"), StoredTexts(**row)) for row in rows}
