"""The same file gives the same score rows by `evaluate`, by a replay and by the lane of a worker."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragtide import Result, evaluate
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from ragtide.sinks.version import without_evaluator
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.loader import Settings
from tests.stream.pipe.replaying import BASE_MS, fields, file_source, go, lines, rows

EVALUATORS = ["bleu", "classification", "exact_match", "inputs", "operations", "pii_leakage", "rouge", "sari"]
CHOSEN: dict[str, Any] = {"enabled": EVALUATORS, "params": {"rouge": {"use_stemmer": True}}}
SAMPLING = {"evaluators": {"bleu": 0.5}}


def mixed(number: int) -> list[Any]:
    """Traces with and without references, leaks, labels and faults, some of them twice."""
    records: list[Any] = []
    for n in range(number):
        changes: dict[str, Any] = {"trace_id": f"t-{n}", "time": BASE_MS + n * 1000}
        if n % 2:
            changes |= {"expected": ["It returns strings."], "answer": f"It returned {n} strings."}
        if n % 7 == 0:
            changes |= {"answer": "Write to jane.doe@example.com.", "contexts": []}
        if n % 5 == 0:
            changes |= {"task": "classification", "labels": {"expected": "a", "predicted": "ab"[n % 2]}}
        records.append(fields(**changes))
        if n % 11 == 0:
            records += [fields(**changes | {"cost_usd": "free"}), "not json", fields(**changes | {"answer": "Again."})]
    return records


def of_result(result: Result) -> dict[tuple[str, str], tuple[Any, ...]]:
    found = {}
    for one in result.scores():
        evidence = json.dumps(list(one.evidence), default=_fields)
        where = (one.status, one.reason, dict(one.metrics), dict(one.categories), dict(one.parts))
        found[one.trace_id, one.evaluator] = (*where, evidence, list(one.findings), one.fingerprint, one.weight)
    return found


def _fields(place: Any) -> dict[str, Any]:
    return {name: getattr(place, name) for name in place.__dataclass_fields__}


def of_row(row: Any) -> tuple[Any, ...]:
    where = (row["status"], row["reason"], dict(row["metrics"]), dict(row["categories"]), dict(row["parts"]))
    evidence = json.dumps(json.loads(row["evidence"]))
    return (*where, evidence, list(row["findings"]), row["fingerprint"], row["weight"])


@pytest.mark.clickhouse
def test_a_replay_of_the_file_leaves_the_scores_of_evaluate(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*mixed(60)))
    sections: dict[str, Any] = {"evaluators": CHOSEN, "sampling": SAMPLING, "worker": {"batch_records": 16}}
    run = go(database, file_source(file), chosen=Settings.model_validate(sections))
    result = evaluate(file, EVALUATORS, settings=sections, progress=False)
    stored = {(row["trace_id"], row["evaluator"]): of_row(row) for row in rows(database, "scores")}
    assert len(stored) > 300
    assert {status for status, *_ in stored.values()} == {"scored", "not_applicable", "sampled_out"}
    assert of_result(result) == stored
    dead = {(row["offset"], row["reason"]) for row in rows(database, "dead_letters")}
    assert {(one.record, one.reason) for one in result.rejected} == dead
    assert (len(result) + result.replaced, result.rejected_records) == (run.traces, run.dead_letters)
    lines_of = {row["trace_id"]: row["offset"] for row in rows(database, "traces")}
    assert {one.trace_id: one.record for one in result.traces} == lines_of


def test_the_lane_of_a_worker_gives_the_scores_of_evaluate() -> None:
    records = [one for one in mixed(60) if isinstance(one, dict)]
    sections: dict[str, Any] = {"evaluators": CHOSEN, "sampling": SAMPLING}
    lane = assemble(Settings.model_validate(sections), "fast").pipeline
    now_ms = BASE_MS + 120_000
    messages = [
        StoredRecord("rag.traces", 3, n, now_ms + n, None, json.dumps(one).encode()) for n, one in enumerate(records)
    ]
    newest: dict[tuple[str, str], ScoreRow] = {}
    for at in range(0, len(messages), 7):
        for row in lane.process(messages[at : at + 7]).block.scores:
            before = newest.setdefault((row.trace_id, row.evaluator), row)
            if without_evaluator(row.version) > without_evaluator(before.version):
                newest[row.trace_id, row.evaluator] = row
    wanted = {key: of_row(row._asdict()) for key, row in newest.items()}
    assert of_result(evaluate(records, EVALUATORS, settings=sections, progress=False)) == wanted
