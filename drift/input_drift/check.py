"""The job `questions`: process each application's questions tick by tick and day by day, and report input drift.

The result does not depend on how often the job runs. References are learned at the start of a day from earlier
questions: first daily, then weekly. During drift none is learned: it becomes usual only if an operator accepts it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from ragtide.drift.anomalies.references import BaselinePin, ReferenceOverrides, load_overrides
from ragtide.drift.detectors import categories
from ragtide.drift.detectors.arrays import Integers
from ragtide.drift.detectors.baseline import Baseline, WarmUp
from ragtide.drift.input_drift import reference as memories
from ragtide.drift.input_drift.classifier_test import MIN_QUESTIONS
from ragtide.drift.input_drift.day_test import MARGIN, DayComparison, compare, is_drifted
from ragtide.drift.input_drift.messages import METRIC, input_drift_details, key_of, onset, series_of
from ragtide.drift.input_drift.reference import (
    DAY_QUESTIONS,
    TICK_QUESTIONS,
    TICK_S,
    Memory,
    Reference,
    ReferenceLearner,
    count_groups,
)
from ragtide.drift.input_drift.source import ClickHouseQuestionStore, QuestionSample, QuestionSource, active_sources
from ragtide.drift.job_history import StopRequested
from ragtide.drift.leadership import Term
from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.report import Clear, Detection, open_detections, report
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import calendar
from ragtide.drift.stats.calendar import DAY_S
from ragtide.drift.windows import watermark
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
KIND: Kind = "input_drift"
_LANE = "model"  # stores the vectors
_RENEWAL_S = 7 * DAY_S
STALE_AFTER_S = 7 * DAY_S  # a state this old is discarded, and its problem clears
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class SourceProcessor:
    """Processes one application; `pin` and `basis` are the source of its reference.

    `margin`: smallest change to report, as a multiple of the default tolerance.
    """

    learner: ReferenceLearner
    source: QuestionSource
    pin: BaselinePin | None
    basis: int
    margin: float = 1.0

    def advance(self, memory: Memory | None, end: int) -> Memory | None:
        """Process all ticks before `end` and return the state; None if there is no reference yet."""
        if memory is None or end - memory.until >= STALE_AFTER_S:
            memory = self._learn(calendar.floor(end, DAY_S))
        elif memory.reference.basis != self.basis:
            memory = self._learn(memory.until) or memory
        while memory is not None and memory.until < end:
            memory = self._renew(memory)
            stop = min(end, calendar.ceil(memory.until + 1, DAY_S))
            self._process(memory, stop)
            if stop % DAY_S == 0:
                self._test_day(memory, stop - DAY_S)
        return memory

    def compare_day(self, memory: Memory, day: int) -> DayComparison:
        """Compare a day with days of its kind."""
        return self._compare(memory.reference, self._day_sample(day), day)

    def compare_recent(self, memory: Memory, since: int) -> DayComparison:
        """Compare questions from `since` on, of a day at most, with days of the same kind."""
        first = max(calendar.floor(since, TICK_S), memory.until - DAY_S)
        new = self.learner.questions.sample(self.source, first, memory.until, TICK_S, TICK_QUESTIONS)
        chosen = np.random.default_rng(first).permutation(len(new.at))[:DAY_QUESTIONS]
        last_day = calendar.floor(memory.until - 1, DAY_S)
        return self._compare(memory.reference, new.select(np.sort(chosen)), last_day)

    def _compare(self, reference: Reference, new: QuestionSample, day: int) -> DayComparison:
        return compare(new, self.learner.sample_like(self.source, reference, day), reference.has_rhythm)

    def _day_sample(self, day: int) -> QuestionSample:
        return self.learner.questions.sample(self.source, day, day + DAY_S, DAY_S, DAY_QUESTIONS)

    def _learn(self, at: int, excluded_days: Integers = _NONE) -> Memory | None:
        reference = self.learner.learn(self.source, at, self.pin, self.basis, excluded_days)
        return None if reference is None else Memory.start(reference, at, excluded_days)

    def _renew(self, memory: Memory) -> Memory:
        """Learn a new reference if it is due."""
        reference = memory.reference
        age = memory.until - reference.learned
        young = reference.learned - reference.since < _RENEWAL_S
        due = age >= (DAY_S if young else _RENEWAL_S) and memory.until % DAY_S == 0
        if self.pin is not None or not due or memory.is_drifted:
            return memory
        oldest = memory.until - self.learner.history_days * DAY_S
        return self._learn(memory.until, memory.troubled[memory.troubled >= oldest]) or memory

    def _process(self, memory: Memory, stop: int) -> None:
        some = self.learner.questions.sample(self.source, memory.until, stop, TICK_S, TICK_QUESTIONS)
        start = np.arange(memory.until, stop, TICK_S)
        ticks = count_groups(some, memory.reference.groups, start)
        seen = categories.run(self._effective_baseline(memory), memory.state, ticks)
        memory.until = stop
        memory.exclude(start[seen.alarm[0]])

    def _test_day(self, memory: Memory, day: int) -> None:
        """Test a day, unless it has few questions. If the reference's vectors expired, only group shares are tested."""
        reference, sample = memory.reference, self._day_sample(day)
        if len(sample.at) < MIN_QUESTIONS:
            return
        found, usual = self._compare(reference, sample, day), reference.usual[reference.days_like(day)]
        memory.unlike = bool(is_drifted(found.test, usual, self.margin * MARGIN, memory.unlike))
        if memory.unlike:
            memory.exclude(np.array([day]))
        if memory.groups_in_alarm and _is_clear(memory, self._effective_baseline(memory), sample, day):
            memory.reset()

    def _effective_baseline(self, memory: Memory) -> Baseline:
        """Return the reference's baseline with the tolerance of the settings; it is stored with the default one."""
        found = memory.reference.baseline
        return replace(found, margin=found.margin * self.margin, near=found.near * self.margin)


def _is_clear(memory: Memory, baseline: Baseline, sample: QuestionSample, day: int) -> bool:
    """Tell whether the group in alarm was back near its usual share on a whole day after the onset.

    The detector itself needs two dozen settled means: thousands of questions for a group of 1 in 100.
    """
    status, groups = memory.status, memory.reference.groups
    channel, shift = int(status.channel[0]), float(status.shift[0])
    if status.onset[0] > day or channel > groups.outlier:
        return False
    share = float((groups.assign(sample.vectors) == channel).mean())
    allowed = max(float(baseline.near[0, channel]), abs(shift) / 2)
    return int(status.direction[0]) * (share - float(status.expected[0])) <= allowed


@dataclass(frozen=True, slots=True)
class InputDriftResult:
    """Number of applications, reasons why some are not monitored yet, and new events."""

    applications: int
    warming_up: Mapping[str, str]
    events: list[EventRow]


@dataclass(frozen=True, slots=True)
class InputDriftCheck:
    """The job for one leader's term."""

    database: Database
    settings: DriftSettings
    rules: RuleSettings
    windows: WindowSettings
    term: Term

    def run(self, now: datetime, stopped: Callable[[], bool] = lambda: False) -> InputDriftResult:
        """Process questions up to the watermark; store states and events.

        Raises `StopRequested` after an application if `stopped` returns true: states are stored, problems are reported
        by the next run.
        """
        closed = watermark.closed_until(self.database, self.windows, now).get(_LANE)
        if closed is None:
            return InputDriftResult(0, {}, [])
        end = calendar.floor(closed.timestamp(), TICK_S)
        known, overrides = memories.load_states(self.database), load_overrides(self.database)
        before = {key: one for key, one in open_detections(self.database, KIND).items() if key.metric == METRIC}
        active = active_sources(self.database, calendar.utc(end - DAY_S), calendar.utc(end))
        active = [source for source in active if self.is_monitored(source)]
        known = {source: memory for source, memory in known.items() if self.is_monitored(source)}
        # The problem of an application without questions stays open until its state is stale.
        standing = {key_of(source) for source, memory in known.items() if end - memory.until < STALE_AFTER_S}
        standing -= {key_of(source) for source in active}
        reports: list[Detection | Clear] = []
        warming = {}
        for done, source in enumerate(active, start=1):
            processor, key = self.processor(source, overrides), key_of(source)
            memory = self._advance(processor, known.get(source), end)
            if why := WarmUp.NO_RECORDS.reason if memory is None else memory.reference.baseline.warm_up_reasons()[0]:
                warming[source.app] = why
            if memory is not None and memory.is_drifted:
                standing.add(key)
                reports += self._news(processor, memory, before.get(key), now)
            if stopped():
                raise StopRequested(f"questions of {done} of {len(active)} applications were processed")
        reports += [Clear(key, KIND, calendar.utc(end)) for key in before if key not in standing]
        events = report(self.database, reports, self.rules, self.term, now)
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        for app, why in sorted(warming.items()):
            logger.debug("questions of %s are not watched yet: %s", app, why)
        return InputDriftResult(len(active), warming, events)

    def is_monitored(self, source: QuestionSource) -> bool:
        """Tell whether the settings monitor questions of this application."""
        return self.settings.monitors(source.app, METRIC)

    def _advance(self, processor: SourceProcessor, before: Memory | None, end: int) -> Memory | None:
        """Process all ticks before `end`, and store the state if it changed."""
        position = None if before is None else (before.until, before.reference.basis)
        memory = processor.advance(before, end)
        if memory is not None and (memory.until, memory.reference.basis) != position:
            memories.save_state(self.database, processor.source, memory, self.term.next_version())
        return memory

    def processor(self, source: QuestionSource, overrides: ReferenceOverrides) -> SourceProcessor:
        """Make the processor of an application."""
        series = series_of(source)
        return SourceProcessor(
            ReferenceLearner(ClickHouseQuestionStore(self.database), self.settings.history_days),
            source,
            overrides.pin_of(series),
            overrides.baseline_source(series),
            self.settings.of(source.app).margin,
        )

    def _news(
        self, processor: SourceProcessor, memory: Memory, before: Problem | None, now: datetime
    ) -> list[Detection]:
        """Return the detection, unless there was one just now: it reads samples."""
        since = calendar.utc(onset(memory))
        if before is not None:
            if now - before.last_seen_at < timedelta(seconds=self.rules.update_every_s):
                return []
            since = min(since, before.by_kind[KIND].evidence.since or since)
        return [detection_of(processor, memory, since, self.rules)]


def detection_of(processor: SourceProcessor, memory: Memory, since: datetime, rules: RuleSettings) -> Detection:
    """Describe the drift of questions since then."""
    began = onset(memory)
    found = processor.compare_recent(memory, began) if memory.groups_in_alarm else processor.compare_day(memory, began)
    details = input_drift_details(processor.source, memory, found, since, rules, processor.margin)
    return Detection(key_of(processor.source), details, since, calendar.utc(memory.until))
