"""Where the fleet has a run length of its own, an alarm is told once its evidence is enough for all series together."""

from datetime import UTC, datetime

import numpy as np
import pytest

from drift.detectors import watching
from drift.detectors.baseline import log_threshold
from drift.leadership import Term
from drift.rules.series import Series
from drift.settings import DriftSettings, RuleSettings
from drift.watching import detecting
from drift.watching.batch import Batch, BatchKey
from drift.watching.kinds import watches
from drift.watching.look import Looked
from drift.watching.reading import Newcomer
from drift.watching.seen import Seen
from drift.watching.telling import Teller
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database
from tests.drift.watching.planted import EVALUATORS, LANE, START

SERIES = 2_000
TICK_S = 300


def looked(log_e: float) -> Looked:
    """One of many series in alarm, with that evidence."""
    batch = Batch.empty(BatchKey("score", LANE, 0), TICK_S, START, 0)
    new = {i + 1: Newcomer(Series(f"app{i}", "prod", "quality.good", "m1", "", ""), 1) for i in range(SERIES)}
    batch.add(new, TICK_S, known_before=True)
    blank = detecting.blank("score", TICK_S, SERIES)
    blank.active[:] = True
    state = batch.rows.state
    state.evidence.log_m[0] = log_e
    state.alarms.on[0] = True
    state.alarms.records[0], state.alarms.residual[0], state.alarms.expected[0] = 100, -10, 80
    state.alarms.onset[0] = START // TICK_S - 3
    seen = Seen(batch, blank)
    assert watching.read(blank, state).evidence[0] == pytest.approx(log_e)
    return Looked((seen,), 0, 0)


def opened(database: Database, found: Looked, days: float | None) -> list[str]:
    settings, term = DriftSettings(fleet_run_days=days), Term(1, datetime.now(UTC))
    teller = Teller(database, RuleSettings(), settings, watches(EVALUATORS.values()), SegmentValues({}), term)
    return [event.app for event in teller.tell(found, datetime.now(UTC))]


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
