"""Reads the quantities of a text in any notation: 1,200, 1.200, 1 200, 1.2k, twelve hundred, 50 %, half, €5, 9 pm."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import NamedTuple

from ragtide.evaluators.support.words import GERMAN_ONES, GERMAN_TENS, letter_runs, lower_in_place, number_words

CLOCK = "clock"
PERCENT = "percent"
MOST_DIGITS = 30  # longer ones are identifiers
_MINUTES_OF_DAY = 1_440
# It begins with one digit, which lets `re` skip texts without: what stands before is looked at afterwards.
_DIGITS = re.compile(
    r"(?P<digits>\d(?:\d{0,2}(?:[ \u00a0\u202f]\d{3})+(?![\d.,:])|\d*(?:[.,:'\u2019]\d+)*))"
    r"(?P<slash>/\d{1,3}(?![\d/]))?"
)
_BEFORE = re.compile(r"(?P<money>[$€£¥₹₽]|\b(?:USD|EUR|GBP|CHF|JPY|CNY|INR))\s?$")
_MOST_BEFORE = 5  # characters of that
_AFTER = re.compile(
    r"[ \u00a0\u202f-]?(?:(?P<half>[apAP])\.?\s?[mM]\b\.?|(?P<word>[%\uff05]|°\s?[CFcf]\b|[$€£¥₹₽]|km/h|[^\W\d_]+))"
)
_LETTER = re.compile(r"[^\W\d_]")
_ENDS = "\"',.;:)]}\n"  # behind them stands no unit: most numbers of records
_WORD_AFTER = re.compile(r"[ \u00a0\u202f-]?(?P<word>[%\uff05]|°\s?[CFcf]\b|[$€£¥₹₽]|km/h|[^\W\d_]+)")
_BETWEEN = frozenset({"", "-", "and", "und", "y", "e", "et"})  # words of one number
_CLOCK_MARK, _GROUP_MARK = re.compile("[:.,]"), re.compile("[.,'\u2019 \u00a0\u202f]")
_DECADE = re.compile(r"s\b")  # the 1970s
_RANGE = re.compile(r"\s?(?:[-\u2013\u2014~/]|to|and|or|bis|und|oder|a|y|o|à|et|ou|e|до|и|〜)\s?", re.IGNORECASE)
_MONEY = {"$": "usd", "€": "eur", "£": "gbp", "¥": "jpy", "₹": "inr", "₽": "rub"}  # and codes, in lower case


class Quantity(NamedTuple):
    """A number in a text.

    `values` are its readings as it stands ("1.200" has two), scaled by words such as million. `bases` are the same in
    the base unit of `kind`, "" if it has no unit. `spelled` says that it stands in words.
    """

    start: int
    end: int
    values: tuple[float, ...]
    kind: str
    bases: tuple[float, ...]
    spelled: bool = False
    factor: float = 0.0  # of its unit to the base unit


class Unit(NamedTuple):
    """A unit: its kind, and the factor to the base unit of the kind."""

    kind: str
    factor: float


@dataclass(frozen=True, slots=True)
class QuantityWords:
    """The words of quantities, in lower case."""

    numbers: Mapping[str, float]
    scales: Mapping[str, float]
    units: Mapping[str, Unit]


@lru_cache(maxsize=1)
def quantity_words() -> QuantityWords:
    """Read the words once. German compounds (einundzwanzig) are added."""
    read = tomllib.loads((resources.files("ragtide.evaluators.support") / "quantities.toml").read_text("utf-8"))
    numbers = {word: float(value) for value, words in read["numbers"].items() for word in words.split()}
    numbers |= {f"{one}und{ten}": numbers[one] + numbers[ten] for one, ten in product(GERMAN_ONES, GERMAN_TENS)}
    scales = {word: float(value) for value, words in read["scales"].items() for word in words.split()}
    units = {
        word: Unit(kind, float(factor))
        for kind, by_factor in read["units"].items()
        for factor, words in by_factor.items()
        for word in words.split()
    }
    return QuantityWords(numbers, scales, units)


def quantities_of(text: str) -> list[Quantity]:
    """Return the quantities written with digits, in order."""
    found = []
    end = 0
    for match in _DIGITS.finditer(text):
        if match.start() >= end and match.end("digits") - match.start("digits") <= MOST_DIGITS:
            one = _read(text, match)
            found += one
            end = one[-1].end if one else end
    return _with_shared_units(text, found)


def spelled_quantities_of(text: str, code: str) -> list[Quantity]:
    """Return the quantities written in words of the language, in order: "twelve hundred" is 1,200."""
    words = quantity_words()
    lower = lower_in_place(text)
    present = number_words(code).intersection(letter_runs(lower))
    if present.isdisjoint(words.numbers):
        return []
    found: list[Quantity] = []
    run: list[tuple[float, bool]] = []  # values, and whether each is a scale
    start = end = 0
    for match in _any_of(present).finditer(lower):
        word, before = match.group(), lower[match.start() - 1 : match.start()]
        if _LETTER.match(before):
            continue
        value = words.numbers.get(word)
        scale = words.scales.get(word) if value is None and len(word) > 2 else None
        if value is None and scale is None:
            continue
        between = lower[end : match.start()].strip()
        if run and (between not in _BETWEEN or (value is not None and not _continues(run, value))):
            found.append(_spelled(text, start, end, run))
            run = []
        if not run:
            if scale is not None:
                continue  # "millions of": no number
            start = match.start()
        run.append((value if value is not None else scale or 0.0, scale is not None))
        end = match.end()
    if run:
        found.append(_spelled(text, start, end, run))
    return found


@lru_cache(maxsize=1 << 10)
def _any_of(words: frozenset[str]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, words), key=len, reverse=True)
    return re.compile(rf"(?:{'|'.join(longest_first)})(?!{_LETTER.pattern})")  # `re` skips to their first letters


def _continues(run: Sequence[tuple[float, bool]], value: float) -> bool:
    """Whether a number word adds to those before it: "twenty five", "two hundred ten", not "two three"."""
    last, scaled = run[-1]
    return scaled or (last, value) == (4, 20) or (last >= 20 and last % 10 == 0 and 0 < value < 20) or value == 0.5


def _spelled(text: str, start: int, end: int, run: Sequence[tuple[float, bool]]) -> Quantity:
    total = current = 0.0
    for value, is_scale in run:
        if not is_scale:
            current = 80.0 if (current, value) == (4.0, 20.0) else current + value  # quatre-vingt
        elif value == 100:
            current = max(current, 1.0) * value
        else:
            total, current = total + max(current, 1.0) * value, 0.0
    unit, end = _unit_behind(text, end)
    return _quantity(start, end, (total + current,), unit, spelled=True)


def _read(text: str, match: re.Match[str]) -> list[Quantity]:
    start, end = match.span("digits")
    digits, money = match["digits"], None
    before = text[start - 1] if start else ""
    if (before and not before.isascii()) or before in " $DRPFYF":
        money = _BEFORE.search(text[max(0, start - _MOST_BEFORE) : start])
    if money:
        start -= len(money.group())
    elif before.isalpha() and before < "\u0e00":
        return [_quantity(start, end, values, None) for values in [_values(digits)] if values]  # B2, covid19
    behind = None if text[end : end + 1] in _ENDS else _AFTER.match(text, end)
    if ":" in digits or (behind and behind["half"]):
        return _clock(digits, start, end, behind)
    if match["slash"] and digits.isdecimal():
        over, under = float(digits), float(match["slash"][1:])
        if 0 < over < under <= 100 and not money:
            return [_quantity(start, match.end("slash"), (over / under,), None)]
    values = _values(digits)
    if values and len(digits) == 4 and _DECADE.match(text, end) and digits.isdecimal() and digits.endswith("0"):
        years = tuple(values[0] + year for year in range(10))
        return [Quantity(start, end + 1, years, "", years)]
    if not values:  # a date or a version: its parts
        return _parts(digits, match.start("digits"))
    currency = money["money"] if money else ""
    return [_scaled(text, start, end, behind, values, _MONEY.get(currency, currency.lower()) or None)]


def _scaled(
    text: str, start: int, end: int, behind: re.Match[str] | None, values: tuple[float, ...], money: str | None
) -> Quantity:
    """Read the scale and the unit behind a number. One letter is a scale if it touches the number: 1.2k, not 5 m."""
    if not behind:
        return _quantity(start, end, values, Unit(money, 1.0) if money else None)
    word, behind_end = _known(behind)
    scale = quantity_words().scales.get(word)
    if scale is not None and (len(word) > 1 or not word.isascii() or behind.start("word") == end):
        readings = tuple(value * scale for value in values)
        if word == "m" and not money:
            return _quantity(start, behind_end, (*readings, *values), None)  # millions or metres
        unit, unit_end = _unit_behind(text, behind_end)
        return _quantity(start, unit_end, readings, Unit(money, 1.0) if money else unit)
    if money:
        return _quantity(start, end, values, Unit(money, 1.0))
    unit, end = _unit_of(text, end, behind, word, behind_end)
    return _quantity(start, end, values, unit)


def _unit_behind(text: str, end: int) -> tuple[Unit | None, int]:
    behind = _WORD_AFTER.match(text, end)
    return _unit_of(text, end, behind, *_known(behind)) if behind else (None, end)


def _unit_of(text: str, end: int, behind: re.Match[str], word: str, behind_end: int) -> tuple[Unit | None, int]:
    unit = quantity_words().units.get(word)
    if word in ("por", "pour", "per"):  # por ciento, pour cent, per cento
        follows = _WORD_AFTER.match(text, behind.end())
        if follows and follows["word"].lower() in ("ciento", "cent", "cento"):
            return Unit(PERCENT, 1.0), follows.end()
    if word in ("square", "cubic"):
        follows = _WORD_AFTER.match(text, behind.end())
        unit = quantity_words().units.get(f"{word}_{follows['word'].lower()}") if follows else None
        behind_end = follows.end() if follows else behind_end
    return (unit, behind_end) if unit else (None, end)


def _known(behind: re.Match[str]) -> tuple[str, int]:
    """Return the word behind a number and its end. Scripts without spaces run on: only their known beginning counts."""
    word, start = behind["word"].lower().replace(" ", ""), behind.start("word")
    if word[0] >= "\u3000":
        words = quantity_words()
        for length in (4, 2, 1):
            if word[:length] in words.scales or word[:length] in words.units:
                return word[:length], start + len(word[:length])
    return word, behind.end()


def _quantity(start: int, end: int, values: tuple[float, ...], unit: Unit | None, *, spelled: bool = False) -> Quantity:
    if unit is None:
        return Quantity(start, end, values, "", values, spelled)
    if unit.kind == "fahrenheit":
        celsius = tuple((value - 32.0) / 1.8 for value in values)
        return Quantity(start, end, values, "celsius", celsius, spelled, 1 / 1.8)
    return Quantity(start, end, values, unit.kind, tuple(value * unit.factor for value in values), spelled, unit.factor)


def _values(digits: str) -> tuple[float, ...]:
    """Return the readings of digits with separators; () for a date, a version and the like."""
    if digits.isdecimal():
        return (float(digits),)
    groups = _GROUP_MARK.split(digits)
    marks = {mark for mark in digits if not mark.isdecimal()}
    grouped = 1 <= len(groups[0]) <= 3 and groups[0] != "0" and all(len(group) == 3 for group in groups[1:])
    if len(marks) == 1:
        if len(groups) == 2:
            decimal = float(f"{groups[0]}.{groups[1]}")
            if not grouped:
                return (decimal,)
            return (
                (float("".join(groups)),) if marks & set(" \u00a0\u202f'\u2019") else (float("".join(groups)), decimal)
            )
        return (float("".join(groups)),) if grouped else ()
    whole, part = groups[:-1], groups[-1]
    if len(marks) == 2 and 1 <= len(whole[0]) <= 3 and all(len(group) == 3 for group in whole[1:]):
        return (float("".join(whole) + "." + part),)
    return ()


def _parts(digits: str, start: int) -> list[Quantity]:
    return [
        Quantity(start + part.start(), start + part.end(), (float(part.group()),), "", (float(part.group()),))
        for part in re.finditer(r"\d+", digits)
    ]


def _clock(digits: str, start: int, end: int, behind: re.Match[str] | None) -> list[Quantity]:
    """Read a time of day: minutes from midnight. Without am or pm it may be both."""
    minutes = _minutes_of(digits)
    if minutes is None:
        return _parts(digits, start)
    if behind and behind["half"]:
        afternoon = behind["half"].lower() == "p"
        minutes = minutes % 720 + 720 * afternoon
        end = behind.end()
    minutes %= _MINUTES_OF_DAY
    return [Quantity(start, end, (minutes,), CLOCK, (minutes,))]


@lru_cache(maxsize=1 << 12)
def _minutes_of(digits: str) -> float | None:
    """Return the minutes from midnight of 9:30; None if it is no time of day."""
    parts = _CLOCK_MARK.split(digits)
    if len(parts) > 3 or not all(map(str.isdecimal, parts)):
        return None
    hours, minutes = int(parts[0]), int(parts[1]) if len(parts) > 1 else 0
    return float(hours * 60 + minutes) if hours <= 24 and minutes <= 59 else None


def _with_shared_units(text: str, found: list[Quantity]) -> list[Quantity]:
    """Give the first number of a range the unit of the second: 10-20 %, 9 to 11 am."""
    for i in range(len(found) - 2, -1, -1):
        one, other = found[i], found[i + 1]
        if one.kind or not other.kind or other.start - one.end > 6 or not _RANGE.fullmatch(text[one.end : other.start]):
            continue
        if other.kind == CLOCK:
            if not all(value <= 24 for value in one.values):
                continue
            hours = tuple(value * 60 % _MINUTES_OF_DAY for value in one.values)
            both = (*hours, *((value + 720) % _MINUTES_OF_DAY for value in hours))
            found[i] = Quantity(one.start, one.end, both, CLOCK, both)
            continue
        kind = "fahrenheit" if other.kind == "celsius" and other.factor != 1.0 else other.kind
        found[i] = _quantity(one.start, one.end, one.values, Unit(kind, other.factor))
    return found
