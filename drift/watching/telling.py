"""Alarms become problems, as any job's troubles do; one whose alarm is over is resolved."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from drift.detectors import fleet
from drift.leadership import Term
from drift.problems import facts
from drift.problems.accounts import account_of
from drift.problems.events import Account, Place
from drift.problems.following import REMEMBERED
from drift.problems.gone import gone, newest
from drift.problems.problem import EventRow, Kind, Problem
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.rules.series import Series
from drift.settings import DriftSettings, RuleSettings, Severity
from drift.watching import grid
from drift.watching.batch import Succession
from drift.watching.examples import examples
from drift.watching.kinds import Watch
from drift.watching.look import Looked
from drift.watching.seen import Alarm, Seen
from drift.watching.words import Moved, attributes, describe, describe_successor, moved, succeeds
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database

KINDS: tuple[Kind, ...] = ("change_point", "input_drift")
_RULE = "detector"
_SUCCESSORS_RUN_DAYS = 140.0  # to a false problem of all that are compared with other models: 1 in 20 weeks


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
        known = {kind: self._standing(kind) for kind in KINDS}
        found = self.alarms(looked, known)
        told: list[Trouble | Over] = []
        for place, (seen, alarm) in found.items():
            before = known[self.kind_at(place)].get(place)
            if before is None or now - before.last_seen_at >= timedelta(
                seconds=self.rules.of(place.app).update_every_s
            ):
                told.append(self.trouble(seen, alarm))
        told += _over(looked, known, found, self.watched)
        return tell(self.database, told, self.rules, self.term, now)

    def alarms(self, looked: Looked, known: Mapping[Kind, Container[Place]]) -> dict[Place, tuple[Seen, Alarm]]:
        """Those that are told, `known` being where there is trouble already.

        Where a model is judged by the days of the one before and by its own, the former.
        """
        found: dict[Place, tuple[Seen, Alarm]] = {}
        for seen, alarm in self._alarms(looked, known):
            found.setdefault(_place(self.watched[alarm.series.metric], alarm.series), (seen, alarm))
        return found

    def kind_at(self, place: Place) -> Kind:
        """By which kind an alarm is told there."""
        return _kind(self.watched[place.metric])

    def trouble(self, seen: Seen, alarm: Alarm) -> Trouble:
        """What is said of an alarm."""
        watch, until = self.watched[alarm.series.metric], grid.time(seen.batch.until)
        account = self._account(watch, seen, alarm)
        return Trouble(_place(watch, alarm.series), account, grid.time(alarm.onset), until)

    def _standing(self, kind: Kind) -> Mapping[Place, Problem]:
        """Those that detectors of series told: another job may see the same kind of trouble by other means."""
        found = standing(self.database, kind)
        return {place: one for place, one in found.items() if one.voices[kind].rule_id.startswith(f"{_RULE}:")}

    def _alarms(self, looked: Looked, known: Mapping[Kind, Container[Place]]) -> Iterator[tuple[Seen, Alarm]]:
        """Those that are told; the ones of models that are judged by another's days first."""
        days, given_up = self.settings.fleet_run_days, self._given_up(looked.compared)
        some = looked.compared if days is None else (*looked.compared, *looked.seen)
        for seen, alarm in self._believed(some, known, _SUCCESSORS_RUN_DAYS if days is None else days):
            if not seen.batch.key.of_successors or alarm.series not in given_up:
                yield seen, alarm
        if days is None:
            yield from ((seen, alarm) for seen in looked.seen for alarm in seen.alarms())

    def _given_up(self, compared: Sequence[Seen]) -> set[Series]:
        """Series in alarm of models that were taken away again: what they were compared with says nothing any more."""
        told = {alarm.series: grid.time(alarm.onset) for seen in compared for alarm in seen.alarms()}
        if not told:
            return set()
        closed = grid.time(max(seen.batch.until for seen in compared))
        return gone(self.database, told, closed, self._gone_after, REMEMBERED, closed)

    def _gone_after(self, app: str) -> timedelta:
        return timedelta(seconds=self.rules.of(app).gone_after_s)

    def _believed(
        self, some: Sequence[Seen], known: Mapping[Kind, Container[Place]], run_days: float
    ) -> Iterator[tuple[Seen, Alarm]]:
        """Alarms that stand already, or are enough for a run length of all these series together."""
        size_s = some[0].baseline.size_s if some else grid.HOUR_S
        log_e = np.concatenate([seen.log_e for seen in some]) if some else np.zeros(0)
        enough = fleet.believed(log_e, size_s, run_days)
        first = 0
        for seen in some:
            for alarm in seen.alarms():
                watch = self.watched[alarm.series.metric]
                if enough[first + alarm.place] or _place(watch, alarm.series) in known[_kind(watch)]:
                    yield seen, alarm
            first += len(seen.batch.series)

    def _account(self, watch: Watch, seen: Seen, alarm: Alarm) -> Account:
        found, before = moved(watch, seen, alarm), seen.batch.succession(int(seen.batch.rows.ids[alarm.place]))
        since, until = grid.time(alarm.onset), grid.time(seen.batch.until)
        return account_of(
            _kind(watch),
            _place(watch, alarm.series),
            watch.metric,
            describe(alarm.series, watch, found, alarm) if before is None else self._after(seen, alarm, before, found),
            attributes(watch, found, alarm) | ({} if before is None else succeeds(before)),
            self.rules,
            severity=severity(self.database, self.rules, alarm.series, alarm.records, found, (since, until)),
            examples=examples(self.database, watch, alarm.series, found, self.segments, since, until),
            rule_id=f"{_RULE}:{watch.kind}",
        )

    def _after(self, seen: Seen, alarm: Alarm, before: Succession, found: Moved) -> str:
        """The sentence; the model before was replaced where it has no more records."""
        other = alarm.series._replace(model=before.model)
        lately = grid.time(max(before.since, seen.batch.until - grid.HOUR_S))
        took_over = other not in newest(self.database, [other], lately, grid.time(seen.batch.until))
        return describe_successor(alarm.series, self.watched[other.metric], found, alarm, before, took_over)


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
    heard: Container[Place],
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
