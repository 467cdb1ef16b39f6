"""Compares opening hours that an answer gives by day with those of a record in the contexts."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)(?:days?)?\b|(?:wed|sat)\b"
# It begins with letters, so that texts without days are read fast: which day it is, is looked at afterwards.
_ENTRY = re.compile(
    r"""day["']?\s?[:=]\s?["']?(?P<opens>\d{1,2}(?::\d{1,2})?)\s?(?:-|\u2013|to)\s?(?P<closes>\d{1,2}(?::\d{1,2})?)"""
    r"(?!\s?[apAP]\.?[mM])"
)
_ENTRY_DAY = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)$", re.IGNORECASE)
_HINT = re.compile(r"\d|day|daily|week")
_ITEM = re.compile(
    rf"\b(?:(?P<first>{_DAY})(?:,?\s?(?:through|thru|to|until|till|-|\u2013|\u2014)\s?(?P<last>\b(?:{_DAY})))?"
    r"|(?P<all>(?:every\s?day|daily|(?:seven|7) days (?:a|per) week|all week|each day)\b)"
    r"|(?P<weekdays>weekdays?\b)|(?P<weekend>weekends?\b)"
    r"|(?P<opens>\d{1,2}(?::\d{1,2})?)\s?(?P<half>[ap]\.?m\b\.?)?\s?(?:-|\u2013|\u2014|to|until|till|and)\s?"
    r"(?P<closes>\d{1,2}(?::\d{1,2})?)\s?(?P<other>[ap]\.?m\b\.?)?)",
    re.IGNORECASE,
)
_EXCEPTS = re.compile(r"\b(?:closed|except|but not|excluding|extended|vary|varying)\b", re.IGNORECASE)
_LONGER = re.compile(r"\b(?:extended|longer|later)\b[^.;\n]{0,40}?\bweekends?\b", re.IGNORECASE)
_DAY_MINUTES, _HALF_MINUTES = 1_440, 720

Hours = tuple[int, int]  # minutes from midnight


class _Claim(NamedTuple):
    start: int
    end: int
    days: frozenset[int]
    times: tuple[frozenset[int], frozenset[int]] | None  # readings of opening and closing


def schedule_of(text: str) -> dict[int, Hours]:
    """Return the opening hours by day, Monday 0. Days that are closed (0:0-0:0) are left out."""
    found: dict[int, Hours] = {}
    for match in _ENTRY.finditer(text):
        day = _ENTRY_DAY.search(text[max(0, match.start() - 7) : match.start()])
        hours = _minutes(match["opens"]), _minutes(match["closes"])
        if day and hours != (0, 0):
            found[_DAYS.index(day.group()[:3].lower())] = hours
    return found


def contradicted_hours(schedule: Mapping[int, Hours], sentence: str) -> list[tuple[int, int]]:
    """Return the spans of days and times in a sentence that the schedule does not have.

    Days are right if each is open, times if each of their days has them. Days belong to the times behind them, or
    before them in a sentence that begins with times. Empty without a schedule.
    """
    if not schedule or not _HINT.search(sentence):
        return []
    says_weekend = "eekend" in sentence and not _longer_at_weekends(schedule)
    longer = [match.span() for match in _LONGER.finditer(sentence)] if says_weekend else []
    return longer + [
        (claim.start, claim.end)
        for claim in _claims(sentence)
        if not (_open(schedule, claim) if claim.times is None else _agree(schedule, claim.days, *claim.times))
    ]


def _longer_at_weekends(schedule: Mapping[int, Hours]) -> bool:
    lengths = {day: (closes - opens) % _DAY_MINUTES for day, (opens, closes) in schedule.items()}
    weekend = [minutes for day, minutes in lengths.items() if day >= 5]
    others = [minutes for day, minutes in lengths.items() if day < 4]
    return bool(weekend and others) and max(weekend) > max(others)


def _open(schedule: Mapping[int, Hours], claim: _Claim) -> bool:
    return all(day in schedule for day in claim.days)


def _agree(schedule: Mapping[int, Hours], days: frozenset[int], opens: frozenset[int], closes: frozenset[int]) -> bool:
    if not days:
        return any(hours[0] in opens and hours[1] in closes for hours in schedule.values())
    return all(day in schedule and schedule[day][0] in opens and schedule[day][1] in closes for day in days)


def _claims(sentence: str) -> Iterator[_Claim]:
    items = [match for match in _ITEM.finditer(sentence) if match["opens"] is None or _is_time(match)]
    excepts = bool(items) and _EXCEPTS.search(sentence) is not None
    for match in items:
        days = _days(match)
        if len(days) > 2 and not (excepts or match["weekdays"]):
            yield _Claim(match.start(), match.end(), days, None)
    if any(match["opens"] for match in items):
        groups = _groups(items if not items[0]["opens"] else items[::-1], backwards=bool(items[0]["opens"]))
        for days, match in groups:
            if not excepts or len(days) < 3:
                yield _Claim(match.start(), match.end(), days, _times(match))


def _groups(items: list[re.Match[str]], *, backwards: bool) -> Iterator[tuple[frozenset[int], re.Match[str]]]:
    """Pair each time with the days beside it; times without days of their own have those of the time before."""
    days: frozenset[int] = frozenset()
    fresh = True
    for match in items:
        if match["opens"] is None:
            days, fresh = (_days(match) if fresh else days | _days(match)), False
        else:
            yield days if not (backwards and fresh) else frozenset(), match
            fresh = True


def _is_time(match: re.Match[str]) -> bool:
    return bool(match["half"] or match["other"]) or ":" in match["opens"] + match["closes"]


def _days(match: re.Match[str]) -> frozenset[int]:
    if match["first"]:
        first = _DAYS.index(match["first"][:3].lower())
        last = _DAYS.index(match["last"][:3].lower()) if match["last"] else first
        return frozenset((first + step) % 7 for step in range((last - first) % 7 + 1))
    every = (("all", range(7)), ("weekdays", range(5)), ("weekend", range(5, 7)))
    return frozenset(day for name, days in every if match[name] for day in days)


def _times(match: re.Match[str]) -> tuple[frozenset[int], frozenset[int]]:
    closes = _readings(match["closes"], match["other"])
    halves = {match["half"]} if match["half"] else {None, match["other"]}
    return frozenset(one for half in halves for one in _readings(match["opens"], half)), closes


def _readings(time: str, half: str | None) -> frozenset[int]:
    minutes = _minutes(time)
    if half:
        late = half[0] in "pP" and minutes < 2 * _HALF_MINUTES
        return frozenset(
            {minutes % _HALF_MINUTES + _HALF_MINUTES * late, minutes}
            if minutes >= 780
            else {minutes % _HALF_MINUTES + _HALF_MINUTES * late}
        )
    return frozenset({minutes})


def _minutes(time: str) -> int:
    hours, _, minutes = time.partition(":")
    return (int(hours) * 60 + int(minutes or 0)) % _DAY_MINUTES
