"""Alarms become problems, as any job's troubles do; one whose alarm is over is resolved."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from ragtide.drift.anomalies.batch import BatchSnapshot, RolloutPair, SeriesAlarm
from ragtide.drift.anomalies.change_messages import (
    Change,
    change_attributes,
    change_of,
    describe,
    describe_rollout,
    examples,
    rollout_attributes,
)
from ragtide.drift.anomalies.metrics import MonitoredMetric
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.detectors import multiple_testing
from ragtide.drift.leadership import Term
from ragtide.drift.problems import evidence
from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import EventRow, Problem
from ragtide.drift.problems.report import Clear, Details, Detection, ProblemKey, build_details, open_detections, report
from ragtide.drift.problems.rule_lifecycle import VERDICT_HORIZON
from ragtide.drift.rules.model import Series
from ragtide.drift.rules.queries import last_seen, stale_series
from ragtide.drift.settings import DriftSettings, RuleSettings, Severity
from ragtide.drift.stats import calendar
from ragtide.drift.windows.segments import SegmentValues
from ragtide.sinks.clickhouse.database import Database

KINDS: tuple[Kind, ...] = ("change_point", "input_drift")
_RULE = "detector"
_ROLLOUT_RUN_DAYS = 140.0  # to a false problem of all that are compared with other models: 1 in 20 weeks


@dataclass(frozen=True, slots=True)
class ChangePointReporter:
    """Tells for one leader's term."""

    database: Database
    rules: RuleSettings
    settings: DriftSettings
    monitored: Mapping[str, MonitoredMetric]
    segments: SegmentValues
    term: Term

    def report(self, scan: ScanResult, now: datetime) -> list[EventRow]:
        """The events that follow from what was looked at; stored when this returns.

        Problems of series that were not looked at stay as they are: a lane that nobody runs says nothing.
        """
        known = {kind: self._open_detections(kind) for kind in KINDS}
        found = self.alarms(scan, known)
        reports: list[Detection | Clear] = []
        for key, (snapshot, alarm) in found.items():
            before = known[self.kind_of(key)].get(key)
            if before is None or now - before.last_seen_at >= timedelta(seconds=self.rules.of(key.app).update_every_s):
                reports.append(self.detection(snapshot, alarm))
        reports += _clears(scan, known, found, self.monitored)
        return report(self.database, reports, self.rules, self.term, now)

    def alarms(
        self, scan: ScanResult, known: Mapping[Kind, Container[ProblemKey]]
    ) -> dict[ProblemKey, tuple[BatchSnapshot, SeriesAlarm]]:
        """Those that are told, `known` being where there is trouble already.

        Where a model is judged by the days of the one before and by its own, the former.
        """
        found: dict[ProblemKey, tuple[BatchSnapshot, SeriesAlarm]] = {}
        for snapshot, alarm in self._reportable_alarms(scan, known):
            found.setdefault(_problem_key(self.monitored[alarm.series.metric], alarm.series), (snapshot, alarm))
        return found

    def kind_of(self, key: ProblemKey) -> Kind:
        """By which kind an alarm is told there."""
        return _problem_kind(self.monitored[key.metric])

    def detection(self, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Detection:
        """What is said of an alarm."""
        metric, until = self.monitored[alarm.series.metric], calendar.utc(snapshot.batch.processed_until)
        account = self._details(metric, snapshot, alarm)
        return Detection(_problem_key(metric, alarm.series), account, calendar.utc(alarm.onset), until)

    def _open_detections(self, kind: Kind) -> Mapping[ProblemKey, Problem]:
        """Those that detectors of series told: another job may see the same kind of trouble by other means."""
        found = open_detections(self.database, kind)
        return {key: one for key, one in found.items() if one.voices[kind].rule_id.startswith(f"{_RULE}:")}

    def _reportable_alarms(
        self, scan: ScanResult, known: Mapping[Kind, Container[ProblemKey]]
    ) -> Iterator[tuple[BatchSnapshot, SeriesAlarm]]:
        """Those that are told; the ones of models that are judged by another's days first."""
        days, given_up = self.settings.fleet_run_days, self._stale(scan.rollouts)
        some = scan.rollouts if days is None else (*scan.rollouts, *scan.snapshots)
        for snapshot, alarm in self._significant(some, known, _ROLLOUT_RUN_DAYS if days is None else days):
            if not snapshot.batch.key.is_rollout or alarm.series not in given_up:
                yield snapshot, alarm
        if days is None:
            yield from ((snapshot, alarm) for snapshot in scan.snapshots for alarm in snapshot.alarms())

    def _stale(self, compared: Sequence[BatchSnapshot]) -> set[Series]:
        """Series in alarm of models that were taken away again: what they were compared with says nothing any more."""
        reports = {alarm.series: calendar.utc(alarm.onset) for snapshot in compared for alarm in snapshot.alarms()}
        if not reports:
            return set()
        closed = calendar.utc(max(snapshot.batch.processed_until for snapshot in compared))
        return stale_series(self.database, reports, closed, self._stale_after, VERDICT_HORIZON, closed)

    def _stale_after(self, app: str) -> timedelta:
        return timedelta(seconds=self.rules.of(app).gone_after_s)

    def _significant(
        self, some: Sequence[BatchSnapshot], known: Mapping[Kind, Container[ProblemKey]], run_days: float
    ) -> Iterator[tuple[BatchSnapshot, SeriesAlarm]]:
        """Alarms that stand already, or are enough for a run length of all these series together."""
        size_s = some[0].baseline.size_s if some else calendar.HOUR_S
        log_e = np.concatenate([snapshot.log_e for snapshot in some]) if some else np.zeros(0)
        enough = multiple_testing.e_bh(log_e, size_s, run_days)
        first = 0
        for snapshot in some:
            for alarm in snapshot.alarms():
                metric = self.monitored[alarm.series.metric]
                if enough[first + alarm.place] or _problem_key(metric, alarm.series) in known[_problem_kind(metric)]:
                    yield snapshot, alarm
            first += len(snapshot.batch.series)

    def _details(self, metric: MonitoredMetric, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Details:
        found, before = (
            change_of(metric, snapshot, alarm),
            snapshot.batch.rollout_of(int(snapshot.batch.rows.ids[alarm.place])),
        )
        since, until = calendar.utc(alarm.onset), calendar.utc(snapshot.batch.processed_until)
        return build_details(
            _problem_kind(metric),
            _problem_key(metric, alarm.series),
            metric.ref,
            describe(alarm.series, metric, found, alarm)
            if before is None
            else self._rollout_message(snapshot, alarm, before, found),
            change_attributes(metric, found, alarm) | ({} if before is None else rollout_attributes(before)),
            self.rules,
            severity=change_severity(self.database, self.rules, alarm.series, alarm.records, found, (since, until)),
            examples=examples(self.database, metric, alarm.series, found, self.segments, since, until),
            rule_id=f"{_RULE}:{metric.kind}",
        )

    def _rollout_message(self, snapshot: BatchSnapshot, alarm: SeriesAlarm, before: RolloutPair, found: Change) -> str:
        """The sentence; the model before was replaced where it has no more records."""
        other = alarm.series._replace(model=before.model)
        lately = calendar.utc(max(before.since, snapshot.batch.processed_until - calendar.HOUR_S))
        took_over = other not in last_seen(self.database, [other], lately, calendar.utc(snapshot.batch.processed_until))
        return describe_rollout(alarm.series, self.monitored[other.metric], found, alarm, before, took_over)


def change_severity(
    database: Database,
    rules: RuleSettings,
    series: Series,
    records: int,
    found: Change,
    span: tuple[datetime, datetime],
) -> Severity:
    """By the share of the app's traces in that time that lie elsewhere than they would; an improvement is info."""
    if not found.is_regression:
        return "info"
    rules = rules.of(series.app)
    share = found.total_variation * min(records / max(evidence.traffic(database, series, *span), 1), 1.0)
    if share >= rules.severity_critical:
        return "critical"
    return "warning" if share >= rules.severity_warning else "info"


def _clears(
    scan: ScanResult,
    known: Mapping[Kind, Mapping[ProblemKey, Problem]],
    reported: Container[ProblemKey],
    monitored: Mapping[str, MonitoredMetric],
) -> Sequence[Clear]:
    """Standing problems of series that are in alarm no more, or that nobody watches any more."""
    until = {snapshot.batch.key.lane: calendar.utc(snapshot.batch.processed_until) for snapshot in scan.snapshots}
    lanes = {key: monitored[key.metric].lane for places in known.values() for key in places if key.metric in monitored}
    newest = max(until.values(), default=None)
    return [
        Clear(key, kind, until.get(lanes[key], newest) if key in lanes else newest)
        for kind, problems in known.items()
        for key in problems
        if newest is not None and key not in reported and (key not in lanes or lanes[key] in until)
    ]


def _problem_key(metric: MonitoredMetric, series: Series) -> ProblemKey:
    return ProblemKey(aspect=metric.aspect, **series._asdict())


def _problem_kind(metric: MonitoredMetric) -> Kind:
    return "input_drift" if metric.aspect == "inputs" else "change_point"
