"""How many bad records an allow-list excuses: all that their evidence points at must be allowed."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from drift.rules.records import beyond, lines, records_of
from drift.rules.series import Rule, Series
from drift.windows.segments import SegmentValues
from evaluators.outcome import Evidence
from sinks.clickhouse.database import Database


def allowed_records(
    database: Database, rule: Rule, series: Series, segments: SegmentValues, start: int, end: int
) -> int:
    """Records of [start, end) beyond the rule's lines whose evidence is all allowed, by its kind or by its text.

    Where texts are not stored, no text is allowed: what cannot be read is not excused.
    """
    records = records_of(series, segments, start, end)
    rows = database.rows(
        f"SELECT trace_id, evidence FROM {records.rows} AND {beyond()}", records.parameters | lines(rule)
    )
    evidence = {row["trace_id"]: [Evidence(**one) for one in json.loads(row["evidence"] or "[]")] for row in rows}
    texts = _texts(database, series, sorted(evidence), start, end) if rule.allow_texts else {}
    return sum(
        bool(pointed) and all(_allowed(rule, one, texts.get(trace_id)) for one in pointed)
        for trace_id, pointed in evidence.items()
    )


def _allowed(rule: Rule, evidence: Evidence, texts: Mapping[str, Any] | None) -> bool:
    if evidence.kind in rule.allow_kinds:
        return True
    found = _pointed_at(evidence, texts) if texts is not None else None
    return found is not None and any(fnmatchcase(found.lower(), pattern.lower()) for pattern in rule.allow_texts)


def _pointed_at(evidence: Evidence, texts: Mapping[str, Any]) -> str | None:
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
