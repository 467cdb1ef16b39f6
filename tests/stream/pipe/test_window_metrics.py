"""From labelled traces to a problem: windows have the same numbers in live, in a replay, and in one computation."""

import json
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from ragtide.drift.jobs import JobContext, server_time
from ragtide.drift.leadership import Term
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import JobSettings, RuleSettings, WindowSettings
from ragtide.evaluators import registry
from ragtide.evaluators.combining import combine_parts
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.sink import ClickHouseSink
from ragtide.sinks.rows import ProgressRow
from ragtide.stream.assembly import assemble
from ragtide.stream.ingest.records import StoredRecord
from tests.stream.pipe.replaying import BASE_MS, fields, file_source, go, lines, settings

pytestmark = pytest.mark.clickhouse

EXPECTED = ["cat", "dog", "dog", "bird", "cat", "dog", "bird", "fish"]
PREDICTED = ["cat", "dog", "cat", "bird", "cat", "bird", "bird", "dog"]
# Of scikit-learn 1.9.1, for as many records of each pair as of any other.
METRICS = {"accuracy": 0.625, "macro_precision": 0.4583333333333333, "macro_recall": 0.5833333333333334}


def labelled(number: int) -> dict[str, Any]:
    """Two records a minute, the eight pairs again and again."""
    scores = {EXPECTED[number % 8]: 0.3, PREDICTED[number % 8]: 0.7}
    labels = {"expected": EXPECTED[number % 8], "predicted": PREDICTED[number % 8], "scores": scores}
    return fields(trace_id=f"t-{number}", time=BASE_MS + number * 30_000, labels=labels)


def live(database: Database, traces: list[dict[str, Any]]) -> None:
    """As a worker of lane `fast` stores them."""
    records = [
        StoredRecord("rag.traces", 0, i, one["time"], b"k", json.dumps(one).encode()) for i, one in enumerate(traces)
    ]
    made = assemble(settings(evaluators={"enabled": ["classification", "operations"]}), "fast")
    block = made.pipeline.process(records).block
    now = server_time(database)
    block.progress.append(ProgressRow("fast", "rag.traces", 0, "w", now - timedelta(seconds=1), len(records), 0))
    ClickHouseSink(database).write(block)


def windows(database: Database, run_id: str, *sizes_s: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = database.rows(
        "SELECT size_s, metric, start, segment, segment_value, value, scored, seen, parts FROM windows FINAL "
        "WHERE run_id = {run_id:String} AND size_s IN {sizes:Array(UInt32)} AND evaluator = 'classification'",
        {"run_id": run_id, "sizes": list(sizes_s)},
    )
    return {tuple(row.values())[:5]: tuple(row.values())[5:] for row in rows}


def test_live_and_a_replay_give_the_numbers_of_one_computation(database: Database, tmp_path: Path) -> None:
    traces = [labelled(number) for number in range(160)]
    live(database, traces)
    file = tmp_path / "traces.jsonl"
    file.write_text(lines(*traces))
    chosen = settings(evaluators={"enabled": ["classification", "operations"]})
    go(database, file_source(file), "again", chosen=chosen, block_rows=50)
    rules = RuleSettings(min_sample=16, k=2, m=3)
    term = Term(1, server_time(database))
    JobContext(database, registry.load(), WindowSettings(), rules, JobSettings(), term).run_cycle(server_time(database))

    found = windows(database, "live", 60, 3600)
    assert len(found) > 80 * 11
    assert found == windows(database, "again", 60, 3600)

    days = windows(database, "again", 86400)  # two, where midnight lies between
    classifier = registry.load()["classification"]
    parts = [row[-1] for key, row in days.items() if key[1] == "classification.accuracy"]
    for key, (value, *_) in days.items():
        _, metric, start, segment, _ = key
        of_day = combine_parts(classifier, days[86400, "classification.accuracy", start, "", ""][-1]).metrics
        assert segment or value == of_day.get(metric.removeprefix("classification."))
    whole = combine_parts(classifier, {key: sum(day.get(key, 0.0) for day in parts) for key in {*chain(*parts)}})
    assert {metric: whole.metrics[metric] for metric in METRICS} == pytest.approx(METRICS)

    problems = load_problems(database, states=("open",))
    (problem,) = [one for one in problems if one.metric.startswith("classification.")]
    assert (problem.metric, problem.type, problem.severity) == ("classification.accuracy", "accuracy", "critical")
    assert problem.attributes["value"] == pytest.approx(0.625)  # eight minutes are pooled, by their counts
    wrong = {f"t-{number}" for number in range(160) if EXPECTED[number % 8] != PREDICTED[number % 8]}
    assert len(problem.examples) == 10
    assert set(problem.examples) <= wrong
    assert "below 0.75" in problem.description
