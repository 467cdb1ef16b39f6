"""Windows as the design defines them, in plain Python: what the SQL is compared with."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ragtide.evaluators.spec import Evaluator, Metric
from ragtide.sinks.rows import ScoreRow, TraceRow

Stored = TypeVar("Stored", ScoreRow, TraceRow)


class Key(NamedTuple):
    """Dimensions of a window."""

    run_id: str
    app: str
    environment: str
    metric: str
    start: int
    fingerprint: str
    model: str
    prompt_version: str
    segment: str
    segment_value: str


@dataclass
class Content:
    """What a window holds."""

    seen: int = 0
    sampled: int = 0
    applicable: int = 0
    scored: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    values: list[float] = field(default_factory=list)
    category_counts: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)


def newest(rows: Iterable[Stored]) -> list[Stored]:
    """One row per identity, the one of the highest version; tombstones take theirs out."""
    best: dict[tuple[object, ...], Stored] = {}
    for row in rows:
        minute = int(row.time.timestamp()) // 60
        key = (row.run_id, row.app, row.environment, getattr(row, "evaluator", ""), minute, row.trace_id)
        if key not in best or row.version >= best[key].version:
            best[key] = row
    return [row for row in best.values() if not row.is_deleted]


def base_windows(
    scores: Sequence[ScoreRow],
    traces: Sequence[TraceRow],
    evaluators: Mapping[str, Evaluator],
    segments: Mapping[str, Sequence[str]],
    size_s: int,
) -> dict[Key, Content]:
    """Every window of that size that these rows make."""
    found: dict[Key, Content] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    for trace in newest(traces):
        for cut in _cuts(trace.segments, segments):
            seen[(*_place(trace, size_s), trace.model, trace.prompt_version, *cut)] += 1
    groups: dict[tuple[str, Key], list[ScoreRow]] = {}
    for row in newest(scores):
        assert isinstance(row, ScoreRow)
        for cut in _cuts(row.segments, segments):
            groups.setdefault((row.evaluator, _key(row, "", cut, size_s)), []).append(row)
    for (evaluator, key), rows in groups.items():
        spec = evaluators[evaluator]
        declared = {m.key for m in spec.metrics if not m.per and (m.primary or not key.segment)}
        scored = [row for row in rows if row.status == "scored"]
        observed = {name for row in scored for name in row.metrics} if not key.segment else set()
        categories = {name for row in scored for name in row.categories} if not key.segment else set()
        where = (key.run_id, key.app, key.environment, key.start, key.model, key.prompt_version)
        for name in declared | observed | categories:
            content = found[key._replace(metric=f"{evaluator}.{name}")] = Content()
            content.seen = seen[(*where, key.segment, key.segment_value)]
            for row in rows:
                value = row.metrics.get(name) if name not in categories else 0.0 if name in row.categories else None
                told = value is not None or (spec.combine is not None and name in declared)
                _count(content, row, value, told=told)
            if spec.carrier is not None and name != spec.carrier.key:
                content.parts.clear()
            if name in categories:
                content.values = []
                content.category_counts.update(row.categories[name] for row in scored if name in row.categories)
    return found


def bin_of(metric: Metric, value: float) -> int:
    """By search among the edges rather than by division."""
    if not metric.bounded:
        if value == 0:
            return 0
        power = 100_000 + math.floor(math.log(abs(value)) / math.log(1.01))
        return power if value > 0 else -power
    edges = [metric.low + (metric.high - metric.low) * i / 100 for i in range(101)]
    if metric.better == "higher":
        return max(i for i, edge in enumerate(edges) if edge <= value)
    return min(i for i, edge in enumerate(edges) if edge >= value)


def _count(content: Content, row: ScoreRow, value: float | None, *, told: bool) -> None:
    """`told`: a scored row has what is counted, be it no value of its own but parts of its window's."""
    if row.status != "sampled_out":
        content.sampled += 1
    if row.status == "failed":
        content.failed += 1
        content.applicable += 1
        content.failures[row.reason or row.status] += 1
    elif row.status != "scored":
        content.skipped[row.reason or row.status] += 1
    elif not told:
        content.skipped["not_recorded"] += 1
    else:
        content.applicable += 1
        content.scored += 1
        content.values += [] if value is None else [value]
    content.parts.update(row.parts)


def _key(row: ScoreRow, metric: str, cut: tuple[str, str], size_s: int) -> Key:
    run_id, app, environment, start = _place(row, size_s)
    return Key(run_id, app, environment, metric, start, row.fingerprint, row.model, row.prompt_version, *cut)


def _place(row: ScoreRow | TraceRow, size_s: int) -> tuple[str, str, str, int]:
    return (row.run_id, row.app, row.environment, int(row.time.timestamp()) // size_s * size_s)


def _cuts(values: Mapping[str, str], segments: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    known = [
        (name, values[name] if values[name] in kept else "__other__")
        for name, kept in segments.items()
        if name in values
    ]
    return [("", ""), *known]
