"""Traffic with planted causes: every scenario is an application of its own, rolled up once for all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ragtide.drift.rootcause.explain import RootCause, explain_shift
from ragtide.drift.rootcause.query import RcaQuery
from ragtide.drift.rules.model import Rule
from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.contents import base_contents
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.drift.windows.scope import WHOLE_MINUTES, WindowKey, batch_scopes
from ragtide.drift.windows.segments import SegmentValues
from ragtide.drift.windows.store import CloseParams, first_revision, store_new
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import CHECKED, QUALITY, SPEED, World, made, score_row, trace_row

ONSET = 100  # minutes
END = 106
BEFORE, AFTER = 15, 24  # traces a minute
SEGMENTS: dict[str, tuple[str, ...]] = {
    "tenant": ("acme", "beta"),
    "language": ("de", "en"),
    "topic": ("prices", "sites"),
}
FRAMES = WindowSettings(base_s=60, out_of_orderness_s=0, segments=SEGMENTS)
CONTEXTS = made("contexts", [Metric("near", threshold=0.75, primary=True)], domain="retrieval")
INPUTS = made("inputs", [Metric("question_words", high=float("inf"), optional=True)])
EVALUATORS = {one.id: one for one in (QUALITY, CHECKED, SPEED, CONTEXTS, INPUTS)}
METRICS = metrics_by_name(EVALUATORS)


@dataclass
class Trace:
    """One trace to be scored; a scenario changes what it wants."""

    minute: int
    random: np.random.Generator
    segments: dict[str, str]
    model: str = "m1"
    prompt_version: str = "v3"
    good: float | None = None  # None: the evaluator failed
    reason: str = ""
    near: float | None = None
    seconds: float | None = None
    words: float | None = None
    passes: float | None = None
    fingerprint: str = "f1"  # of what passes

    @property
    def after(self) -> bool:
        return self.minute >= ONSET

    def noisy(self, mean: float) -> float:
        return float(min(max(self.random.normal(mean, 0.05), 0.0), 1.0))


Scenario = Callable[[Trace], None]


def world_of(database: Database, scenarios: Mapping[str, Scenario], start: datetime | None = None) -> World:
    """All of them rolled up; of the last six hours where no start is given."""
    start = start or datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=6)
    world = World(database, windows=FRAMES, evaluators=EVALUATORS, start=start)
    for seed, (app, scenario) in enumerate(scenarios.items()):
        scores = list(_rows(world, app, scenario, np.random.default_rng(seed)))
        database.insert("scores", scores)
        database.insert("traces", [trace_row(row) for row in {row.trace_id: row for row in scores}.values()])
    _roll_up(world, list(scenarios))
    return world


def _roll_up(world: World, apps: Sequence[str]) -> None:
    """As jobs do, at once: base windows alone, and without what else jobs do every minute."""
    first = int(world.start.timestamp())
    windows = [WindowKey("live", app, "prod", first + minute * 60) for app in apps for minute in range(END)]
    closing = CloseParams(version=1, now_ms=0, frozen_end=0, incomplete=False)
    for scope in batch_scopes(windows, 60, (), limit=256):
        contents = base_contents(scope, METRICS, SEGMENTS, revised=False, also=first_revision(scope, closing))
        world.database.command(store_new(contents), settings=WHOLE_MINUTES)


def _rows(world: World, app: str, scenario: Scenario, random: np.random.Generator) -> Iterator[ScoreRow]:
    for minute in range(END):
        for nth in range(AFTER if minute >= ONSET else BEFORE):
            drawn = random.random(2)
            tenant = "acme" if drawn[0] < 0.3 else "beta" if drawn[0] < 0.7 else "gamma"
            segments = {"tenant": tenant, "language": "de" if drawn[1] < 0.5 else "en"}
            trace = Trace(minute, random, segments)
            scenario(trace)
            yield from _scored(world.at(minute * 60 + nth * 2), f"{app}-{minute}-{nth}", app, trace)


def _scored(time: datetime, id_: str, app: str, trace: Trace) -> Iterator[ScoreRow]:
    row = score_row(
        time, id_, app=app, model=trace.model, prompt_version=trace.prompt_version, segments=trace.segments, version=1
    )  # fmt: skip
    if trace.good is not None:
        yield row._replace(metrics={"good": trace.good, "other": trace.good})
    elif trace.reason:
        yield row._replace(status="failed", reason=trace.reason)
    if trace.near is not None:
        yield row._replace(evaluator="contexts", metrics={"near": trace.near})
    if trace.seconds is not None:
        yield row._replace(evaluator="speed", metrics={"seconds": trace.seconds})
    if trace.passes is not None:
        yield row._replace(evaluator="checked", metrics={"passes": trace.passes}, fingerprint=trace.fingerprint)
    if trace.words is not None:
        language = {"question_language": trace.segments["language"]}
        yield row._replace(evaluator="inputs", metrics={"question_words": trace.words}, categories=language)


def explain_app(
    world: World, app: str, metric: str = "quality.good", rule: Rule | None = None, **more: Any
) -> RootCause:
    """Why it moved at the onset, all models together unless told otherwise."""
    question = RcaQuery(
        "prod", METRICS[metric], world.at(ONSET * 60), world.at(END * 60), app, rule=rule, problem_id="p1"
    )
    return explain_shift(world.database, METRICS, replace(question, **more), SegmentValues(SEGMENTS), FRAMES.base_s)
