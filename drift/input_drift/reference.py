"""Learn and store the reference of an application's questions, with the state of its detector.

A reference has groups of questions, their usual shares, and the usual differences between days. Groups are clusters by
meaning: spherical k-means (Dhillon and Modha 2001). A later question belongs to the nearest group, or to none if it
lies farther from the centroid than 99 % of the group's reference. So new kinds of questions show as outliers.
"""

import base64
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies import BaselinePin
from ragtide.drift.array_types import Flags, Floats, Integers
from ragtide.drift.detectors import (
    BASELINE_VERSION,
    STATE_VERSION,
    Baseline,
    Categories,
    State,
    Status,
    detector_status,
    fit_baseline,
    serialization,
    start_state,
)
from ragtide.drift.input_drift.classifier_test import same_questions
from ragtide.drift.input_drift.day_test import same_day_kind, usual_aucs
from ragtide.drift.input_drift.source import QuestionSample, QuestionSource, QuestionStore, concatenate
from ragtide.drift.stats import DAY_S, HOUR_S, calendar
from ragtide.drift.topics import centroid_of, cosines_of, min_cosine_of
from ragtide.evaluators.spec import Vectors
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

logger = logging.getLogger(__name__)
_VERSION = 2 << 16 | BASELINE_VERSION << 8 | STATE_VERSION
TICK_S = HOUR_S // 4
TICK_QUESTIONS = 60  # sampled per tick
DAY_QUESTIONS = 1_000  # sampled per day, for comparisons of days
_CLUSTER_SAMPLE = 5_000  # questions of a reference that are clustered
_CHUNK_DAYS = 4  # in memory at a time: 35 MB of vectors of 384 numbers
_MAX_DAYS = 28  # of a pinned interval, from its end
MAX_GROUPS = 12
_MIN_SIZE = 50  # mean number of questions of a group, at least
_OUTLIER_SHARE = 0.01  # of a group's reference
_ROUNDS = 50
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class QuestionGroups:
    """Centroids [k, dimension] of length 1, and the minimum cosine [k] of a group's questions."""

    centroids: Vectors
    min_cosines: Floats

    @property
    def outlier(self) -> int:
        """Number of the group of outliers."""
        return len(self.centroids)

    def assign(self, vectors: Vectors) -> Integers:
        """Return the group of each question [n, dimension], from 0 on, or `outlier`."""
        if not len(vectors):
            return np.empty(0, np.int64)
        cosines = cosines_of(vectors, self.centroids)
        nearest = cosines.argmax(axis=1)
        reached = cosines[np.arange(len(nearest)), nearest] >= self.min_cosines[nearest]
        return np.where(reached, nearest, self.outlier).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Questions of a run on `days` [D] within [since, until): groups and their usual shares. Field names are stored.

    Times in seconds since 1970. `usual_aucs` [D]: AUC of each day against the others, or NaN.
    `learned_at`: time of the fit; `baseline_source`: source of the data, see `ragtide.drift.anomalies.references`.
    """

    groups: QuestionGroups
    baseline: Baseline
    days: Integers
    usual_aucs: Floats
    since: int
    until: int
    learned_at: int
    baseline_source: int
    run_id: str

    @property
    def has_rhythm(self) -> bool:
        """Whether hours and weekends are distinguished; the times of a replay mean nothing."""
        return self.run_id == LIVE

    def days_like(self, day: int) -> Flags:
        """Tell which of its days [D] are of the same kind as `day`."""
        return same_day_kind(self.days, day) if self.has_rhythm else np.ones(len(self.days), bool)


@dataclass(slots=True, eq=False)
class InputDriftState:
    """State of one application: its reference, and the detector of group shares up to `until`. Field names are stored.

    `day_drifted`: whether the last whole day differed; `excluded_days` [D]: days excluded from references.
    """

    reference: Reference
    detector: State
    until: int
    day_drifted: bool
    excluded_days: Integers

    @classmethod
    def start(cls, reference: Reference, until: int, excluded_days: Integers) -> "InputDriftState":
        """Return the state right after a reference was learned."""
        return cls(reference, start_state(reference.baseline), until, False, excluded_days)

    def exclude(self, times: Integers) -> None:
        """Exclude the days of these times from references."""
        self.excluded_days = np.unique(np.concatenate([self.excluded_days, times // DAY_S * DAY_S]))

    def reset(self) -> None:
        """Clear the alarm of group shares and its evidence."""
        until = self.detector.until
        self.detector = start_state(self.reference.baseline)
        self.detector.until[:] = until

    @property
    def is_drifted(self) -> bool:
        """Whether any test reports drift."""
        return self.groups_in_alarm or self.day_drifted

    @property
    def groups_in_alarm(self) -> bool:
        """Whether the detector of group shares is in alarm."""
        return bool(self.detector.alarms.on[0])

    @property
    def status(self) -> Status:
        """Status of the detector of group shares, which has one series."""
        return detector_status(self.reference.baseline, self.detector)


class _Row(NamedTuple):
    """Table `question_references`."""

    app: str
    environment: str
    encoder: str
    learned_at: datetime
    until: datetime
    days: list[datetime]
    groups: int
    state: str
    version: int


def load_states(database: Database) -> dict[QuestionSource, InputDriftState]:
    """Load the state of every application; those written by another release restart."""
    rows = database.rows("SELECT app, environment, encoder, state FROM question_references FINAL ORDER BY ALL")
    found = {}
    for row in rows:
        source = QuestionSource(row["app"], row["environment"], row["encoder"])
        try:
            found[source] = serialization.from_bytes(InputDriftState, base64.b64decode(row["state"]), _VERSION)
        except ValueError as error:
            logger.warning("stored input drift of %s is unreadable and restarts: %s", source.app, error)
    return found


def save_state(database: Database, source: QuestionSource, state: InputDriftState, version: int) -> None:
    """Store a state."""
    reference = state.reference
    row = _Row(
        source.app,
        source.environment,
        source.encoder,
        learned_at=calendar.utc(reference.learned_at),
        until=calendar.utc(state.until),
        days=[calendar.utc(int(day)) for day in reference.days],
        groups=len(reference.groups.centroids),
        state=base64.b64encode(serialization.to_bytes(state, _VERSION)).decode(),
        version=version,
    )
    database.insert("question_references", [row])


@dataclass(frozen=True, slots=True)
class ReferenceLearner:
    """Learns references from live history of `history_days`, or from a pin."""

    questions: QuestionStore
    history_days: int

    def learn(
        self, origin: QuestionSource, at: int, pin: BaselinePin | None, basis: int, excluded_days: Integers
    ) -> Reference | None:
        """Learn the reference that is effective from `at` on; None if there are no questions.

        Days in `excluded_days` and times before a positive `basis` are not used.
        """
        if pin is None:
            since, until, run_id = max(at - self.history_days * DAY_S, basis), at, LIVE
        else:
            until, run_id = int(pin.until.timestamp()), pin.run_id
            since = max(int(pin.since.timestamp()), until - _MAX_DAYS * DAY_S)
        days = np.arange(calendar.floor(since, DAY_S), calendar.ceil(until, DAY_S), DAY_S)
        if pin is None:
            days = days[~np.isin(days, excluded_days)]
        source = origin._replace(run_id=run_id)
        samples = self._daily_samples(source, days, since, until)
        vectors = concatenate(samples).vectors
        if not len(vectors):
            return None
        chosen = np.sort(np.random.default_rng(_SEED).permutation(len(vectors))[:_CLUSTER_SAMPLE])
        groups = cluster(vectors[chosen], _SEED)
        counts = self._history_counts(source, groups, days, since, until)
        baseline = fit_baseline(counts, seasonal=run_id == LIVE)
        usual = usual_aucs(samples, days, run_id == LIVE)
        return Reference(groups, baseline, days, usual, since, until, at, basis, run_id)

    def sample_like(self, origin: QuestionSource, reference: Reference, day: int) -> QuestionSample:
        """Sample questions of the reference's days of the same kind as `day`."""
        source, days = origin._replace(run_id=reference.run_id), reference.days[reference.days_like(day)]
        return concatenate(self._daily_samples(source, days, reference.since, reference.until))

    def _daily_samples(self, origin: QuestionSource, days: Integers, since: int, until: int) -> list[QuestionSample]:
        """Sample questions of each day, ascending, within [since, until)."""
        if not len(days):
            return []
        some = self.questions.sample(origin, int(days[0]), int(days[-1]) + DAY_S, DAY_S, DAY_QUESTIONS)
        some = some.select((some.at >= since) & (some.at < until))
        return [some.select(some.at // DAY_S == day // DAY_S) for day in days]

    def _history_counts(
        self, origin: QuestionSource, groups: QuestionGroups, days: Integers, since: int, until: int
    ) -> Categories:
        """Count groups by tick from the first to the last day; excluded days are empty."""
        begin, stop = int(days[0]), int(days[-1]) + DAY_S
        start = np.arange(begin, stop, TICK_S)
        counts = np.zeros((1, len(start), groups.outlier + 1))
        for first in range(begin, stop, _CHUNK_DAYS * DAY_S):
            end = min(first + _CHUNK_DAYS * DAY_S, stop)
            some = self.questions.sample(origin, first, end, TICK_S, TICK_QUESTIONS)
            within = (some.at >= since) & (some.at < until) & np.isin(some.at // DAY_S, days // DAY_S)
            some = some.select(within)
            counts += count_groups(some, groups, start).counts
        return Categories(start, counts)


def count_groups(some: QuestionSample, groups: QuestionGroups, start: Integers) -> Categories:
    """Count distinct questions by tick and group, with outliers.

    Repetitions within a tick count once: one eager client is no change of what users ask.
    """
    counts = np.zeros((1, len(start), groups.outlier + 1))
    if len(some.at):
        tick = (some.at - start[0]) // TICK_S
        first = np.unique(np.stack([tick, same_questions(some.vectors)]), axis=1, return_index=True)[1]
        np.add.at(counts[0], (tick[first], groups.assign(some.vectors[first])), 1)
    return Categories(start, counts)


def cluster(vectors: Vectors, seed: int) -> QuestionGroups:
    """Cluster questions [n, dimension] in 1 to 12 groups; deterministic for the same vectors and seed."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    most = min(MAX_GROUPS, max(len(vectors) // _MIN_SIZE, 1))
    centroids = _initial_centroids(units, most, np.random.default_rng(seed))
    nearest = np.full(len(units), -1)
    for _ in range(_ROUNDS):
        before, nearest = nearest, cosines_of(units, centroids).argmax(axis=1)
        if np.array_equal(before, nearest):
            break
        centroids = np.stack([centroid_of(units[nearest == one]) for one in np.unique(nearest)])
    nearest = cosines_of(units, centroids).argmax(axis=1)
    kept = np.unique(nearest)
    least = [min_cosine_of(units[nearest == one], centroids[one], _OUTLIER_SHARE) for one in kept]
    return QuestionGroups(centroids[kept], np.array(least))


def _initial_centroids(units: Vectors, most: int, rng: np.random.Generator) -> Vectors:
    """Sample questions far from each other (k-means++, Arthur and Vassilvitskii 2007)."""
    chosen = [int(rng.integers(len(units)))]
    distance = 1 - cosines_of(units, units[chosen])[:, 0]
    while len(chosen) < most and (weights := np.maximum(distance, 0.0)).any():
        chosen.append(int(rng.choice(len(units), p=weights / weights.sum())))
        distance = np.minimum(distance, 1 - cosines_of(units, units[chosen[-1:]])[:, 0])
    return units[chosen]
