"""Where the fleet has a run length of its own, an alarm is told once its evidence is enough for all series together."""

from datetime import UTC, datetime

import numpy as np
import pytest

from ragtide.drift.anomalies.batch import Batch, BatchKey, BatchSnapshot
from ragtide.drift.anomalies.cells import blank_baseline
from ragtide.drift.anomalies.change_points import ChangePointReporter
from ragtide.drift.anomalies.metrics import monitored_metrics
from ragtide.drift.anomalies.queries import NewSeries
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.detectors import run_state
from ragtide.drift.detectors.baseline import log_threshold
from ragtide.drift.leadership import Term
from ragtide.drift.rules.model import Series
from ragtide.drift.settings import DriftSettings, RuleSettings
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database
from tests.drift.anomalies.window_fixture import EVALUATORS, LANE, START

SERIES = 2_000
TICK_S = 300


def looked(log_e: float) -> ScanResult:
    """One of many series in alarm, with that evidence."""
    batch = Batch.empty(BatchKey("score", LANE, 0), TICK_S, START)
    new = {i + 1: NewSeries(Series(f"app{i}", "prod", "quality.good", "m1", "", ""), 1) for i in range(SERIES)}
    batch.add(new, TICK_S, known_before=True)
    blank = blank_baseline("score", TICK_S, SERIES)
    blank.active[:] = True
    state = batch.rows.state
    state.evidence.log_m[0] = log_e
    state.alarms.on[0] = True
    state.alarms.records[0], state.alarms.residual[0], state.alarms.expected[0] = 100, -10, 80
    state.alarms.onset[0] = START // TICK_S - 3
    seen = BatchSnapshot(batch, blank)
    assert run_state.detector_status(blank, state).evidence[0] == pytest.approx(log_e)
    return ScanResult((seen,), 0, 0)


def opened(database: Database, found: ScanResult, days: float | None) -> list[str]:
    settings, term = DriftSettings(fleet_run_days=days), Term(1, datetime.now(UTC))
    teller = ChangePointReporter(
        database, RuleSettings(), monitored_metrics(EVALUATORS.values()), SegmentValues({}), term, settings
    )
    return [event.app for event in teller.report(found, datetime.now(UTC))]


def test_a_fleet_that_runs_long_asks_for_more(database: Database) -> None:
    of_series = log_threshold(TICK_S) + 0.1  # enough for one series in 1,000 days
    of_fleet = float(np.log(7 * 288 * SERIES))  # 2,000 series, one false problem a week
    assert of_series < of_fleet
    assert opened(database, looked(of_series), 7) == []
    assert opened(database, looked(of_fleet + 0.1), 7) == ["app0"]
    assert opened(database, looked(of_series), 7) == []  # what stands is told on, and has nothing new to say
    rows = database.rows("SELECT groupArray(event) AS events FROM problem_events FINAL")
    assert rows[0]["events"] == ["opened"]


def test_each_series_by_itself_needs_no_more_than_its_own(database: Database) -> None:
    assert opened(database, looked(log_threshold(TICK_S) + 0.1), None) == ["app0"]
