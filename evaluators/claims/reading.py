"""The amounts, dates and versions that a text states, each in one way of writing."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragtide.evaluators.claims.tokens import Number, Token, has_digit, lines_of, number_of, token_of
from ragtide.evaluators.claims.words import Unit, words

CHARACTERS = 20_000  # of a text that are read, from its beginning
_NOWHERE = Token("", True)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_CLOCK = re.compile(r"([01]?\d|2[0-4]):([0-5]\d)([ap]?)\.?m?", re.IGNORECASE)
_HOUR = re.compile(r"(1[0-2]|[1-9])([ap])\.?m", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_HALVES = {"am": "a", "a.m": "a", "pm": "p", "p.m": "p", "uhr": ""}
_ORDINAL = ("", "st", "nd", "rd", "th", "er")
_PERIODS = ("seconds", "months")
_DAYS, _HOURS, _NOON = 31, 24, 12


class Claim(NamedTuple):
    """`kind` is a unit's (seconds, months, percent, eur, bytes, ...), date, year, clock, version or number.

    `value` is the same however the text writes it: two weeks are 14 days, both in seconds.
    """

    kind: str
    value: str


def claims_of(text: str) -> frozenset[Claim]:
    """What the text states in its first `CHARACTERS`. A number within a name or code (E-1042) is none."""
    return frozenset(claim for line in lines_of(text[:CHARACTERS]) for claim in _of_line(line))


def _of_line(line: Sequence[str]) -> Iterator[Claim]:
    numbers = words().numbers
    for at, raw in enumerate(line):
        if raw.lower() in numbers:
            yield from _number_word(numbers[raw.lower()], line, at)
        elif not raw.isalpha() and has_digit(raw):
            yield from _date_claims(token_of(raw)) or _claims_at(line, at)


def _number_word(value: int, line: Sequence[str], at: int) -> Iterator[Claim]:
    unit = _unit_in(line, at + 1)
    if unit is not None:
        yield _amount(unit, value)


def _date_claims(token: Token) -> list[Claim]:
    """What one token tells of a day or a time of day."""
    if iso := _ISO.match(token.core):
        return [_date(int(iso[2]), int(iso[3])), Claim("year", iso[1])]
    if dotted := _DOTTED.fullmatch(token.core):
        return [_date(int(dotted[2]), int(dotted[1])), Claim("year", dotted[3])]
    if hour := _HOUR.fullmatch(token.core):
        return [_clock(int(hour[1]), 0, hour[2])]
    return []


def _claims_at(line: Sequence[str], at: int) -> Iterator[Claim]:
    token = token_of(line[at])
    half = "" if token.ends else _HALVES.get(_token(line, at + 1).word, "")
    if clock := _CLOCK.fullmatch(token.core):
        yield _clock(int(clock[1]), int(clock[2]), clock[3] or half)
        return
    number = number_of(token.core)
    claim = _of_number(number, token, line, at) if number is not None else None
    if claim is not None:
        yield claim


def _of_number(number: Number, token: Token, line: Sequence[str], at: int) -> Claim | None:
    known, before, value = words(), _token(line, at - 1).word, number.value
    if number.before in known.version or before in known.version or number.digits.count(".") > 1:
        return Claim("version", re.sub(r"(?:\.0)+\Z", "", number.digits))
    if value is None:
        return None
    if number.before:
        return _amount(known.units[number.before], value) if number.before in known.units else None
    return (
        _day(number, value, line, at)
        or _hour(number, value, token, line, at)
        or _with_unit(number, value, token, line, at)
        or _bare(number, value, before)
    )


def _day(number: Number, value: float, line: Sequence[str], at: int) -> Claim | None:
    if number.after not in _ORDINAL or not 1 <= value <= _DAYS or value % 1:
        return None
    step = 2 if _token(line, at + 1).word in ("of", "de") else 1
    month = _month(_token(line, at - 1)) or _month(_token(line, at + step))
    return None if month is None else _date(month, int(value))


def _month(token: Token) -> int | None:
    """By its name; 5 may be that many of anything."""
    if token.core in ("may", "march", "mar"):
        return None
    return words().months.get(token.word)


def _hour(number: Number, value: float, token: Token, line: Sequence[str], at: int) -> Claim | None:
    half = _HALVES.get(_token(line, at + 1).word)
    if half is None or token.ends or number.after or not 0 <= value <= _HOURS:
        return None
    return _clock(int(value), 0, half)


def _with_unit(number: Number, value: float, token: Token, line: Sequence[str], at: int) -> Claim | None:
    """With the unit of its own, or of the other end of its range."""
    if number.after:
        unit = words().units.get(number.after)
    elif token.ends:
        return None
    else:
        unit = _unit_in(line, at + 1) or _unit_of_range(line, at + 1)
    return None if unit is None else _amount(unit, value)


def _unit_of_range(line: Sequence[str], at: int) -> Unit | None:
    if _token(line, at).word not in words().range:
        return None
    other = number_of(_token(line, at + 1).core)
    if other is None:
        return None
    return words().units.get(other.after) if other.after else _unit_in(line, at + 2)


def _bare(number: Number, value: float, before: str) -> Claim | None:
    unit = words().units.get(before)
    if number.after:
        return None
    if unit is not None and unit.kind not in _PERIODS:  # EUR 49
        return _amount(unit, value)
    return Claim("year" if _YEAR.fullmatch(number.digits) else "number", _format_value(value))


def _unit_in(line: Sequence[str], at: int) -> Unit | None:
    """The unit that begins with this token; a word may come before days, such as "working"."""
    known, first, second = words(), _token(line, at), _token(line, at + 1)
    if first.word in known.degrees:
        return known.units.get(second.word)
    if first.word in ("per", "pour", "por") and second.word in ("cent", "ciento"):
        return known.units["%"]
    if first.word in known.units:
        return known.units[first.word]
    unit = known.units.get(second.word)
    if unit is None or unit.kind not in _PERIODS or first.ends or first.word in known.apart or not first.core.isalpha():
        return None
    return unit


def _token(line: Sequence[str], at: int) -> Token:
    return token_of(line[at]) if 0 <= at < len(line) else _NOWHERE


def _amount(unit: Unit, value: float) -> Claim:
    return Claim(unit.kind, _format_value(value * unit.amount))


def _clock(hour: int, minute: int, half: str) -> Claim:
    if half:
        hour = hour % _NOON + _NOON * (half.casefold() == "p")
    return Claim("clock", f"{hour}:{minute:02}")


def _date(month: int, day: int) -> Claim:
    return Claim("date", f"{month}-{day}")


def _format_value(value: float) -> str:
    return f"{value:.12g}"
