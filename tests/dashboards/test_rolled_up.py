"""From traces and scores through the real roll-up to the dashboard's figures."""

from datetime import UTC, datetime, timedelta

import pytest

from ragtide.dashboards.build import build
from ragtide.drift.leadership import Term
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.rollup import Rollup
from ragtide.drift.windows.watermark import Idleness
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import DirtyRow, ProgressRow, ScoreRow, TraceRow
from ragtide.sinks.settings import RetentionSettings
from tests.dashboards.lint import queries
from tests.dashboards.macros import expanded

pytestmark = pytest.mark.clickhouse

GROUNDED = "groundedness"


def trace(number: int, time: datetime) -> TraceRow:
    return TraceRow(
        run_id="live", app="helpdesk", environment="prod", time=time, trace_id=f"t{number}", version=number + 1,
        session_id="", user_id="", task="qa", probe="", model="m1", model_requested="m1", provider="",
        prompt_version="p1", latency_s=None, first_token_s=None, cost_usd=None, input_tokens=None,
        output_tokens=None, error="", chunk_ids=[], categories=[], segments={}, relationships="", test_case="",
        topic="rag.traces", partition=0, offset=number,
    )  # fmt: skip


def score(
    of: TraceRow, evaluator: str, metrics: dict[str, float], status: str = "scored", reason: str = ""
) -> ScoreRow:
    return ScoreRow(
        run_id="live", app=of.app, environment=of.environment, evaluator=evaluator, time=of.time, trace_id=of.trace_id,
        version=of.version, status=status, reason=reason, metrics=metrics, categories={}, parts={}, evidence="[]",
        findings=[], fingerprint="f1", weight=1.0, model=of.model, prompt_version=of.prompt_version, segments={},
    )  # fmt: skip


def test_the_dashboard_shows_what_was_scored(database: Database) -> None:
    now = datetime.now(UTC)
    start = now.replace(second=0, microsecond=0) - timedelta(minutes=10)
    traces = [trace(number, start + timedelta(seconds=number)) for number in range(4)]
    operations = [{"error": 0.0, "latency_seconds": 1.0}, {"error": 0.0, "latency_seconds": 2.0}]
    operations += [{"error": 0.0, "latency_seconds": 6.0}, {"error": 1.0}]
    scores = [score(one, "operations", metrics) for one, metrics in zip(traces, operations, strict=True)]
    scores += [
        score(traces[0], GROUNDED, {GROUNDED: 0.9}),
        score(traces[1], GROUNDED, {GROUNDED: 0.5}),
        score(traces[2], GROUNDED, {}, "not_applicable", "missing_contexts"),
        score(traces[3], GROUNDED, {}, "failed", "crashed"),
    ]
    database.insert("traces", traces)
    database.insert("scores", scores)
    lanes = ("fast", "model")
    database.insert("dirty_windows", [DirtyRow("live", "helpdesk", "prod", lane, start, f"m-{lane}") for lane in lanes])
    newest = start + timedelta(minutes=5)
    database.insert("progress", [ProgressRow(lane, "rag.traces", 0, "w", newest, 4, 0) for lane in lanes])
    Rollup(database, load(), WindowSettings(), Term(1, now), Idleness(), RetentionSettings()).run(now)

    asked = dict(queries(build(load(), database=database.name)["application"]))
    chosen = {"run": "live", "app": "helpdesk", "environment": "$__all", "model": "$__all", "resolution": "0"}

    def rows(where: str) -> list[dict[str, object]]:
        return database.rows(expanded(asked[where], start - timedelta(minutes=1), now, 60, chosen))

    assert rows("stat Traces A") == [{"traces": 4}]
    assert rows("stat Errors A") == [{"errors": 0.25}]
    assert rows("timeseries Latency B") == [{"time": start, "mean": 3.0}]
    (latency,) = rows("timeseries Latency A")
    assert latency["p50"] == pytest.approx(2.0, rel=0.0051)
    assert latency["p99"] == pytest.approx(6.0, rel=0.0051)
    assert rows(f"timeseries {GROUNDED}.{GROUNDED} A") == [{"time": start, "mean": pytest.approx(0.7)}]
    coverage = {"scored": 2, "failed": 1, "not applicable": 1, "not evaluated": 0}
    assert rows(f"timeseries {GROUNDED}: coverage A") == [{"time": start, **coverage}]
    reasons = [{"reason": "crashed", "traces": 1}, {"reason": "missing_contexts", "traces": 1}]
    assert rows(f"table {GROUNDED}: not scored, why A") == reasons
    (quality,) = [row for row in rows("table Quality A") if row["metric"] == f"{GROUNDED}.{GROUNDED}"]
    assert (quality["state"], quality["of all"]) == ("bad", 0.5)
    assert quality["of applicable"] == pytest.approx(2 / 3)
    assert rows("timeseries Traffic A") == [{"time": start, "environment": "prod", "traces": 4.0}]
