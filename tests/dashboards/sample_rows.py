"""Rows for dashboards to show: windows, problem events and insights, with figures that are easily added up."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ragtide.drift.insights.model import InsightRow
from ragtide.drift.problems.model import EventRow
from ragtide.drift.problems.title import title_of
from ragtide.drift.robustness.flip_pairs import FlipRow
from ragtide.drift.robustness.repeated_questions import AnswerPair, RepeatedQuestionsRow
from ragtide.drift.windows.histogram import Scale
from ragtide.drift.windows.window_metrics import WindowRow
from ragtide.evaluators.registry import load
from ragtide.evaluators.spec import Metric
from ragtide.sinks.rows import EmbeddingRow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
APP = "helpdesk"
REGISTRY = load()


def window(full: str, start: datetime, values: list[float], **other: Any) -> WindowRow:
    """A closed window of these values; 2 records more failed, 3 were not applicable and 5 not evaluated."""
    evaluator, _, key = full.partition(".")
    metric = next((each for each in REGISTRY[evaluator].metrics if each.key == key), Metric(key))
    per = "/".join(metric.per)
    scale, scored = Scale.of(metric), len(values)
    bins: dict[int, int] = {}
    for value in values:
        bins[scale.bin(value)] = bins.get(scale.bin(value), 0) + 1
    made = WindowRow(
        run_id="live", size_s=60, app=APP, environment="prod", evaluator=evaluator, metric=full, start=start,
        fingerprint="f1", model="m1", prompt_version="p1", segment=per, segment_value=per and "c", seen=scored + 10,
        sampled=scored + 5, applicable=scored + 2, scored=scored, failed=2, skipped={"missing_contexts": 3},
        failures={"crashed": 2}, sum=sum(values), sum_squares=sum(v * v for v in values),
        min=min(values, default=None), max=max(values, default=None), bins=bins, category_counts={}, parts={},
        value=sum(values) / scored if metric.per and values else None, late=0, revision=1, state="closed",
        incomplete=0, closed_at=start + timedelta(minutes=2), version=1,
    )  # fmt: skip
    return made._replace(**other)


def ordinary() -> Iterator[WindowRow]:
    """For every metric and ten minutes from noon on: 0.25 and 0.75 in prod, 1.0 in staging; and what must not count."""
    for evaluator in REGISTRY.values():
        for metric in evaluator.metrics:
            full = f"{evaluator.id}.{metric.key}"
            for minute in range(10):
                start = NOON + timedelta(minutes=minute)
                yield window(full, start, [0.25, 0.75])
                yield window(full, start, [1.0], environment="staging", model="m2")
            wrong = window(full, NOON, [0.0] * 1000, version=9)
            yield wrong._replace(run_id="replayed")
            yield wrong._replace(app="another")
            yield wrong._replace(segment="tenant", segment_value="acme")
            yield wrong._replace(size_s=86400, start=NOON.replace(hour=0))
            yield wrong._replace(start=NOON - timedelta(hours=1))
            yield window(full, NOON, [0.0] * 1000, version=0)  # an older state of the same window


def event(problem_id: str, event_id: str, event: str, episode: int, at: datetime, **other: Any) -> EventRow:
    """What a rule says of a metric that fell."""
    made = EventRow(
        problem_id=problem_id, event_id=event_id, event=event, episode=episode, at=at, app=APP, environment="prod",
        model="m1", aspect="level", metric="groundedness.groundedness", segment="", segment_value="", kind="threshold",
        type="accuracy", severity="warning", code="", standards=(), description="", attributes="", examples=(),
        actions=(), rule_id="", actor="", epoch=1,
    )  # fmt: skip
    made = made._replace(**other)
    return made._replace(title=title_of(made))


def problems() -> Iterator[EventRow]:
    """One that was resolved and came back as a new episode, one resolved, one open and taken."""
    at = NOON
    yield event("a", "a1", "opened", 1, at, severity="info", description="it fell", examples=("t1",), actions=("look",))
    yield event("a", "a2", "resolved", 1, at + timedelta(minutes=2), severity="info", description="it fell")
    yield event("a", "a3", "opened", 2, at + timedelta(minutes=5), description="it fell again", examples=("t2", "t3"))
    yield event(
        "a",
        "a4",
        "updated",
        2,
        at + timedelta(minutes=6),
        severity="critical",
        description="it fell further",
        standards=("Fair", "Safe"),
    )
    yield event("a", "a5", "acked", 2, at + timedelta(minutes=7), actor="kim")
    yield event("b", "b1", "opened", 1, at + timedelta(minutes=1), environment="staging", description="slow")
    yield event("b", "b2", "resolved", 1, at + timedelta(minutes=3), environment="staging", description="slow")
    yield event("c", "c1", "opened", 1, at, app="another", description="elsewhere")


def insight() -> InsightRow:
    end = NOON + timedelta(minutes=4)
    says = "three questions fail"
    return InsightRow("i", "weak_point", APP, "prod", says, "", ("t9",), ("ask",), NOON, end, 1)


def flip(metric: str, number: int, techniques: str, outcome: str, **other: Any) -> FlipRow:
    """Of the perturbed trace of that number, a second after noon each."""
    made = FlipRow(
        metric=metric, trace_id=f"p{number}", app=APP, environment="prod", model="m1",
        time=NOON + timedelta(seconds=number), original_id=f"o{number}", techniques=techniques, topic="csv",
        outcome=outcome, value=0.2, original_value=0.8, is_deleted=0, version=1,
    )  # fmt: skip
    return made._replace(**other)


def repeated_questions(
    metric: str, minute: int, questions: int, inconsistent: int, **other: Any
) -> RepeatedQuestionsRow:
    """A look of that minute, with a pair of answers."""
    made = RepeatedQuestionsRow(
        app=APP, environment="prod", model="m1", metric=metric, time=NOON + timedelta(minutes=minute),
        questions=questions, inconsistent=inconsistent, answers=3 * questions, allowed=0.1,
        pairs=[AnswerPair("claims", f"odd{minute}", f"other{minute}")], version=1,
    )  # fmt: skip
    return made._replace(**other)


def asked(number: int, minute: int, topic: str, **other: Any) -> EmbeddingRow:
    """A question that was placed in that topic."""
    at = NOON + timedelta(minutes=minute)
    made = EmbeddingRow("live", APP, "prod", at, f"q{number}", 1, "e@1", [1.0, 0.0], topic, 1)
    return made._replace(**other)
