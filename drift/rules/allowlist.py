"""Count the bad records that an allow-list excuses: all of their evidence must be allowed."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from ragtide.drift.rules.model import Rule, Series
from ragtide.drift.rules.queries import bound_parameters, out_of_bounds, record_query
from ragtide.drift.windows.segments import SegmentValues
from ragtide.evaluators.outcome import MOST_EVIDENCE, Evidence
from ragtide.sinks.clickhouse.database import Database


def count_allowed_records(
    database: Database, rule: Rule, series: Series, segments: SegmentValues, start: int, end: int
) -> int:
    """Count records of [start, end) beyond the bounds whose evidence is all allowed, by its kind or by its text.

    Without stored texts no text is allowed. A record with `MOST_EVIDENCE` is never excused: there may be more.
    """
    records = record_query(series, segments, start, end)
    rows = database.rows(
        f"SELECT trace_id, evidence FROM {records.rows} AND {out_of_bounds()}",
        records.parameters | bound_parameters(rule),
    )
    evidence = {row["trace_id"]: [Evidence(**one) for one in json.loads(row["evidence"] or "[]")] for row in rows}
    texts = _texts(database, series, sorted(evidence), start, end) if rule.allow_texts else {}
    return sum(
        0 < len(pointed) < MOST_EVIDENCE and all(_is_allowed(rule, one, texts.get(trace_id)) for one in pointed)
        for trace_id, pointed in evidence.items()
    )


def _is_allowed(rule: Rule, evidence: Evidence, texts: Mapping[str, Any] | None) -> bool:
    if evidence.kind in rule.allow_kinds:
        return True
    found = _evidence_text(evidence, texts) if texts is not None else None
    return found is not None and any(fnmatchcase(found.lower(), pattern.lower()) for pattern in rule.allow_texts)


def _evidence_text(evidence: Evidence, texts: Mapping[str, Any]) -> str | None:
    whole: str | None = None
    if evidence.field in ("question", "answer"):
        whole = texts[evidence.field]
    elif evidence.chunk_id in texts["chunk_ids"]:
        whole = texts["chunks"][texts["chunk_ids"].index(evidence.chunk_id)]
    return None if whole is None else whole[evidence.start : evidence.end]


def _texts(
    database: Database, series: Series, trace_ids: Sequence[str], start: int, end: int
) -> dict[str, Mapping[str, Any]]:
    rows = database.rows(
        """
        SELECT trace_id, question, answer, chunk_ids, chunks FROM trace_texts FINAL
        WHERE run_id = 'live' AND app = {app:String} AND environment = {environment:String}
            AND time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}
            AND trace_id IN {trace_ids:Array(String)}
        """,
        {
            "app": series.app,
            "environment": series.environment,
            "start": datetime.fromtimestamp(start, UTC),
            "end": datetime.fromtimestamp(end, UTC),
            "trace_ids": list(trace_ids),
        },
    )
    return {row["trace_id"]: row for row in rows}
