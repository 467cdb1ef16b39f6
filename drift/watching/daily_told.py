"""What the comparison of days found becomes problems of kind `drift`; of days that are like the others, their end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from drift import cursors
from drift.detectors.season import SATURDAY
from drift.detectors.series import level_values
from drift.leadership import Term
from drift.phrases import number, percent
from drift.problems.accounts import account_of
from drift.problems.events import Account, Place
from drift.problems.problem import EventRow, Kind
from drift.problems.troubles import Over, Trouble, standing, tell
from drift.rules.series import Series
from drift.settings import RuleSettings
from drift.watching import grid
from drift.watching.daily import Compared, Daily, Drifted
from drift.watching.examples import examples
from drift.watching.kinds import Watch
from drift.watching.look import Looked
from drift.watching.telling import severity
from drift.watching.words import Moved
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database

KIND: Kind = "drift"
_CURSOR = "drift_daily"
_RULE = "daily"


@dataclass(frozen=True, slots=True)
class DailyTeller:
    """Tells for one leader's term. `lateness_s`: until a day's windows change no more (to speak of)."""

    database: Database
    daily: Daily
    rules: RuleSettings
    watched: Mapping[str, Watch]
    segments: SegmentValues
    term: Term
    lateness_s: int

    def tell(self, looked: Looked, now: datetime) -> list[EventRow]:
        """The events that follow from the last whole day, once a day; stored when this returns."""
        day = self.last_day(looked)
        if day <= cursors.position(self.database, _CURSOR):
            return []
        found = self.daily.compared(looked.seen, day)
        unlike = self.unlike(found)
        ended = [
            Over(place, KIND, grid.time(day + grid.DAY_S))
            for place in standing(self.database, KIND)
            if place not in unlike and self.is_over(place, looked, found)
        ]
        troubles = [self.trouble(place, one, day) for place, one in unlike.items()]
        events = tell(self.database, [*troubles, *ended], self.rules, self.term, now)
        cursors.keep(self.database, _CURSOR, day)
        return events

    def last_day(self, looked: Looked) -> int:
        """The start of the last whole day of everything that was looked at; before 1970 where nothing was."""
        closed = min((one.batch.until for one in looked.seen), default=0) - self.lateness_s
        return grid.floor(closed, grid.DAY_S) - grid.DAY_S

    def unlike(self, found: Compared) -> dict[Place, Drifted]:
        """Where a day is told that is unlike the others: what users ask is watched window by window, labels and all."""
        return {
            Place(aspect="level", **one.series._asdict()): one
            for one in found.unlike
            if self.watched[one.series.metric].aspect == "level"
        }

    def trouble(self, place: Place, one: Drifted, day: int) -> Trouble:
        """What is said of that day."""
        account = self._account(place, self.watched[one.series.metric], one, day)
        return Trouble(place, account, grid.time(day), grid.time(day + grid.DAY_S))

    def is_over(self, place: Place, looked: Looked, found: Compared) -> bool:
        """Whether its day is like the others again, or nobody watches it any more; not where nobody can tell."""
        series = Series(*(getattr(place, name) for name in Series._fields))
        if series in found.alike or place.metric not in self.watched:
            return True
        lane = self.watched[place.metric].lane
        mine = [one for one in looked.seen if one.batch.key.lane == lane]
        return bool(mine) and all(series not in one.batch.series for one in mine)

    def _account(self, place: Place, watch: Watch, one: Drifted, day: int) -> Account:
        found, span = _moved(watch, one), (grid.time(day), grid.time(day + grid.DAY_S))
        return account_of(
            KIND,
            place,
            watch.metric,
            _describe(watch, one, found, span[0]),
            {
                "level": found.line,
                "value": one.share,
                "baseline": one.usual,
                "usual_low": one.low,
                "usual_high": one.high,
                "days": one.days,
                "effect_size": one.share - one.usual,
                "p_value": one.p,
                "p_adjusted": one.p_adjusted,
                "sample_size": one.records,
            },
            self.rules,
            severity=severity(self.database, self.rules, one.series, one.records, found, span),
            examples=examples(self.database, watch, one.series, found, self.segments, *span),
            rule_id=_RULE,
        )


def _moved(watch: Watch, one: Drifted) -> Moved:
    assert watch.metric is not None
    metric, scale, up = watch.metric.metric, watch.metric.scale, one.share > one.usual
    edge = min(one.level + (metric.better == "higher"), 100)
    return Moved(
        what=f"the distribution of {watch.name}",
        baseline=one.usual,
        value=one.share,
        effect_size=one.share - one.usual,
        overlap_lost=abs(one.share - one.usual),
        margin=0.0,
        channel="distribution",
        worst="high" if up else "low",
        line=scale.edge(edge) if scale.bounded else float(level_values(np.array(one.level))),
        bad=(metric.better == "lower") == up,
    )


def _describe(watch: Watch, one: Drifted, found: Moved, day: datetime) -> str:
    assert watch.metric is not None
    unit = watch.metric.metric.unit or ""
    kind = "weekend days" if day.weekday() >= SATURDAY else "weekdays"
    before = "what was pinned" if one.pinned else f"that of the {one.days} {kind} before"
    usual = f"{percent(one.usual)} were in what was pinned"
    if not one.pinned:
        usual = f"{percent(one.usual)} are usual ({percent(one.low)} to {percent(one.high)})"
    return (
        f"{one.series.whereabouts}: {found.what} on {day:%Y-%m-%d} was unlike {before}: "
        f"{percent(one.share)} of the traces were above {number(found.line, unit)}, {usual}; on {one.records:,} traces."
    )
