"""Tries `missing_after_s` on past windows: when an application would have been told to be silent, and until when."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.checks.missing_data import (
    DAY_S,
    HISTORY,
    HOUR_S,
    ActiveHours,
    ActivityProfile,
    detection_of,
    key_of_app,
    typical_pause,
)
from ragtide.drift.problems.report import Detection
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.traffic import live_windows, select_traffic, traffic_metrics
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_HISTORY_S = int(HISTORY.total_seconds())
_Traffic = Sequence[tuple[int, int]]  # start of a window with traffic and its traces, in order of time


def simulate_missing_data(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[SimulatedProblem]:
    """What would have been raised in (first, until]; habits are known of the two weeks before each silence."""
    for (app, environment), sent in _read_traffic(database, evaluators, base_s, first - _HISTORY_S, until).items():
        own = rules.of(app)
        if own.missing_after_s is None:
            continue
        simulation: ProblemSimulation[tuple[ActivityProfile, int]] = ProblemSimulation(
            key_of_app(app, environment), "missing_data", own
        )
        for nth, (start, back) in enumerate(pairwise([*(at for at, _ in sent), until])):
            silent = range(max(start + base_s, first) + base_s, min(back, start + _HISTORY_S) + 1, base_s)
            if back - start - base_s < own.missing_after_s or not silent:
                continue
            profile = _activity_profile(app, environment, _recent_traffic(sent, nth), base_s, own.missing_after_s)
            broken = bisect_left(silent, True, key=partial(_is_overdue, profile, own.missing_after_s))
            for at in silent[broken:]:
                simulation.detect(at, (profile, at))
            over = min(back, start + _HISTORY_S) + base_s  # it is back, or given up
            if broken < len(silent) and over <= until:
                simulation.clear(over)
        yield from simulation.simulated_problems(partial(_detection, own))


def _read_traffic(
    database: Database, evaluators: Mapping[str, Evaluator], base_s: int, since: int, until: int
) -> dict[tuple[str, str], _Traffic]:
    for metrics in traffic_metrics(evaluators.values()):
        rows = database.rows(
            "SELECT app, environment, arraySort(groupArray((at, traces))) AS sent FROM ("
            "SELECT app, environment, at, sum(n) AS traces "
            f"FROM ({select_traffic(live_windows(base_s, metrics, since, until))}) GROUP BY app, environment, at"
            ") GROUP BY app, environment ORDER BY app, environment"
        )
        if rows:
            return {(row["app"], row["environment"]): row["sent"] for row in rows}
    return {}


def _recent_traffic(sent: _Traffic, nth: int) -> _Traffic:
    """What came in the two weeks up to the window with that place."""
    return sent[bisect_left(sent, (sent[nth][0] - _HISTORY_S, 0)) : nth + 1]


def _activity_profile(app: str, environment: str, sent: _Traffic, base_s: int, after_s: float) -> ActivityProfile:
    """As the job makes it of the same windows."""
    starts = [at for at, _ in sent]
    hours = ActiveHours.of(sorted({at // HOUR_S for at in starts}))
    pauses = [(one + base_s, other) for one, other in pairwise(starts) if other - one - base_s >= after_s / 2]
    traces = sum(traces for at, traces in sent if at + DAY_S > starts[-1])
    return ActivityProfile(
        app, environment, starts[-1] + base_s, traces, len(sent), hours, typical_pause(hours, pauses)
    )


def _is_overdue(profile: ActivityProfile, after_s: float, at: int) -> bool:
    return profile.is_overdue(at, after_s)


def _detection(own: RuleSettings, evidence: tuple[ActivityProfile, int]) -> Detection:
    profile, at = evidence
    return detection_of(profile, own, datetime.fromtimestamp(at, UTC))
