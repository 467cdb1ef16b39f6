"""The job `questions`: process each application's questions tick by tick and day by day, and report input drift.

The result does not depend on how often the job runs. References are learned at the start of a day from earlier
questions: first daily, then weekly. During drift none is learned: it becomes usual only if an operator accepts it."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from ragtide.drift.anomalies import BaselinePin, ReferenceOverrides, load_overrides
from ragtide.drift.array_types import Integers
from ragtide.drift.detectors import Baseline, WarmUp, run_detector
from ragtide.drift.input_drift import reference as references
from ragtide.drift.input_drift.classifier_test import MIN_QUESTIONS
from ragtide.drift.input_drift.day_test import MARGIN, DayComparison, compare, is_drifted
from ragtide.drift.input_drift.messages import QUESTION_METRIC, input_drift_details, series_of, shift_onset, source_key
from ragtide.drift.input_drift.reference import (
    DAY_QUESTIONS,
    TICK_QUESTIONS,
    TICK_S,
    InputDriftState,
    Reference,
    ReferenceLearner,
    count_groups,
)
from ragtide.drift.input_drift.source import ClickHouseQuestionStore, QuestionSample, QuestionSource, active_sources
from ragtide.drift.job_history import StopRequested
from ragtide.drift.leadership import Term
from ragtide.drift.problems import Clear, Detection, EventRow, Kind, Problem, open_detections, report_detections
from ragtide.drift.settings import DriftSettings, RuleSettings, WindowSettings
from ragtide.drift.stats import DAY_S, calendar
from ragtide.drift.windows import closed_until
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)
INPUT_DRIFT: Kind = "input_drift"
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

    def advance(self, state: InputDriftState | None, end: int) -> InputDriftState | None:
        """Process all ticks before `end` and return the state; None if there is no reference yet."""
        if state is None or end - state.until >= STALE_AFTER_S:
            state = self._learn(calendar.floor(end, DAY_S))
        elif state.reference.baseline_source != self.basis:
            state = self._learn(state.until) or state
        while state is not None and state.until < end:
            state = self._renew(state)
            stop = min(end, calendar.ceil(state.until + 1, DAY_S))
            self._process(state, stop)
            if stop % DAY_S == 0:
                self._test_day(state, stop - DAY_S)
        return state

    def compare_day(self, state: InputDriftState, day: int) -> DayComparison:
        """Compare a day with days of its kind."""
        return self._compare(state.reference, self._day_sample(day), day)

    def compare_recent(self, state: InputDriftState, since: int) -> DayComparison:
        """Compare questions from `since` on, of a day at most, with days of the same kind."""
        first = max(calendar.floor(since, TICK_S), state.until - DAY_S)
        new = self.learner.questions.sample(self.source, first, state.until, TICK_S, TICK_QUESTIONS)
        chosen = np.random.default_rng(first).permutation(len(new.at))[:DAY_QUESTIONS]
        last_day = calendar.floor(state.until - 1, DAY_S)
        return self._compare(state.reference, new.select(np.sort(chosen)), last_day)

    def _compare(self, reference: Reference, new: QuestionSample, day: int) -> DayComparison:
        return compare(new, self.learner.sample_like(self.source, reference, day), reference.has_rhythm)

    def _day_sample(self, day: int) -> QuestionSample:
        return self.learner.questions.sample(self.source, day, day + DAY_S, DAY_S, DAY_QUESTIONS)

    def _learn(self, at: int, excluded_days: Integers = _NONE) -> InputDriftState | None:
        reference = self.learner.learn(self.source, at, self.pin, self.basis, excluded_days)
        return None if reference is None else InputDriftState.start(reference, at, excluded_days)

    def _renew(self, state: InputDriftState) -> InputDriftState:
        """Learn a new reference if it is due."""
        reference = state.reference
        age = state.until - reference.learned_at
        young = reference.learned_at - reference.since < _RENEWAL_S
        due = age >= (DAY_S if young else _RENEWAL_S) and state.until % DAY_S == 0
        if self.pin is not None or not due or state.is_drifted:
            return state
        oldest = state.until - self.learner.history_days * DAY_S
        return self._learn(state.until, state.excluded_days[state.excluded_days >= oldest]) or state

    def _process(self, state: InputDriftState, stop: int) -> None:
        some = self.learner.questions.sample(self.source, state.until, stop, TICK_S, TICK_QUESTIONS)
        start = np.arange(state.until, stop, TICK_S)
        ticks = count_groups(some, state.reference.groups, start)
        seen = run_detector(self._effective_baseline(state), state.detector, ticks)
        state.until = stop
        state.exclude(start[seen.alarm[0]])

    def _test_day(self, state: InputDriftState, day: int) -> None:
        """Test a day, unless it has few questions. If the reference's vectors expired, only group shares are tested."""
        reference, sample = state.reference, self._day_sample(day)
        if len(sample.at) < MIN_QUESTIONS:
            return
        found, usual = self._compare(reference, sample, day), reference.usual_aucs[reference.days_like(day)]
        state.day_drifted = bool(is_drifted(found.test, usual, self.margin * MARGIN, state.day_drifted))
        if state.day_drifted:
            state.exclude(np.array([day]))
        if state.groups_in_alarm and _is_clear(state, self._effective_baseline(state), sample, day):
            state.reset()

    def _effective_baseline(self, state: InputDriftState) -> Baseline:
        """Return the reference's baseline with the tolerance of the settings; it is stored with the default one."""
        found = state.reference.baseline
        return replace(found, margin=found.margin * self.margin, tolerance=found.tolerance * self.margin)


def _is_clear(state: InputDriftState, baseline: Baseline, sample: QuestionSample, day: int) -> bool:
    """Tell whether the group in alarm was back near its usual share on a whole day after the onset.

    The detector itself needs two dozen settled means: thousands of questions for a group of 1 in 100.
    """
    status, groups = state.status, state.reference.groups
    channel, shift = int(status.channel[0]), float(status.shift[0])
    if status.onset[0] > day or channel > groups.outlier:
        return False
    share = float((groups.assign(sample.vectors) == channel).mean())
    allowed = max(float(baseline.tolerance[0, channel]), abs(shift) / 2)
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
        closed = closed_until(self.database, self.windows, now).get(_LANE)
        if closed is None:
            return InputDriftResult(0, {}, [])
        end = calendar.floor(closed.timestamp(), TICK_S)
        known, overrides = references.load_states(self.database), load_overrides(self.database)
        before = {
            key: one
            for key, one in open_detections(self.database, INPUT_DRIFT).items()
            if key.metric == QUESTION_METRIC
        }
        active = active_sources(self.database, calendar.utc(end - DAY_S), calendar.utc(end))
        active = [source for source in active if self.is_monitored(source)]
        known = {source: state for source, state in known.items() if self.is_monitored(source)}
        # The problem of an application without questions stays open until its state is stale.
        standing = {source_key(source) for source, state in known.items() if end - state.until < STALE_AFTER_S}
        standing -= {source_key(source) for source in active}
        reports: list[Detection | Clear] = []
        warming = {}
        for done, source in enumerate(active, start=1):
            processor, key = self.processor(source, overrides), source_key(source)
            state = self._advance(processor, known.get(source), end)
            if why := WarmUp.NO_RECORDS.reason if state is None else state.reference.baseline.warm_up_reasons()[0]:
                warming[source.app] = why
            if state is not None and state.is_drifted:
                standing.add(key)
                reports += self._news(processor, state, before.get(key), now)
            if stopped():
                raise StopRequested(f"questions of {done} of {len(active)} applications were processed")
        reports += [Clear(key, INPUT_DRIFT, calendar.utc(end)) for key in before if key not in standing]
        events = report_detections(self.database, reports, self.rules, self.term, now)
        for event in events:
            logger.info("problem %s %s: %s", event.problem_id, event.event, event.description)
        for app, why in sorted(warming.items()):
            logger.debug("input drift of %s is not monitored yet: %s", app, why)
        return InputDriftResult(len(active), warming, events)

    def is_monitored(self, source: QuestionSource) -> bool:
        """Tell whether the settings monitor questions of this application."""
        return self.settings.monitors(source.app, QUESTION_METRIC)

    def _advance(self, processor: SourceProcessor, before: InputDriftState | None, end: int) -> InputDriftState | None:
        """Process all ticks before `end`, and store the state if it changed."""
        position = None if before is None else (before.until, before.reference.baseline_source)
        state = processor.advance(before, end)
        if state is not None and (state.until, state.reference.baseline_source) != position:
            references.save_state(self.database, processor.source, state, self.term.next_version())
        return state

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
        self, processor: SourceProcessor, state: InputDriftState, before: Problem | None, now: datetime
    ) -> list[Detection]:
        """Return the detection, unless there was one just now: it reads samples."""
        since = calendar.utc(shift_onset(state))
        if before is not None:
            if now - before.last_seen_at < timedelta(seconds=self.rules.update_every_s):
                return []
            since = min(since, before.by_kind[INPUT_DRIFT].evidence.since or since)
        return [input_drift_detection(processor, state, since, self.rules)]


def input_drift_detection(
    processor: SourceProcessor, state: InputDriftState, since: datetime, rules: RuleSettings
) -> Detection:
    """Describe the drift of questions since then."""
    began = shift_onset(state)
    found = processor.compare_recent(state, began) if state.groups_in_alarm else processor.compare_day(state, began)
    details = input_drift_details(processor.source, state, found, since, rules, processor.margin)
    return Detection(source_key(processor.source), details, since, calendar.utc(state.until))
