"""Windows as the roll-up stores them, of series whose records are drawn here; and looks at them."""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ragtide.drift.anomalies.scanner import ScanContext, Scanner, ScanResult, live_context
from ragtide.drift.problems.model import EventRow, problem_id
from ragtide.drift.problems.report import ProblemKey
from ragtide.drift.settings import DriftSettings, WindowSettings
from ragtide.drift.stats.calendar import weekday_of
from ragtide.drift.windows.histogram import Scale
from ragtide.drift.windows.watermark import WatermarkRow
from ragtide.evaluators.builtin.inputs import inputs
from ragtide.evaluators.builtin.operations import operations
from ragtide.evaluators.spec import Evaluator, Lane
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ProgressRow
from tests.drift.world import CHECKED, QUALITY, SPEED

Values = npt.NDArray[Any]
DAY = 86_400
BASE = 300
_TODAY = int(datetime.now(UTC).timestamp()) // DAY
START = (_TODAY - 5 - weekday_of(_TODAY - 5)) * DAY  # a Monday, five days before a weekend; older windows are deleted
EVALUATORS: Mapping[str, Evaluator] = {one.id: one for one in (QUALITY, CHECKED, SPEED, inputs, operations)}
LANE: Lane = "fast"


class WindowRow(NamedTuple):
    """A row of `windows`; other columns have their defaults."""

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
    applicable: int
    scored: int
    sum: float
    sum_squares: float
    bins: Mapping[int, int]
    category_counts: Mapping[str, int]
    revision: int
    state: str
    version: int


def window(
    metric: str,
    at: int,
    records: Values | Mapping[str, int],
    *,
    version: int,
    app: str = "shop",
    fingerprint: str = "f1",
    run_id: str = "live",
    prompt_version: str = "p1",
    state: str = "closed",
    size_s: int = BASE,
) -> WindowRow:
    """Of values of records, or of counts of labels."""
    labels = records if isinstance(records, Mapping) else {}
    values = np.array([]) if isinstance(records, Mapping) else np.asarray(records, float)
    scale = next((m for e in EVALUATORS.values() for m in e.metrics if f"{e.id}.{m.key}" == metric), None)
    bins: dict[int, int] = {}
    if scale is not None:
        for value in values:
            index = Scale.of(scale).bin(float(value))
            bins[index] = bins.get(index, 0) + 1
    scored = sum(labels.values()) if labels else len(values)
    return WindowRow(
        run_id=run_id,
        size_s=size_s,
        app=app,
        environment="prod",
        evaluator=metric.partition(".")[0],
        metric=metric,
        start=datetime.fromtimestamp(at, UTC),
        fingerprint=fingerprint,
        model="m1",
        prompt_version=prompt_version,
        segment="",
        segment_value="",
        seen=scored,
        applicable=scored,
        scored=scored,
        sum=float(values.sum()),
        sum_squares=float((values**2).sum()),
        bins=bins,
        category_counts=dict(labels),
        revision=1,
        state=state,
        version=version,
    )


def accepted(place: ProblemKey, since: datetime) -> EventRow:
    """Ann said an hour after `since` that what changed then is the new normal."""
    empty = dict.fromkeys(("kind", "type", "severity", "code", "description", "rule_id"), "")
    return EventRow(
        problem_id=problem_id(*place),
        event_id="accepted-1",
        event="accepted",
        episode=1,
        at=since + timedelta(hours=1),
        **place._asdict(),
        **empty,
        standards=(),
        attributes=json.dumps({"since": since.isoformat(), "kinds": ["change_point"], "why": "meant"}),
        examples=(),
        actions=(),
        actor="ann",
        epoch=0,
    )


@dataclass
class WindowFixture:
    """A database whose windows are closed up to a tick, and a leader that looks at them."""

    database: Database
    settings: DriftSettings = field(default_factory=lambda: DriftSettings(history_days=2))
    windows: WindowSettings = field(
        default_factory=lambda: WindowSettings(base_s=BASE, sizes_s=(BASE, 3600, DAY), allowed_lateness_s=3600)
    )
    epoch: int = 1
    _versions: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def version(self) -> int:
        return self.epoch << 32 | next(self._versions)

    @property
    def context(self) -> ScanContext:
        return live_context(self.database, self.windows, self.version)

    def store(self, rows: Iterable[WindowRow]) -> None:
        version = self.version()
        self.database.insert("windows", [row._replace(version=version) for row in rows])

    def close(self, until: int) -> None:
        """All before `until` is stored, says lane fast."""
        at = datetime.fromtimestamp(until, UTC)
        self.database.insert("watermarks", [WatermarkRow(LANE, "t", at)])
        self.database.insert("progress", [ProgressRow(LANE, "t", 0, "w", at, 1, 0)])

    def scan(self, until: int) -> ScanResult:
        """By a process that knows nothing but what is stored."""
        self.close(until)
        look = Scanner(self.database, EVALUATORS, self.windows, self.settings, self.context)
        return look.run(datetime.now(UTC))
