"""Tries `dead_letters` on past ones: whenever a base window ended, by the hour before and the week before that."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import numpy as np

from ragtide.drift.backtest.simulate import CumulativeCounts, ProblemSimulation, SimulatedProblem
from ragtide.drift.checks.storage import (
    BASELINE_LOOKBACK,
    CLEAR_FRACTION,
    LOOKBACK,
    above_usual,
    dead_letter_counts,
    detection_of,
    key_of_dead_letters,
)
from ragtide.drift.problems.report import Detection
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database

_JUDGED_MS, _USUAL_MS = (int(span.total_seconds()) * 1000 for span in (LOOKBACK, BASELINE_LOOKBACK))


def simulate_dead_letters(
    database: Database, rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[SimulatedProblem]:
    """What would have been raised in (first, until], seconds since 1970; letters of the week before count too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    now = moments * 1000 + 1  # a letter of that very moment counts
    for topic, letters in _letters(database, first * 1000 - _JUDGED_MS - _USUAL_MS, until * 1000).items():
        recent = letters.within(now - _JUDGED_MS, now)
        usual = letters.within(now - _JUDGED_MS - _USUAL_MS, now - _JUDGED_MS) / (_USUAL_MS / _JUDGED_MS)
        simulation: ProblemSimulation[int] = ProblemSimulation(
            key_of_dead_letters(topic), "threshold", rules, "dead_letters"
        )
        for at, n, mean in zip(moments.tolist(), recent.tolist(), usual.tolist(), strict=True):
            if n and above_usual(n, mean, rules.dead_letters, 1.0):
                simulation.detect(at, at)
            elif n and above_usual(n, mean, rules.dead_letters, CLEAR_FRACTION):
                simulation.tick(at)
            elif simulation.is_open:
                simulation.clear(at)
        yield from simulation.simulated_problems(partial(_detection, database, topic, rules))


def _letters(database: Database, first_ms: int, until_ms: int) -> dict[str, CumulativeCounts]:
    """By topic, those that came in that time; milliseconds since 1970."""
    rows = database.rows(
        "SELECT topic, arraySort(groupArray((at, n))) AS letters FROM ("
        "SELECT topic, toUnixTimestamp64Milli(ingested_at) AS at, count() AS n FROM dead_letters FINAL "
        f"WHERE run_id = 'live' AND at >= {first_ms} AND at <= {until_ms} GROUP BY topic, at"
        ") GROUP BY topic ORDER BY topic"
    )
    return {row["topic"]: CumulativeCounts.of(row["letters"]) for row in rows}


def _detection(database: Database, topic: str, rules: RuleSettings, at: int) -> Detection:
    """In the words of the job, which looks at that hour once more."""
    now = datetime.fromtimestamp(at, UTC)
    return detection_of(next(one for one in dead_letter_counts(database, now) if one.topic == topic), rules, now)
