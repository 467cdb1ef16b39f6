"""Rows for dashboards to show: windows, problem events and insights, with figures that are easily added up."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from drift.windows.bins import Scale
from evaluators.registry import load
from evaluators.spec import Metric

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
APP = "helpdesk"
REGISTRY = load()


class Window(NamedTuple):
    run_id: str
    size_s: int
    app: str
    environment: str
    evaluator: str
    metric: str
    start: datetime
    fingerprint: str
    model: str
    prompt_version: str
    segment: str
    segment_value: str
    seen: int
    sampled: int
    applicable: int
    scored: int
    failed: int
    skipped: Mapping[str, int]
    failures: Mapping[str, int]
    sum: float
    sum_squares: float
    min: float | None
    max: float | None
    bins: Mapping[int, int]
    value: float | None
    revision: int
    state: str
    closed_at: datetime
    version: int


class Event(NamedTuple):
    problem_id: str
    event_id: str
    event: str
    episode: int
    at: datetime
    app: str = APP
    environment: str = "prod"
    model: str = "m1"
    aspect: str = "level"
    metric: str = "groundedness.groundedness"
    segment: str = ""
    segment_value: str = ""
    kind: str = "threshold"
    type: str = "accuracy"
    severity: str = "medium"
    description: str = ""
    attributes: str = ""
    examples: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    actor: str = ""
    epoch: int = 1


class Insight(NamedTuple):
    insight_id: str
    type: str
    app: str
    environment: str
    description: str
    examples: tuple[str, ...]
    actions: tuple[str, ...]
    period_start: datetime
    period_end: datetime
    epoch: int


def window(full: str, start: datetime, values: list[float], **other: object) -> Window:
    """A closed window of these values; 2 records more failed, 3 were not applicable and 5 not evaluated."""
    evaluator, _, key = full.partition(".")
    metric = next((each for each in REGISTRY[evaluator].metrics if each.key == key), Metric(key))
    per = "/".join(metric.per)
    scale, scored = Scale.of(metric), len(values)
    bins: dict[int, int] = {}
    for value in values:
        bins[scale.bin(value)] = bins.get(scale.bin(value), 0) + 1
    made = Window(
        run_id="live", size_s=60, app=APP, environment="prod", evaluator=evaluator, metric=full, start=start,
        fingerprint="f1", model="m1", prompt_version="p1", segment=per, segment_value=per and "c", seen=scored + 10,
        sampled=scored + 5, applicable=scored + 2, scored=scored, failed=2, skipped={"missing_contexts": 3},
        failures={"crashed": 2}, sum=sum(values), sum_squares=sum(v * v for v in values),
        min=min(values, default=None), max=max(values, default=None), bins=bins,
        value=sum(values) / scored if metric.per and values else None, revision=1, state="closed",
        closed_at=start + timedelta(minutes=2), version=1,
    )  # fmt: skip
    return made._replace(**other)  # type: ignore[arg-type]


def ordinary() -> Iterator[Window]:
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


def problems() -> Iterator[Event]:
    """One that was resolved and came back as a new episode, one resolved, one open and taken."""
    at = NOON
    yield Event("a", "a1", "opened", 1, at, severity="low", description="it fell", examples=("t1",), actions=("look",))
    yield Event("a", "a2", "resolved", 1, at + timedelta(minutes=2), severity="low", description="it fell")
    yield Event("a", "a3", "opened", 2, at + timedelta(minutes=5), description="it fell again", examples=("t2", "t3"))
    yield Event("a", "a4", "updated", 2, at + timedelta(minutes=6), severity="high", description="it fell further")
    yield Event("a", "a5", "acked", 2, at + timedelta(minutes=7), actor="kim")
    yield Event("b", "b1", "opened", 1, at + timedelta(minutes=1), environment="staging", description="slow")
    yield Event("b", "b2", "resolved", 1, at + timedelta(minutes=3), environment="staging", description="slow")
    yield Event("c", "c1", "opened", 1, at, app="another", description="elsewhere")


def insight() -> Insight:
    end = NOON + timedelta(minutes=4)
    return Insight("i", "weak_point", APP, "prod", "three questions fail", ("t9",), ("ask",), NOON, end, 1)
