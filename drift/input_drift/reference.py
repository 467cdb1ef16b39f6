"""Learn and store the reference of an application's questions, with the state of its detector.

A reference has groups of questions, their usual shares, and the usual differences between days."""

import base64
import logging
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from ragtide.drift.anomalies.references import BaselinePin
from ragtide.drift.detectors import categories, run_state, serialization
from ragtide.drift.detectors.arrays import Categories, Flags, Floats, Integers
from ragtide.drift.detectors.baseline import VERSION as BASELINE
from ragtide.drift.detectors.baseline import Baseline
from ragtide.drift.detectors.run_state import VERSION as STATE
from ragtide.drift.detectors.run_state import State, Status
from ragtide.drift.input_drift.classifier_test import same_questions
from ragtide.drift.input_drift.day_test import same_day_kind, usual_aucs
from ragtide.drift.input_drift.groups import QuestionGroups, cluster
from ragtide.drift.input_drift.source import QuestionSample, QuestionSource, QuestionStore, concatenate
from ragtide.drift.stats import calendar
from ragtide.drift.stats.calendar import DAY_S, HOUR_S
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE

logger = logging.getLogger(__name__)
_VERSION = 1 << 16 | BASELINE << 8 | STATE
TICK_S = HOUR_S // 4
TICK_QUESTIONS = 60  # sampled per tick
DAY_QUESTIONS = 1_000  # sampled per day, for comparisons of days
_CLUSTER_SAMPLE = 5_000  # questions of a reference that are clustered
_CHUNK_DAYS = 4  # in memory at a time: 35 MB of vectors of 384 numbers
_MAX_DAYS = 28  # of a pinned interval, from its end
_SEED = 1


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Questions of a run on `days` [D] within [since, until): groups and their usual shares. Field names are stored.

    Times in seconds since 1970. `usual` [D]: AUC of each day against the others, or NaN. `learned`: time of the fit;
    `basis`: source of the data, see `ragtide.drift.anomalies.references`.
    """

    groups: QuestionGroups
    baseline: Baseline
    days: Integers
    usual: Floats
    since: int
    until: int
    learned: int
    basis: int
    run_id: str

    @property
    def has_rhythm(self) -> bool:
        """Whether hours and weekends are distinguished; the times of a replay mean nothing."""
        return self.run_id == LIVE

    def days_like(self, day: int) -> Flags:
        """Tell which of its days [D] are of the same kind as `day`."""
        return same_day_kind(self.days, day) if self.has_rhythm else np.ones(len(self.days), bool)


@dataclass(slots=True, eq=False)
class Memory:
    """State of one application: its reference, and the detector of group shares up to `until`. Field names are stored.

    `unlike`: whether the last whole day differed; `troubled` [D]: days excluded from references.
    """

    reference: Reference
    state: State
    until: int
    unlike: bool
    troubled: Integers

    @classmethod
    def start(cls, reference: Reference, until: int, excluded_days: Integers) -> "Memory":
        """Return the state right after a reference was learned."""
        return cls(reference, run_state.start(reference.baseline), until, False, excluded_days)

    def exclude(self, times: Integers) -> None:
        """Exclude the days of these times from references."""
        self.troubled = np.unique(np.concatenate([self.troubled, times // DAY_S * DAY_S]))

    def reset(self) -> None:
        """Clear the alarm of group shares and its evidence."""
        until = self.state.until
        self.state = run_state.start(self.reference.baseline)
        self.state.until[:] = until

    @property
    def is_drifted(self) -> bool:
        """Whether any test reports drift."""
        return self.groups_in_alarm or self.unlike

    @property
    def groups_in_alarm(self) -> bool:
        """Whether the detector of group shares is in alarm."""
        return bool(self.state.alarms.on[0])

    @property
    def status(self) -> Status:
        """Status of the detector of group shares, which has one series."""
        return run_state.status(self.reference.baseline, self.state)


class _Row(NamedTuple):
    """Table `question_references`."""

    app: str
    environment: str
    encoder: str
    learned: datetime
    until: datetime
    days: list[datetime]
    groups: int
    memory: str
    version: int


def load_states(database: Database) -> dict[QuestionSource, Memory]:
    """Load the state of every application; those written by another release restart."""
    rows = database.rows("SELECT app, environment, encoder, memory FROM question_references FINAL ORDER BY ALL")
    found = {}
    for row in rows:
        source = QuestionSource(row["app"], row["environment"], row["encoder"])
        try:
            found[source] = serialization.from_bytes(Memory, base64.b64decode(row["memory"]), _VERSION)
        except ValueError as error:
            logger.warning("questions of %s begin anew: %s", source.app, error)
    return found


def save_state(database: Database, source: QuestionSource, memory: Memory, version: int) -> None:
    """Store a state."""
    reference = memory.reference
    row = _Row(
        source.app,
        source.environment,
        source.encoder,
        learned=calendar.utc(reference.learned),
        until=calendar.utc(memory.until),
        days=[calendar.utc(int(day)) for day in reference.days],
        groups=len(reference.groups.centroids),
        memory=base64.b64encode(serialization.to_bytes(memory, _VERSION)).decode(),
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
        baseline = categories.fit(self._history_counts(source, groups, days, since, until), seasonal=run_id == LIVE)
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
