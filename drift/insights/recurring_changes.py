"""Find hours of the week in which changes are detected again and again: known events that the settings do not name."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from statistics import median
from typing import NamedTuple

import numpy as np

from ragtide.drift.app_calendar import AppCalendar, Occurrence, calendar_of
from ragtide.drift.array_types import Flags, Floats
from ragtide.drift.detection_settings import WEEKDAYS as WEEKDAY_NAMES
from ragtide.drift.detection_settings import AppCalendarSettings
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import AppEnvironment, Insight, insight
from ragtide.drift.stats import DAY_S, HOUR_S, SATURDAY, WEEKDAYS, binomial_tail

WEEKS = 5  # looked back at
MIN_WEEKS = 3  # of these in which a change began within the hour
SLOT_S = HOUR_S // 2  # an hour begins at each: changes of one event may begin before and after a full hour
SLOTS = DAY_S // SLOT_S
_DAYS = WEEKS * WEEKDAYS
_PATTERNS = (tuple(range(WEEKDAYS)), tuple(range(SATURDAY)), tuple(range(SATURDAY, WEEKDAYS)))
_ALPHA = 0.01  # chance that any hour of any days looks so although changes begin at random
_NEAR = 3  # hours before, and as many after, that a rate is compared with
_PRIOR = 10  # days as good as these hours say of the nearest of them
_MOST_METRICS = 5  # in the message


class Hours(NamedTuple):
    """The hour that begins at a half hour of the day (0 to 47), on these weekdays (0 is Monday)."""

    days: tuple[int, ...]
    start: int

    def offset(self, day: int, slot: int) -> int | None:
        """Return by how many half hours one lies after the start, 0 or 1; None if it is not within the hour."""
        offsets = ((day * SLOTS + slot - own * SLOTS - self.start) % (WEEKDAYS * SLOTS) for own in self.days)
        return next((one for one in offsets if one <= 1), None)


class _Change(NamedTuple):
    """A change by the application's clock. `length_s` is None if it has not ended."""

    days_ago: int
    day: int
    second: int
    metric: str
    length_s: float | None

    @property
    def slot(self) -> int:
        return self.second // SLOT_S


class _Side(NamedTuple):
    """Whether a change began in the hour before or after each hour [days, slots], in the half hour next to it.

    `near` is the share of the hours of that side.
    """

    hour: Floats
    half: Floats
    near: Floats


@insight(reads=PeriodData)
def recurring_changes(data: PeriodData) -> Iterator[Insight]:
    """Return the hours of the week in which changes of an application began in at least three of the last five weeks,
    more often than by chance, and which its calendar does not name.
    """
    since = data.now - timedelta(days=_DAYS + 1)  # the first day by any clock
    rows = data.database.rows(
        """
        SELECT app, groupArray((begin, end, metric)) AS changes
        FROM (
            SELECT app, metric, event, toUnixTimestamp(ifNull(since, at)) AS begin,
                minIf(toUnixTimestamp(ifNull(until, at)), event IN ('kind_cleared', 'resolved')) OVER (
                    PARTITION BY problem_id ORDER BY at ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS end
            FROM problem_events FINAL WHERE kind = 'change_point' AND at >= {since:DateTime64(3, 'UTC')}
        )
        WHERE event IN ('opened', 'reopened', 'kind_opened') GROUP BY app ORDER BY app""",
        {"since": since},
    )
    for row in rows:
        calendar = calendar_of(data.drift, row["app"])
        today = data.now.astimezone(calendar.zone).date()
        known = _known_occurrences(calendar, int(since.timestamp()), int(data.now.timestamp()))
        changes = [
            _local(calendar, today, begin, end, metric)
            for begin, end, metric in row["changes"]
            if not any(one.start <= begin < one.end for one in known)
        ]
        changes = [one for one in changes if 0 <= one.days_ago < _DAYS]
        for hours in recurring_hours([(one.days_ago, one.slot) for one in changes], today.weekday()):
            own = [one for one in changes if hours.offset(one.day, one.slot) is not None]
            yield _insight(row["app"], calendar, hours, own)


def recurring_hours(changes: Iterable[tuple[int, int]], today: int) -> list[Hours]:
    """Return the hours in which changes begin too often for chance, from (days ago, half hour of the day) of each.

    Days with a change in an hour are binomial. Under the null hypothesis, their share is at most the largest of those
    of all hours, of the hours before and after it, and of the same hour on the other days: an application may be
    changed in working hours only. The p-value is multiplied by the number of half hours and of equal sets of weekdays.
    """
    at = np.zeros(_DAYS * SLOTS)
    for days_ago, slot in changes:
        at[(_DAYS - 1 - days_ago) * SLOTS + slot] = 1
    if not at.any():
        return []
    hits = np.maximum(at, np.roll(at, -1))
    by_day, sides = hits.reshape(_DAYS, SLOTS), (_side(at, hits, 1), _side(at, hits, -1))
    weekday = (today + 1 + np.arange(_DAYS)) % WEEKDAYS
    often = np.array([by_day[weekday == day].sum(0) >= MIN_WEEKS for day in range(WEEKDAYS)])
    found = list[tuple[float, bool, Hours]]()
    for days in {*_PATTERNS, *(tuple(np.flatnonzero(slot).tolist()) for slot in often.T if slot.any())}:
        on = np.isin(weekday, days)
        own, number = by_day[on], int(on.sum())
        counts, share, is_recent = own.sum(0), _usual_share(on, by_day, sides), own[-2 * len(days) :].any(0)
        sets = SLOTS * math.comb(WEEKDAYS, len(days))
        candidates = (counts * WEEKS >= MIN_WEEKS * number) & (counts > share * number) & is_recent
        for slot in np.flatnonzero(candidates).tolist():
            p = binomial_tail(int(counts[slot]), number, float(share[slot])) * sets
            if p <= _ALPHA:
                found.append((p, slot % 2 == 1, Hours(days, slot)))
    return _apart(hours for *_, hours in sorted(found))


def _side(at: Floats, hits: Floats, sign: int) -> _Side:
    """Return what lies before (1) or after (-1) each hour."""
    hours = [np.roll(hits, 2 * sign * hour).reshape(_DAYS, SLOTS) for hour in range(1, _NEAR + 1)]
    half = np.roll(at, 1 if sign == 1 else -2).reshape(_DAYS, SLOTS)
    return _Side(hours[0], half, np.mean(hours, axis=0))


def _usual_share(on: Flags, by_day: Floats, sides: Iterable[_Side]) -> Floats:
    """Return the largest share of days with a change in an hour that is still usual, for each half hour [slots].

    The share of the hour next to it is from few days: the hours near by are added, and one standard error. The half
    hour next to it is taken as an hour of the same rate, since working hours may begin in the middle of an hour.
    """
    shares = [np.full(SLOTS, by_day.mean())]
    if not on.all():
        shares.append(by_day[~on].mean(0))
    for side in sides:
        near, days = side.near[on].mean(0), on.sum() + _PRIOR
        hour = (side.hour[on].sum(0) + _PRIOR * near) / days
        half = (side.half[on].sum(0) + _PRIOR * (1 - np.sqrt(1 - near))) / days
        shares += [one + np.sqrt(one * (1 - one) / days) for one in (hour, 1 - (1 - half) ** 2)]
    usual: Floats = np.max(shares, axis=0)
    return usual


def _apart(some: Iterable[Hours]) -> list[Hours]:
    """Leave out hours that overlap one before them."""
    found, taken = list[Hours](), set[int]()
    for one in some:
        slots = {(day * SLOTS + one.start + half) % (WEEKDAYS * SLOTS) for day in one.days for half in (0, 1)}
        if not slots & taken:
            found.append(one)
            taken |= slots
    return found


def _known_occurrences(calendar: AppCalendar, since: int, until: int) -> list[Occurrence]:
    """Return when events that recur would have been in [since, until): those that still recur a week from `until`."""
    plain = replace(calendar, settings=AppCalendarSettings(time_zone=calendar.settings.time_zone))
    first = until + WEEKDAYS * DAY_S
    recurring = [
        event.model_copy(update={"since": None, "until": None})
        for event in calendar.events
        if event.start is not None and replace(plain, events=(event,)).occurrences(first, first + WEEKDAYS * DAY_S)
    ]
    return replace(plain, events=tuple(recurring)).occurrences(since, until)


def _local(calendar: AppCalendar, today: date, begin: int, end: int, metric: str) -> _Change:
    local = datetime.fromtimestamp(begin, calendar.zone)
    second = local.hour * HOUR_S + local.minute * 60 + local.second
    return _Change((today - local.date()).days, local.weekday(), second, metric, end - begin if end else None)


def _slots_until_end(hours: Hours, changes: Sequence[_Change]) -> int:
    """Return the half hours from the start of the hour to the typical end of its changes: two to a day."""
    start_s = hours.start * SLOT_S
    ends = [(one.second - start_s) % DAY_S + one.length_s for one in changes if one.length_s is not None]
    return min(max(2, math.ceil(median(ends) / SLOT_S)), SLOTS) if ends else 2


def _clock(slot: int) -> str:
    hour, half = divmod(slot % SLOTS, 2)
    return f"{hour:02}:{30 * half:02}"


def _insight(app: str, calendar: AppCalendar, hours: Hours, changes: Sequence[_Change]) -> Insight:
    metrics = list(dict.fromkeys(one.metric for one in changes))
    days = [WEEKDAY_NAMES[day] for day in hours.days]
    slots = _slots_until_end(hours, changes)
    start, end = _clock(hours.start), _clock(hours.start + slots)
    when = "every day" if len(days) == WEEKDAYS else "on " + ", ".join(f"{day.capitalize()}s" for day in days)
    lasted = "" if slots == 2 else " and lasted a day" if slots == SLOTS else f" and lasted until {end}"
    weeks = len({one.days_ago // WEEKDAYS for one in changes})
    named = ", ".join(metrics[:_MOST_METRICS]) + (", ..." if len(metrics) > _MOST_METRICS else "")
    return Insight(
        type="data",
        where=AppEnvironment(app, ""),
        identity=("recurring_changes", *hours.days, hours.start),
        message=(
            f"changes began {when} between {start} and {_clock(hours.start + 2)} ({calendar.settings.time_zone}) in "
            f"{weeks} of the last {WEEKS} weeks{lasted}: {named}. It may be a known event, such as a nightly load"
        ),
        figures={
            "kind": "recurring_changes",
            "days": days,
            "start": start,
            "end": end,
            "time_zone": calendar.settings.time_zone,
            "weeks": weeks,
            "changes": len(changes),
            "metrics": metrics,
        },
        actions=(
            "If it is known, accept it: add [[drift.calendar]] to the settings, with "
            f'name = "...", app = {json.dumps(app)}, days = {json.dumps(days)}, start = "{start}", end = "{end}". '
            "change_point then neither tests nor learns from these hours.",
            "If it is not known, look for what runs at that time: a load of documents, a deployment, a batch of "
            "questions.",
        ),
    )
