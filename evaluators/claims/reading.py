"""Extracts amounts, dates and versions from a text, in normalised form."""

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
    """One fact. `kind` is that of a unit (seconds, months, percent, eur, bytes, ...), or date, year, clock, version,
    number.

    `value` is normalised: two weeks and 14 days are the same number of seconds.
    """

    kind: str
    value: str


def claims_of(text: str) -> frozenset[Claim]:
    """Extract the facts of the first `CHARACTERS`. Numbers inside names or codes (E-1042) do not count."""
    return frozenset(claim for line in lines_of(text[:CHARACTERS]) for claim in _claims_of_line(line))


def _claims_of_line(line: Sequence[str]) -> Iterator[Claim]:
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
    """Read a date or time of day in one token."""
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
    claim = _claim_of_number(number, token, line, at) if number is not None else None
    if claim is not None:
        yield claim


def _claim_of_number(number: Number, token: Token, line: Sequence[str], at: int) -> Claim | None:
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
        or _plain_claim(number, value, before)
    )


def _day(number: Number, value: float, line: Sequence[str], at: int) -> Claim | None:
    if number.after not in _ORDINAL or not 1 <= value <= _DAYS or value % 1:
        return None
    step = 2 if _token(line, at + 1).word in ("of", "de") else 1
    month = _month(_token(line, at - 1)) or _month(_token(line, at + step))
    return None if month is None else _date(month, int(value))


def _month(token: Token) -> int | None:
    """Read the name of a month; 5 may be anything."""
    if token.core in ("may", "march", "mar"):
        return None
    return words().months.get(token.word)


def _hour(number: Number, value: float, token: Token, line: Sequence[str], at: int) -> Claim | None:
    half = _HALVES.get(_token(line, at + 1).word)
    if half is None or token.ends or number.after or not 0 <= value <= _HOURS:
        return None
    return _clock(int(value), 0, half)


def _with_unit(number: Number, value: float, token: Token, line: Sequence[str], at: int) -> Claim | None:
    """Read a number with its unit, or with the unit at the other end of its range."""
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


def _plain_claim(number: Number, value: float, before: str) -> Claim | None:
    unit = words().units.get(before)
    if number.after:
        return None
    if unit is not None and unit.kind not in _PERIODS:  # EUR 49
        return _amount(unit, value)
    return Claim("year" if _YEAR.fullmatch(number.digits) else "number", _format_value(value))


def _unit_in(line: Sequence[str], at: int) -> Unit | None:
    """Return the unit at this token. A word such as "working" may precede days."""
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
