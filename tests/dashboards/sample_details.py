"""Rows of single traces, verdicts, expected levels and parts, beside the windows of `sample_rows`."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from ragtide.drift.anomalies.expected_levels import ExpectedRow
from ragtide.drift.rules.model import Verdict
from ragtide.drift.windows.histogram import FAR_BIN
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.sinks.rows import ScoreRow
from tests.dashboards.sample_rows import APP, NOON, window

GROUNDED = "groundedness"
METRIC = f"{GROUNDED}.{GROUNDED}"


def score(number: int, evaluator: str, metrics: dict[str, float], **other: Any) -> ScoreRow:
    """Of the trace of that number, a second after noon each."""
    made = ScoreRow(
        run_id="live", app=APP, environment="prod", evaluator=evaluator, time=NOON + timedelta(seconds=number),
        trace_id=f"t{number}", version=1, status="scored", reason="", metrics=metrics, categories={}, parts={},
        evidence="[]", findings=[], fingerprint="f1", weight=1.0, model="m1", prompt_version="p1", segments={},
    )  # fmt: skip
    return made._replace(**other)


def scores() -> Iterator[ScoreRow]:
    """Groundedness of ten traces: 0.0, 0.1, ... 0.9; the last of another model failed.

    Contexts of t0 to t3 are bad, those of t4 and t5 are good, and those of t6 were not scored.
    """
    for number in range(10):
        yield score(number, GROUNDED, {GROUNDED: number / 10}, findings=["odd"] if number == 0 else [])
    yield score(10, GROUNDED, {}, status="failed", reason="crashed")
    yield score(11, GROUNDED, {GROUNDED: 1.0}, model="m2")
    yield score(12, GROUNDED, {GROUNDED: 0.0}, app="another")
    yield score(13, GROUNDED, {GROUNDED: 0.0}, time=NOON - timedelta(hours=1))
    for number in range(6):
        yield score(number, "context_mrr", {"reciprocal_rank": 0.1 if number < 4 else 1.0})


def verdict(minute: int, breached: int, **other: Any) -> Verdict:
    """Of a minute of groundedness."""
    start = NOON + timedelta(minutes=minute)
    made = Verdict(
        rule_id="mean:1a2b", run_id="live", app=APP, environment="prod", metric=METRIC, model="m1", segment="",
        segment_value="", fingerprint="f1", start=start, end=start + timedelta(minutes=1), revision=1,
        breached=breached, value=0.5, threshold=0.75, samples=2, wrong=1, incomplete=0, version=1,
    )  # fmt: skip
    return made._replace(**other)


def verdicts() -> Iterator[Verdict]:
    """Three minutes: good, bad, and without records; and of a tenant."""
    yield verdict(0, 0)
    yield verdict(1, 1)
    yield verdict(2, 0, samples=0)
    yield verdict(1, 0, segment="tenant", segment_value="acme")
    yield verdict(1, 1, app="another")


def expected(**other: Any) -> ExpectedRow:
    """A baseline of groundedness: 0.6 at noon of a Sunday, 0.8 an hour later, 0.5 at all other hours."""
    levels = [0.5] * 168
    levels[6 * 24 + 12], levels[6 * 24 + 13] = 0.6, 0.8  # 1 March 2026 is a Sunday
    made = ExpectedRow(
        app=APP, environment="prod", metric=METRIC, model="m1", segment="", segment_value="",
        effective_from=NOON - timedelta(hours=12), quantity="mean", of_records=0, min_bin=-FAR_BIN, max_bin=FAR_BIN,
        levels=levels, variance_per_record=0.02, variance_floor=0.01, tick_s=60, version=1,
    )  # fmt: skip
    return made._replace(**other)


def expected_levels() -> Iterator[ExpectedRow]:
    """The baseline, one that it replaced, and one of tomorrow."""
    yield expected()
    yield expected(effective_from=NOON - timedelta(days=1), levels=[0.1] * 168)
    yield expected(effective_from=NOON + timedelta(days=1), levels=[0.9] * 168)


def confusion() -> Iterator[WindowRow]:
    """Three records of a class, one of them mistaken for another."""
    parts = {"confusion\tcat\tcat": 2.0, "confusion\tcat\tdog": 1.0, "truth\tcat": 3.0}
    full = "classification.accuracy"
    yield window(full, NOON, [1.0, 1.0, 0.0], version=2)._replace(parts=parts, value=2 / 3)


def before() -> Iterator[WindowRow]:
    """An hour of the day before: all four traces at 0.3."""
    yield window(METRIC, NOON - timedelta(days=1), [0.3] * 4, size_s=3600)
