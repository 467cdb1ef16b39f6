"""The reference of an application's questions: how it is learned and stored, with the state of its detector.

A reference has groups of questions, their usual shares, and how much days differ."""

import base64
import logging
from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """How questions of a run were asked on `days` [D], within [since, until): groups and their usual shares.

    Times in seconds since 1970. `usual` [D]: the area of each day against the others, NaN where it is not known.
    `learned`: at which time; `basis`: on what, see `ragtide.drift.anomalies.references`.
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
        """Whether hours of a day, and weekends, are told apart: a replay has times of its own."""
        return self.run_id == LIVE

    def days_like(self, day: int) -> Flags:
        """Which of its days [D] are of the kind of the one that begins then."""
        return same_day_kind(self.days, day) if self.has_rhythm else np.ones(len(self.days), bool)


@dataclass(slots=True, eq=False)
class Memory:
    """Of one application: its reference, and the state of the detector of shares after all ticks before `until`.

    `unlike`: whether the last whole day was, as far as that could be told; `excluded_days` [D]: days that are no
    example.
    """

    reference: Reference
    state: State
    until: int
    unlike: bool
    troubled: Integers

    @classmethod
    def start(cls, reference: Reference, until: int, excluded_days: Integers) -> "Memory":
        """Nothing was looked at since the reference."""
        return cls(reference, run_state.start(reference.baseline), until, False, excluded_days)

    def exclude(self, times: Integers) -> None:
        """The days of these times are no example."""
        self.troubled = np.unique(np.concatenate([self.troubled, times // DAY_S * DAY_S]))

    def reset(self) -> None:
        """The shares of groups are in alarm no more, and nothing is known against them."""
        until = self.state.until
        self.state = run_state.start(self.reference.baseline)
        self.state.until[:] = until

    @property
    def is_drifted(self) -> bool:
        """Whether there is anything to tell."""
        return self.groups_in_alarm or self.unlike

    @property
    def groups_in_alarm(self) -> bool:
        """Whether the shares of groups are in alarm."""
        return bool(self.state.alarms.on[0])

    @property
    def status(self) -> Status:
        """What the detector of shares says now, of its one series."""
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
    """All there are; what another release wrote is left out, and begins anew."""
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
    """As it is now, stored when this returns."""
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


TICK_S = HOUR_S // 4
TICK_QUESTIONS = 60  # of a tick that are looked at
DAY_QUESTIONS = 1_000  # of a day that are compared with those of others
_CLUSTER_SAMPLE = 5_000  # of a reference that groups are found among
_CHUNK_DAYS = 4  # whose ticks are in memory: 35 MB of vectors of 384 numbers
_MAX_DAYS = 28  # of what is pinned the end counts
_SEED = 1


@dataclass(frozen=True, slots=True)
class ReferenceLearner:
    """Learns from live history of so many days, or from what a person pinned."""

    questions: QuestionStore
    history_days: int

    def learn(
        self, origin: QuestionSource, at: int, pin: BaselinePin | None, basis: int, excluded_days: Integers
    ) -> Reference | None:
        """What holds from `at` on; None where nothing was asked that it could be learned from.

        `excluded_days`: days that are no example; nothing before a `basis` above 0 is.
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
        groups = self._find_groups(samples)
        if groups is None:
            return None
        baseline = categories.fit(self._history_counts(source, groups, days, since, until), seasonal=run_id == LIVE)
        usual = usual_aucs(samples, days, run_id == LIVE)
        return Reference(groups, baseline, days, usual, since, until, at, basis, run_id)

    def sample_like(self, origin: QuestionSource, reference: Reference, day: int) -> QuestionSample:
        """Questions of the reference's days of the same kind as the one that begins then."""
        source, days = origin._replace(run_id=reference.run_id), reference.days[reference.days_like(day)]
        return concatenate(self._daily_samples(source, days, reference.since, reference.until))

    def _daily_samples(self, origin: QuestionSource, days: Integers, since: int, until: int) -> list[QuestionSample]:
        """Questions of each of some days, ascending, that were asked in [since, until)."""
        if not len(days):
            return []
        first, end = int(days[0]), int(days[-1]) + DAY_S
        some = _between(self.questions.sample(origin, first, end, DAY_S, DAY_QUESTIONS), since, until)
        return [some.select(some.at // DAY_S == day // DAY_S) for day in days]

    def _find_groups(self, samples: Sequence[QuestionSample]) -> QuestionGroups | None:
        vectors = concatenate(samples).vectors
        chosen = np.sort(np.random.default_rng(_SEED).permutation(len(vectors))[:_CLUSTER_SAMPLE])
        return cluster(vectors[chosen], _SEED) if len(vectors) else None

    def _history_counts(
        self, origin: QuestionSource, groups: QuestionGroups, days: Integers, since: int, until: int
    ) -> Categories:
        """Ticks from the first to the last day; those of days that are left out are empty."""
        begin, stop = int(days[0]), int(days[-1]) + DAY_S
        start = np.arange(begin, stop, TICK_S)
        counts = np.zeros((1, len(start), groups.outlier + 1))
        for first in range(begin, stop, _CHUNK_DAYS * DAY_S):
            end = min(first + _CHUNK_DAYS * DAY_S, stop)
            some = _between(self.questions.sample(origin, first, end, TICK_S, TICK_QUESTIONS), since, until)
            some = some.select(np.isin(some.at // DAY_S, days // DAY_S))
            counts += count_groups(some, groups, start).counts
        return Categories(start, counts)


def count_groups(some: QuestionSample, groups: QuestionGroups, start: Integers) -> Categories:
    """How many different ones of these questions are in each group, and in none, in each tick.

    One that is asked again in the same tick counts once: an eager client says nothing of what users ask.
    """
    counts = np.zeros((1, len(start), groups.outlier + 1))
    if len(some.at):
        tick = (some.at - start[0]) // TICK_S
        first = np.unique(np.stack([tick, same_questions(some.vectors)]), axis=1, return_index=True)[1]
        np.add.at(counts[0], (tick[first], groups.assign(some.vectors[first])), 1)
    return Categories(start, counts)


def _between(some: QuestionSample, since: int, until: int) -> QuestionSample:
    return some.select((some.at >= since) & (some.at < until))
