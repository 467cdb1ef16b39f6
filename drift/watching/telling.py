"""Alarms become problems, as any job's troubles do; one whose alarm is over is resolved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from drift.detectors import fleet
from drift.leadership import Term
from drift.problems import facts
from drift.problems.accounts import account_of
from drift.problems.events import Account, Place
from drift.problems.problem import EventRow, Kind, Problem
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.rules.series import Series
from drift.settings import DriftSettings, RuleSettings, Severity
from drift.watching import grid
from drift.watching.examples import examples
from drift.watching.kinds import Watch
from drift.watching.look import Looked
from drift.watching.seen import Alarm, Seen
from drift.watching.words import Moved, attributes, describe, moved
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database

_KINDS: tuple[Kind, ...] = ("change_point", "input_drift")
_RULE = "detector"


@dataclass(frozen=True, slots=True)
class Teller:
    """Tells for one leader's term."""

    database: Database
    rules: RuleSettings
    settings: DriftSettings
    watched: Mapping[str, Watch]
    segments: SegmentValues
    term: Term

    def tell(self, looked: Looked, now: datetime) -> list[EventRow]:
        """The events that follow from what was looked at; stored when this returns.

        Problems of series that were not looked at stay as they are: a lane that nobody runs says nothing.
        """
        known = {kind: self._standing(kind) for kind in _KINDS}
        told: list[Trouble | Over] = []
        heard: set[Place] = set()
        for seen, alarm in self._believed(looked, known):
            watch = self.watched[alarm.series.metric]
            place = _place(watch, alarm.series)
            heard.add(place)
            before = known[_kind(watch)].get(place)
            if before is None or now - before.last_seen_at >= timedelta(
                seconds=self.rules.of(place.app).update_every_s
            ):
                until = grid.time(seen.batch.until)
                told.append(Trouble(place, self._account(watch, seen, alarm), grid.time(alarm.onset), until))
        told += _over(looked, known, heard, self.watched)
        return tell(self.database, told, self.rules, self.term, now)

    def _standing(self, kind: Kind) -> Mapping[Place, Problem]:
        """Those that detectors of series told: another job may see the same kind of trouble by other means."""
        found = standing(self.database, kind)
        return {place: one for place, one in found.items() if one.voices[kind].rule_id.startswith(f"{_RULE}:")}

    def _believed(self, looked: Looked, known: Mapping[Kind, Mapping[Place, Problem]]) -> Iterator[tuple[Seen, Alarm]]:
        """All alarms; where the fleet has a run length of its own, those that stand already or are enough for it."""
        if self.settings.fleet_run_days is None:
            yield from ((seen, alarm) for seen in looked.seen for alarm in seen.alarms())
            return
        size_s = looked.seen[0].baseline.size_s if looked.seen else grid.HOUR_S
        log_e = np.concatenate([seen.log_e for seen in looked.seen]) if looked.seen else np.zeros(0)
        enough = fleet.believed(log_e, size_s, self.settings.fleet_run_days)
        first = 0
        for seen in looked.seen:
            for alarm in seen.alarms():
                watch = self.watched[alarm.series.metric]
                if enough[first + alarm.place] or _place(watch, alarm.series) in known[_kind(watch)]:
                    yield seen, alarm
            first += len(seen.batch.series)

    def _account(self, watch: Watch, seen: Seen, alarm: Alarm) -> Account:
        found = moved(watch, seen, alarm)
        since, until = grid.time(alarm.onset), grid.time(seen.batch.until)
        return account_of(
            _kind(watch),
            _place(watch, alarm.series),
            watch.metric,
            describe(alarm.series, watch, found, alarm),
            attributes(watch, found, alarm),
            self.rules,
            severity=severity(self.database, self.rules, alarm.series, alarm.records, found, (since, until)),
            examples=examples(self.database, watch, alarm.series, found, self.segments, since, until),
            rule_id=f"{_RULE}:{watch.kind}",
        )


def severity(
    database: Database,
    rules: RuleSettings,
    series: Series,
    records: int,
    found: Moved,
    span: tuple[datetime, datetime],
) -> Severity:
    """By the share of the app's traces in that time that lie elsewhere than they would; for the better it is low."""
    if not found.bad:
        return "low"
    rules = rules.of(series.app)
    share = found.overlap_lost * min(records / max(facts.traffic(database, series, *span), 1), 1.0)
    if share >= rules.severity_high:
        return "high"
    return "medium" if share >= rules.severity_medium else "low"


def _over(
    looked: Looked,
    known: Mapping[Kind, Mapping[Place, Problem]],
    heard: set[Place],
    watched: Mapping[str, Watch],
) -> Sequence[Over]:
    """Standing problems of series that are in alarm no more, or that nobody watches any more."""
    until = {seen.batch.key.lane: grid.time(seen.batch.until) for seen in looked.seen}
    lanes = {
        place: watched[place.metric].lane for places in known.values() for place in places if place.metric in watched
    }
    newest = max(until.values(), default=None)
    return [
        Over(place, kind, until.get(lanes[place], newest) if place in lanes else newest)
        for kind, problems in known.items()
        for place in problems
        if newest is not None and place not in heard and (place not in lanes or lanes[place] in until)
    ]


def _place(watch: Watch, series: Series) -> Place:
    return Place(aspect=watch.aspect, **series._asdict())


def _kind(watch: Watch) -> Kind:
    return "input_drift" if watch.aspect == "inputs" else "change_point"
