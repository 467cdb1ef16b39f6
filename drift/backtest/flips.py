"""Tries the limits of flips on past pairs: whenever a base window ended, by the pairs of `asked_within_s` before."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.backtest.simulate import ProblemSimulation, SimulatedProblem
from ragtide.drift.detectors.arrays import Flags, Integers
from ragtide.drift.problems.report import Detection, ProblemKey
from ragtide.drift.robustness.flip_pairs import PAIRS_PER_BATCH, FlipRow, flip_rows
from ragtide.drift.robustness.flip_rate import detection_of, flip_rate, key_of_flips, rate_state
from ragtide.drift.robustness.perturbation_links import NEWEST, STREAM, PerturbationLink, id_batches, perturbation_links
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats.proportions import Share
from ragtide.drift.windows.metrics import MetricRef
from ragtide.sinks.clickhouse.database import Database

_MINUTE = 60  # from which on the job takes traces


class _TimedRow(NamedTuple):
    """A row and from when on it could be known: the later trace's time, seconds since 1970; `at` is the row's own."""

    known: float
    at: float
    row: FlipRow


def simulate_flip_rate(
    database: Database,
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    base_s: int,
    first: int,
    until: int,
) -> Iterator[SimulatedProblem]:
    """What would have been raised in (first, until], seconds since 1970; pairs of the time before count too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    sinces = ((moments - rules.asked_within_s) // _MINUTE * _MINUTE).astype(np.int64)
    for key, pairs in sorted(_pairs(database, metrics, rules, first, until).items()):
        own = rules.of(key.app)
        there, paired, flipped = (
            _within(pairs, those, moments, sinces).tolist()
            for those in (
                np.ones(len(pairs), bool),
                np.array([one.row.outcome != "unknown" for one in pairs]),
                np.array([one.row.outcome in ("worse", "better") for one in pairs]),
            )
        )
        simulation: ProblemSimulation[tuple[int, int]] = ProblemSimulation(key, "flip", own)
        for nth, at in enumerate(moments.tolist()):
            state = rate_state(Share(flipped[nth], paired[nth]), own)
            if state == "bad":
                simulation.detect(at, (int(sinces[nth]), at))
            elif state == "good" or not there[nth]:
                simulation.clear(at)
            else:
                simulation.tick(at)
        yield from simulation.simulated_problems(partial(_detection, key, pairs, metrics[key.metric], own))


def _within(pairs: Sequence[_TimedRow], those: Flags, moments: Integers, sinces: Integers) -> Integers:
    """How many were known at each moment and not older than it allows; none is known only after it was too old."""
    known, at = (np.sort(np.array([one[nth] for one in pairs])[those]) for nth in (0, 1))
    found: Integers = np.searchsorted(known, moments) - np.searchsorted(at, sinces)
    return found


def _pairs(
    database: Database, metrics: Mapping[str, MetricRef], rules: RuleSettings, first: int, until: int
) -> dict[ProblemKey, list[_TimedRow]]:
    """Of traces of the time that is looked at, as they and their scores are stored now."""
    period = timedelta(seconds=rules.asked_within_s)
    since = (datetime.fromtimestamp(first, UTC) - period).replace(second=0, microsecond=0)
    found = [one for one in perturbation_links(database, since, period) if one.time.timestamp() < until]
    made: dict[ProblemKey, list[_TimedRow]] = {}
    for start in range(0, len(found), PAIRS_PER_BATCH):
        some = found[start : start + PAIRS_PER_BATCH]
        times = _times(database, some)
        for link, rows in flip_rows(database, some, metrics, rules, version=0):
            at = link.time.timestamp()
            known = max(at, times.get(link.original_id, at))
            for row in rows if known - at < rules.asked_within_s else ():
                key = key_of_flips(row.app, row.environment, row.model, row.metric, row.techniques)
                made.setdefault(key, []).append(_TimedRow(known, at, row))
    return made


def _times(database: Database, some: Sequence[PerturbationLink]) -> dict[str, float]:
    """Of the originals, seconds since 1970."""
    return {
        row["trace_id"]: row["at"].timestamp()
        for ids in id_batches(sorted({link.original_id for link in some if link.original_id}))
        for row in database.rows(
            f"SELECT trace_id, argMax(time, {NEWEST}) AS at FROM traces "
            f"WHERE {STREAM} AND trace_id IN {sql.texts(ids)} GROUP BY trace_id"
        )
    }


def _detection(
    key: ProblemKey, pairs: Sequence[_TimedRow], metric: MetricRef, rules: RuleSettings, span: tuple[int, int]
) -> Detection:
    since, until = span
    return detection_of(
        flip_rate(key, [one.row for one in pairs if one.known < until and one.at >= since]), metric, rules
    )
