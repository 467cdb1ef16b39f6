"""Telephone numbers: international ones with "+", and one country's as people there write them."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from evaluators.personal_data.formatted import Formatted, Span

_DIGITS = 7  # shorter numbers are anything
_GROUPS = 8  # a longer row without "+" or "(" is a table of numbers
CANDIDATES = 2_000  # number-like places looked at in one text: some 0.2 s


class TooMany(Exception):
    """More number-like places than can be looked at."""


@lru_cache(maxsize=1)
def _patterns() -> tuple[Any, Any, Any]:
    import re2

    runs = re2.compile(rb"[+(]*[0-9][0-9 ()./+-]*[0-9]")
    return runs, re2.compile(rb"[0-9]+"), re2.compile(rb"[0-9]+\.[0-9]+")


def find(shape: Formatted, region: str) -> Iterator[Span]:
    """Numbers that phonenumbers calls valid, grouped as their country groups them; bare runs of digits are ids.

    Raises `TooMany` after 2,000 candidates, which is not the same as having found none.
    """
    from phonenumbers import Leniency, PhoneNumberMatcher

    run_pattern, group_pattern, decimal = _patterns()
    text = shape.text
    looked_at = 0
    for run in run_pattern.finditer(shape.data):
        start, end = run.span()
        groups = group_pattern.findall(shape.data, start, end)
        if sum(map(len, groups)) < _DIGITS:
            continue
        marked = b"+" in run[0] or b"(" in run[0]
        if not marked and (not 1 < len(groups) <= _GROUPS or decimal.fullmatch(run[0])):
            continue
        looked_at += 1 + len(groups) // _GROUPS
        if looked_at > CANDIDATES:
            raise TooMany
        # One character before and three after: "ISBN978..." and "2023-10-12 14:30" are told by them.
        first = max(start - 1, 0)
        window = text[first : end + 3]
        for match in PhoneNumberMatcher(window, region, leniency=Leniency.STRICT_GROUPING):
            if _is_written_as_one(match.raw_string):
                yield Span(first + match.start, first + match.end)


def _is_written_as_one(number: str) -> bool:
    """Whether it starts with "+" or has its digits grouped; 2147483648 has neither, nor has the sum a + 2784375."""
    return (number[0] == "+" and number[1] != " ") or not number.strip("+( )").isdigit()
