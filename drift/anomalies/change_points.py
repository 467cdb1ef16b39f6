"""Report detectors' alarms as problems, and clear them when the alarm is over."""

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from ragtide.drift.anomalies.batch import BatchSnapshot, SeriesAlarm
from ragtide.drift.anomalies.change_messages import change_of, describe
from ragtide.drift.anomalies.reporter import AnomalyReporter
from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.detectors import FALSE_ALARMS_A_DAY, log_threshold
from ragtide.drift.problems import (
    Clear,
    Detection,
    EventRow,
    Kind,
    Problem,
    ProblemKey,
    open_detections,
    report_detections,
    rule_lifecycle,
)
from ragtide.drift.rules import Series, last_seen, stale_series
from ragtide.drift.settings import DriftSettings
from ragtide.drift.stats import calendar, e_bh

_KINDS: tuple[Kind, ...] = ("change_point", "input_drift")
_RULE = "detector"
_ROLLOUT_RUN_DAYS = 140.0  # to a false problem of all rollouts together: 1 in 20 weeks


@dataclass(frozen=True, slots=True)
class ChangePointReporter(AnomalyReporter):
    """Reports alarms as kind `change_point`, or `input_drift` if they are of inputs."""

    settings: DriftSettings

    def report(self, scan: ScanResult, now: datetime) -> list[EventRow]:
        """Store and return the events that follow from a scan.

        Problems of lanes that were not scanned stay as they are.
        """
        known = self._open_problems()
        found = self.alarms(scan, known)
        reports: list[Detection | Clear] = []
        for key, (snapshot, alarm) in found.items():
            update_every = timedelta(seconds=self.rules.of(key.app).update_every_s)
            if key not in known or now - known[key].last_seen_at >= update_every:
                reports.append(self.detection(snapshot, alarm))
        ends = {one.batch.key.lane: calendar.utc(one.batch.processed_until) for one in scan.snapshots}
        for key in known if ends else ():
            lane = self.monitored[key.metric].lane if key.metric in self.monitored else None
            if key not in found and (lane is None or lane in ends):
                reports.append(Clear(key, change_kind(key), max(ends.values()) if lane is None else ends[lane]))
        return report_detections(self.database, reports, self.rules, self.term, now)

    def alarms(
        self, scan: ScanResult, known: Container[ProblemKey]
    ) -> dict[ProblemKey, tuple[BatchSnapshot, SeriesAlarm]]:
        """Select the alarms to report, given open problems. Of a series in a rollout that is the rollout's."""
        found: dict[ProblemKey, tuple[BatchSnapshot, SeriesAlarm]] = {}
        for snapshot, alarm in self._reportable_alarms(scan, known):
            found.setdefault(self.key_of(alarm.series), (snapshot, alarm))
        return found

    def detection(self, snapshot: BatchSnapshot, alarm: SeriesAlarm) -> Detection:
        """Build the detection of an alarm."""
        batch, series, metric = snapshot.batch, alarm.series, self.monitored[alarm.series.metric]
        change, rollout = change_of(metric, snapshot, alarm), batch.rollout_of(int(batch.rows.ids[alarm.place]))
        until = calendar.utc(batch.processed_until)
        attributes: dict[str, object] = {
            "detector": metric.kind,
            "channel": change.channel,
            "level": change.line if metric.kind == "positive" else None,
            "margin": change.margin,
            "moved_share": change.total_variation,
            "log10_e_value": alarm.log_e / math.log(10),
            "days_to_a_false_alarm": 1 / FALSE_ALARMS_A_DAY,
        }
        took_over = False
        if rollout is not None:
            attributes |= {"model_before": rollout.model, "model_since": calendar.utc(rollout.since).isoformat()}
            other = series._replace(model=rollout.model)
            lately = calendar.utc(max(rollout.since, batch.processed_until - calendar.HOUR_S))
            took_over = other not in last_seen(self.database, [other], lately, until)
        return self.build(
            change_kind(self.key_of(series)),
            series,
            change,
            alarm.records,
            (calendar.utc(alarm.onset), until),
            describe(series, metric, change, alarm, rollout, took_over=took_over),
            attributes,
            f"{_RULE}:{metric.kind}",
        )

    def _open_problems(self) -> dict[ProblemKey, Problem]:
        """Load open problems that detectors of series reported; another job reports input drift by other means."""
        return {
            key: one
            for kind in _KINDS
            for key, one in open_detections(self.database, kind).items()
            if one.by_kind[kind].rule_id.startswith(f"{_RULE}:")
        }

    def _reportable_alarms(
        self, scan: ScanResult, known: Container[ProblemKey]
    ) -> Iterator[tuple[BatchSnapshot, SeriesAlarm]]:
        """Select alarms, those of rollouts first."""
        days, stale = self.settings.fleet_run_days, self._stale(scan.rollouts)
        some = scan.rollouts if days is None else (*scan.rollouts, *scan.snapshots)
        for snapshot, alarm in self._significant(some, known, _ROLLOUT_RUN_DAYS if days is None else days):
            if not snapshot.batch.key.is_rollout or alarm.series not in stale:
                yield snapshot, alarm
        if days is None:
            yield from ((snapshot, alarm) for snapshot in scan.snapshots for alarm in snapshot.alarms())

    def _stale(self, rollouts: Sequence[BatchSnapshot]) -> set[Series]:
        """Find series in alarm whose model was taken away again."""
        onsets = {alarm.series: calendar.utc(alarm.onset) for snapshot in rollouts for alarm in snapshot.alarms()}
        if not onsets:
            return set()
        closed = calendar.utc(max(snapshot.batch.processed_until for snapshot in rollouts))
        return stale_series(self.database, onsets, closed, self._stale_after, rule_lifecycle.VERDICT_HORIZON, closed)

    def _stale_after(self, app: str) -> timedelta:
        return timedelta(seconds=self.rules.of(app).stale_after_s)

    def _significant(
        self, some: Sequence[BatchSnapshot], known: Container[ProblemKey], run_days: float
    ) -> Iterator[tuple[BatchSnapshot, SeriesAlarm]]:
        """Select alarms that are open already, or significant for a run length of all these series together."""
        if not some:
            return
        log_e = np.concatenate([snapshot.log_e for snapshot in some])
        significant = e_bh(log_e, log_threshold(some[0].baseline.size_s, 1 / run_days))
        first = 0
        for snapshot in some:
            for alarm in snapshot.alarms():
                if significant[first + alarm.place] or self.key_of(alarm.series) in known:
                    yield snapshot, alarm
            first += len(snapshot.batch.series)


def change_kind(key: ProblemKey) -> Kind:
    """Return the kind that an alarm is reported as."""
    return "input_drift" if key.aspect == "inputs" else "change_point"
