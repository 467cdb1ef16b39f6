"""Find hours of the week in which changes are detected again and again: known events that the settings do not name."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from ragtide.drift.app_calendar import AppCalendar, calendar_of
from ragtide.drift.detection_settings import WEEKDAYS as WEEKDAY_NAMES
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import AppEnvironment, Insight, insight
from ragtide.drift.stats import HOUR_S, HOURS, WEEKDAYS, binomial_tail

WEEKS = 5  # looked back at
MIN_WEEKS = 3  # of these in which a change began within the hour
_ALPHA = 0.01  # chance that any of the week's hours looks so although changes begin at random
_MOST_METRICS = 5  # in the message


class Hours(NamedTuple):
    """Hours [start, end) of these weekdays (0 is Monday), by the application's clock; start = end: the whole day."""

    days: tuple[int, ...]
    start: int
    end: int


class _Change(NamedTuple):
    week: int  # 0 is the running one
    day: int
    hour: int
    metric: str


@insight(reads=PeriodData)
def recurring_changes(data: PeriodData) -> Iterator[Insight]:
    """Return the hours of the week in which changes of an application began in at least three of the last five weeks,
    more often than by chance, and which its calendar does not name.
    """
    since = data.now - timedelta(weeks=WEEKS)
    rows = data.database.rows(
        """
        SELECT app, groupArray((toUnixTimestamp(begin), metric)) AS changes
        FROM (
            SELECT app, metric, ifNull(since, at) AS begin FROM problem_events FINAL
            WHERE kind = 'change_point' AND event IN ('opened', 'reopened', 'kind_opened')
                AND at >= {since:DateTime64(3, 'UTC')}
        )
        WHERE begin >= {since:DateTime64(3, 'UTC')} GROUP BY app ORDER BY app""",
        {"since": since},
    )
    for row in rows:
        calendar = calendar_of(data.drift, row["app"])
        changes = [_local(calendar, at, metric, data.now) for at, metric in row["changes"]]
        for hours in recurring_hours([(one.week, one.day, one.hour) for one in changes]):
            if not _is_known(calendar, hours, data.now):
                yield _insight(row["app"], calendar, hours, [one for one in changes if _holds(hours, one)])


def recurring_hours(changes: Sequence[tuple[int, int, int]]) -> list[Hours]:
    """Return the hours in which changes begin too often for chance, from (week, weekday, hour) of each change.

    Under the null hypothesis each hour of the last weeks has the same chance that a change begins in it. The weeks with
    one in a given hour are then binomial; the p-value is multiplied by the number of hours in a week.
    """
    weeks = defaultdict[tuple[int, int], set[int]](set)
    for week, day, hour in changes:
        weeks[day, hour].add(week)
    share = sum(map(len, weeks.values())) / (WEEKS * WEEKDAYS * HOURS)
    odd = {
        at
        for at, own in weeks.items()
        if len(own) >= MIN_WEEKS
        and min(own) <= 1  # it is not over
        and binomial_tail(len(own), WEEKS, share) * WEEKDAYS * HOURS <= _ALPHA
    }
    return _joined(odd)


def _joined(odd: set[tuple[int, int]]) -> list[Hours]:
    """Join days with the same hour, then hours that follow one another on the same days."""
    days: Mapping[int, tuple[int, ...]] = {
        hour: tuple(sorted(day for day, own in odd if own == hour)) for hour in sorted({hour for _, hour in odd})
    }
    found: list[Hours] = []
    for hour, own in days.items():
        if found and found[-1].end == hour and found[-1].days == own:
            found[-1] = found[-1]._replace(end=hour + 1)
        else:
            found.append(Hours(own, hour, hour + 1))
    return [one._replace(end=one.end % HOURS) for one in found]


def _local(calendar: AppCalendar, at: int, metric: str, now: datetime) -> _Change:
    local = datetime.fromtimestamp(at, calendar.zone)
    weeks_ago = (now - datetime.fromtimestamp(at, UTC)) // timedelta(weeks=1)
    return _Change(weeks_ago, local.weekday(), local.hour, metric)


def _holds(hours: Hours, change: _Change) -> bool:
    return change.day in hours.days and hours.start <= change.hour < (hours.end or HOURS)


def _is_known(calendar: AppCalendar, hours: Hours, now: datetime) -> bool:
    """Whether the calendar names all of these hours in the week that begins now."""
    local = now.astimezone(calendar.zone).replace(minute=0, second=0, microsecond=0)
    every = [local + timedelta(hours=ahead) for ahead in range(WEEKDAYS * HOURS)]
    own = [at for at in every if _holds(hours, _Change(0, at.weekday(), at.hour, ""))]
    return bool(calendar.excluded(np.array([int(at.timestamp()) for at in own]), HOUR_S).all())


def _insight(app: str, calendar: AppCalendar, hours: Hours, changes: Sequence[_Change]) -> Insight:
    metrics = list(dict.fromkeys(one.metric for one in changes))
    days = [WEEKDAY_NAMES[day] for day in hours.days]
    start, end = f"{hours.start:02}:00", f"{hours.end:02}:00"
    when = "every day" if len(days) == WEEKDAYS else "on " + ", ".join(f"{day.capitalize()}s" for day in days)
    weeks = len({one.week for one in changes})
    named = ", ".join(metrics[:_MOST_METRICS]) + (", ..." if len(metrics) > _MOST_METRICS else "")
    return Insight(
        type="data",
        where=AppEnvironment(app, ""),
        identity=("recurring_changes", *hours.days, hours.start),
        message=(
            f"changes began {when} between {start} and {end} ({calendar.settings.time_zone}) in {weeks} of the last "
            f"{WEEKS} weeks: {named}. It may be a known event, such as a nightly load"
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
            f'name = "...", app = "{app}", days = {days}, start = "{start}", end = "{end}". '.replace("'", '"')
            + "change_point then neither tests nor learns from these hours.",
            "If it is not known, look for what runs at that time: a load of documents, a deployment, a batch of "
            "questions.",
        ),
    )
