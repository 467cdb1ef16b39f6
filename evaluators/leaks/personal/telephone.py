"""Telephone numbers: international ones with "+", one country's as people there write them, and those called so."""

import re
from collections.abc import Iterator
from functools import partial

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span, stands_alone
from evaluators.leaks.labels import is_something_else
from evaluators.leaks.patterns import compiled
from evaluators.leaks.personal.numbering import NumberingPlans

_DIGITS = 7  # shorter numbers are anything
_DIALLED_ABROAD = 12  # digits behind 00, at least
_LONGEST_GROUP = 6
_GROUPS = 8  # a longer row without "+" or "(" is a table of numbers

_RUN = r"[+(]*[0-9][0-9 ()./+-]*[0-9]"
_INTERNATIONAL = r"\+[1-9(][0-9 ()./-]{6,22}[0-9]|\b00[1-9][0-9 /-]{6,22}[0-9]"
# Area code, exchange and line of North America. 555 is nobody's area code, and in every example.
_NORTH_AMERICAN = (
    r"(?:\b1[ .-])?(?:\([2-9][0-9]{2}\)[ .-]?[0-9]{3}[ .-][0-9]{4}|"
    r"\b[1-9][0-9]{2}-[0-9]{3}-[0-9]{4}|\b[2-9][0-9]{2}\.[2-9][0-9]{2}\.[0-9]{4})"
)
# Brazil's area code in brackets, and Russia's 8 for calls within the country.
_BRACKETED = (
    r"\([1-9][0-9]\) ?9?[0-9]{4}-[0-9]{4}\b|"
    r"\b8[ -]?\([0-9]{3,5}\)[ -]?[0-9]{1,3}[ -][0-9]{2}[ -]?[0-9]{2}\b"
)
_EXTENSION = r"(?i)^ ?(?:x|ext\.?|#) ?[0-9]{1,6}\b"
_EXTENDED = 14  # characters of it
_TRUNK = (
    r"\b0[1-9][0-9]{0,3}(?:(?:[ ./-]| - )[0-9]{2,8}){1,4}\b|\(0[0-9]{1,5}\)[ -]?[0-9]{2,5}(?:[ -]?[0-9]{2,5}){1,3}\b"
)
_TRUNK_DIGITS = range(10, 14)
_CALLED = (
    r"(?:tele)?phones?\b|\btel\b|mobiles?\b|\bcell(?:phone|ular)?\b|\bfax\b|whats ?app|hotline|\bsms\b|"
    r"telefon[a-z]*|t.{1,2}l.{1,2}phone|m.{1,2}vil\b|celular|handy(?:nummer)?\b|rufnummer|mobilnummer|num.{1,2}ro\b|"
    r"landline|voicemail"
)
_ASKED = r"\b(?:call|dial|ring|reach|text|phone|contact|message)(?:ed|ing)?"
_WRITTEN = r"\+?\(?[0-9][0-9 ()./-]{5,18}[0-9]"
# Where Latin letters do not reach: Chinese, Japanese, Korean, Russian, Ukrainian, Greek.
_LABELLED_ELSEWHERE = re.compile(
    r"(?:\u7535\u8bdd|\u96fb\u8a71|\u624b\u673a|\u624b\u6a5f|\u643a\u5e2f|\uc804\ud654|\ud734\ub300\ud3f0|"
    r"\u0442\u0435\u043b\u0435\u0444\u043e\u043d\w{0,3}|\u0442\u0435\u043b\.|\u0442\u0456\u043b|\u03c4\u03b7\u03bb)"
    r"[^0-9+(\n]{0,12}?(\+?\(?[0-9][0-9 ()-]{6,18}[0-9])",
    re.IGNORECASE,
)
_LABELLED = (
    rf"(?i:(?:\b|_)(?:{_CALLED})[^0-9+(\n]{{0,30}}?|({_ASKED})(?: (?:me|us|him|her|them|at|on|my|our|the|number|cell|"
    rf"mobile|line|back|support|now|today|or|is|[A-Z][a-z]{{1,12}})){{0,4}}[ :]{{1,2}})({_WRITTEN})"
)
_MOST_DIGITS = 15  # E.164
_ASKED_DIGITS = 10  # of "reach 1000000 people" none is called
_DATE = r"^(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})"
_JUMBLED = r"\). ?|\. |\..*-|-.*\."  # pp. 226-231. 1996; clause 252.227-7013
_NOUGHTS = r"(?:[ .,]?000){2,}$"


def find(shape: Formatted, region: str) -> Iterator[Span]:
    """Numbers that may be dialled, grouped as people group them or called telephone numbers; bare digits are ids.

    Raises `TooMany` after 2,000 candidates, which is not the same as having found none.
    """
    plans = NumberingPlans()
    taken = bytearray(len(shape.text))
    ways = (
        _international(shape, plans),
        _bracketed(shape),
        _labelled(shape),
        _trunk(shape, plans),
        _grouped(shape, region, taken, plans),
    )
    for spans in ways:
        for start, end in spans:
            if 1 not in taken[start:end]:
                taken[start:end] = b"\x01" * (end - start)
                yield Span(start, end)


def _international(shape: Formatted, plans: NumberingPlans) -> Iterator[Span]:
    """With "+" or 00 and a country's code, the latter grouped."""
    text = shape.text
    for match in compiled(_INTERNATIONAL).finditer(shape.data):
        start, end = match.start(), _with_extension(shape, match.end())
        number = text[start : match.end()]
        if number[0] == "0" and (number.isdigit() or sum(map(str.isdigit, number)) < _DIALLED_ABROAD):
            continue
        if compiled(_NOUGHTS).search(match[0]) or not stands_alone(
            text, start, end, "-/" if number[0] == "+" else "-/."
        ):
            continue
        if plans.possible("+" + number.lstrip("+0 ")):
            yield Span(start, end)


def _bracketed(shape: Formatted) -> Iterator[Span]:
    """Three, three and four digits with brackets, hyphens or points between them, and other area codes in brackets."""
    for match in compiled(rf"{_NORTH_AMERICAN}|{_BRACKETED}").finditer(shape.data):
        start, end = match.start(), _with_extension(shape, match.end())
        if stands_alone(shape.text, start, end, "-./") and not is_something_else(shape, start):
            yield Span(start, end)


def _labelled(shape: Formatted) -> Iterator[Span]:
    """What the words before call a telephone number, however it is written."""
    for match in compiled(_LABELLED).finditer(shape.data):
        start, end = match.start(2), _with_extension(shape, match.end(2))
        number = shape.text[start : match.end(2)]
        digits = sum(map(str.isdigit, number))
        enough = _DIGITS if match[1] is None or not number.isdigit() else _ASKED_DIGITS
        if enough <= digits <= _MOST_DIGITS and not _is_date(match[2]) and stands_alone(shape.text, start, end):
            yield Span(start, end)
    if not shape.text.isascii():
        yield from (Span(*match.span(1)) for match in _LABELLED_ELSEWHERE.finditer(shape.text))


def _trunk(shape: Formatted, plans: NumberingPlans) -> Iterator[Span]:
    """Grouped, with the leading 0 of calls within a country."""
    for match in compiled(_TRUNK).finditer(shape.data):
        start, end = match.span()
        digits = sum(map(str.isdigit, shape.text[start:end]))
        if digits not in _TRUNK_DIGITS or _is_date(match[0]) or not stands_alone(shape.text, start, end, "-./"):
            continue
        if not is_something_else(shape, start) and plans.valid_at_home(shape.text[start:end]):
            yield Span(start, end)


def _grouped(shape: Formatted, region: str, taken: bytearray, plans: NumberingPlans) -> Iterator[Span]:
    """Numbers that are valid in the region, grouped as there."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    text = shape.text
    for run in compiled(_RUN).finditer(shape.data):
        start, end = run.span()
        groups = compiled(r"[0-9]+").findall(shape.data, start, end)
        if sum(map(len, groups)) < _DIGITS or 1 in taken[start:end]:
            continue
        marked = b"+" in run[0] or b"(" in run[0]
        if not marked and (not 1 < len(groups) <= _GROUPS or compiled(r"[0-9]+\.[0-9]+").fullmatch(run[0])):
            continue
        if _is_date(run[0]):
            continue
        plans.spend(1 + len(groups) // _GROUPS)
        # One character before and three after: "ISBN978..." and "2023-10-12 14:30" are told by them.
        first = max(start - 1, 0)
        for match in PhoneNumberMatcher(text[first : end + 3], region, leniency=Leniency.STRICT_GROUPING):
            if _is_written_as_one(match.raw_string) and not is_something_else(shape, first + match.start):
                yield Span(first + match.start, first + match.end)


def _with_extension(shape: Formatted, end: int) -> int:
    extension = compiled(_EXTENSION).search(shape.data[end : end + _EXTENDED])
    return end + int(extension.end()) if extension else end


def _is_date(number: bytes) -> bool:
    return compiled(_DATE).search(number) is not None


def _is_written_as_one(number: str) -> bool:
    """Whether it starts with "+" or has its digits grouped; 2147483648 has neither, nor has the sum a + 2784375."""
    if number[0] == "+":
        return number[1] != " "
    groups = compiled(r"[0-9]+").findall(number.encode("latin-1", "replace"))
    return (
        len(groups) > 1
        and max(map(len, groups)) <= _LONGEST_GROUP
        and not compiled(_JUMBLED).search(number.encode("latin-1", "replace"))
    )


def detector(region: str) -> Detector:
    """Of the telephone numbers, with those of a region."""
    gates = (r"[0-9][0-9().+/ -]{5,}[0-9]",)
    return Detector("phone", "a telephone number", gates, partial(find, region=region))
