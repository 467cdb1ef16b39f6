"""Splits a text into lines of tokens, and tokens into the parts of a number."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_DIGIT = re.compile(r"\d")
_LIST_HEAD = re.compile(r"\d{1,3}[.)]")
_SOURCE = re.compile(r"[(]?\[\d+(?:,\d+)*\]\S{0,2}")  # [1], [2,3].
_AROUND = "([{<>}])\"'\u2018\u201c\u201d\u201e\u00ab\u00bb*_~\u2248=`"
_ENDING = ".,;:!?"
_RANGE = re.compile(r"(?:(?<=[\d%])|(?<=\d[ap]m))[-\u2013\u2014](?=\d)", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_PARTS = re.compile(
    r"(?P<before>[^\d.,+\u2212-]*)(?P<minus>[-\u2212]?)(?P<number>\d+(?:[.,'\u2019]\d+)*)-?(?P<after>[^\d]*)"
)
_GROUPED = re.compile(r"([1-9]\d{0,2}(?:([.,'\u2019])\d{3})(?:\2\d{3})*)(?:(?!\2)[.,](\d+))?")
_DECIMAL = re.compile(r"(\d+)(?:[.,](\d+))?")


class Token(NamedTuple):
    """A token without brackets, quotes and trailing punctuation. `ends` says that it had some."""

    core: str
    ends: bool

    @property
    def word(self) -> str:
        """The token in lower case."""
        return self.core.casefold()


class Number(NamedTuple):
    """`$49.00` has a sign before, `25MB` a unit after, both in lower case. Several points give no value."""

    before: str
    value: float | None
    digits: str  # as they stand
    after: str


def lines_of(text: str) -> Iterator[list[str]]:
    """Yield the tokens of each line, without list numbers and source numbers. Ranges are three tokens."""
    lines = text.splitlines()
    for line in lines:
        some = line.split()
        if len(lines) > 1 and len(some) > 1 and _LIST_HEAD.fullmatch(some[0]):
            del some[0]
        if _DIGIT.search(line):
            some = [part for raw in some for part in (_parts(raw) if _DIGIT.search(raw) else (raw,))]
        yield some


def token_of(raw: str) -> Token:
    """Strip brackets, quotes and punctuation."""
    if raw.isalnum():
        return Token(raw, False)
    left = raw.strip(_AROUND)
    core = left.rstrip(_ENDING + _AROUND)
    return Token(core, len(core) < len(left) or left[-1:] != raw[-1:])


def has_digit(raw: str) -> bool:
    """Whether the token has a digit."""
    return _DIGIT.search(raw) is not None


def number_of(core: str) -> Number | None:
    """Parse a number. None if the token is no number, such as a code with digits."""
    found = _PARTS.fullmatch(core)
    if found is None:
        return None
    value = _value(found["number"])
    if value is not None and found["minus"]:
        value = -value
    return Number(found["before"].casefold(), value, found["number"], found["after"].casefold().strip(".-"))


def _parts(raw: str) -> Sequence[str]:
    if _SOURCE.fullmatch(raw):
        return ()
    ranged = None if _DATE.search(raw) else _RANGE.search(raw)
    return (raw,) if ranged is None else (raw[: ranged.start()], "-", raw[ranged.end() :])


def _value(digits: str) -> float | None:
    grouped = _GROUPED.fullmatch(digits)
    if grouped is not None:
        return float(re.sub(r"\D", "", grouped[1]) + "." + (grouped[3] or "0"))
    decimal = _DECIMAL.fullmatch(digits)
    return float(f"{decimal[1]}.{decimal[2] or 0}") if decimal is not None else None
