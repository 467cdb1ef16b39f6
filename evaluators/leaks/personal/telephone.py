"""Telephone numbers: international ones with "+", one country's as people there write them, and those called so."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import PHONE
from ragtide.evaluators.leaks.labels import BESIDE, is_counted, is_something_else, label_behind_pattern, label_pattern
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.personal.numbering import NumberingPlans, reads_as_date
from ragtide.evaluators.leaks.personal.telephone_words import find_by_words

_DIGITS = 7  # shorter numbers are anything
_DIALLED_ABROAD = 12  # digits behind 00, at least
_LONGEST_GROUP = 6
_MISDIALLED_GROUPS = 3  # more are a number also where no country has such long ones: people mistype and invent
_GROUPS = 8  # a longer row without "+" or "(" is a table of numbers

_RUN = r"[+(]*[0-9][0-9 ()./+-]*[0-9]"
_INTERNATIONAL = (
    r"\(\+[1-9][0-9]{0,2}\) ?[0-9][0-9 ()./-]{4,20}[0-9]|\+[1-9(][0-9 ()./-]{6,22}[0-9]|\b00[1-9][0-9 /-]{6,22}[0-9]"
)
_IN_QUERY = r"%2[Bb]([1-9][0-9]{7,14})\b"  # with its "+" as URLs have it
# Area code, exchange and line of North America. 555 is nobody's area code, and in every example.
_NORTH_AMERICAN = (
    r"(?:\b1[ .-])?(?:\([2-9][0-9]{2}\)[ .-]?[0-9]{3}[ .-][0-9]{4}|"
    r"\b[1-9][0-9]{2}-[0-9]{3}-[0-9]{4}|\b[2-9][0-9]{2}\.[2-9][0-9]{2}\.[0-9]{4})"
)
# Brazil's and Turkey's area codes in brackets, and Russia's 8 for calls within the country.
_BRACKETED = (
    r"\([1-9][0-9]\) ?9?[0-9]{4}-[0-9]{4}\b|"
    r"\b0 ?\([1-9][0-9]{2}\) ?[0-9]{3} [0-9]{2} ?[0-9]{2}\b|"
    r"\b8[ -]?\([0-9]{3,5}\)[ -]?[0-9]{1,3}[ -][0-9]{2}[ -]?[0-9]{2}\b"
)
_EXTENSION = r"(?i)^ ?(?:x|ext\.?|#) ?[0-9]{1,6}\b"
_EXTENDED = 14  # characters of it
_TRUNK = (
    r"\b0[1-9][0-9]{0,3}(?:(?:[ ./-]| - )[0-9]{2,8}){1,4}\b|\(0[0-9]{1,5}\)[ -]?[0-9]{2,5}(?:[ -]?[0-9]{2,5}){1,3}\b"
)
_TRUNK_DIGITS = range(10, 14)
# What a telephone is called, as spelt without accents; Greek letter by letter.
_END = r"(?:\b|_|(?-i:[NP]))"  # phone, phone_number, phoneNumber, mobilePhone
_CALLED = (
    rf"(?:tele)?phones?{_END}|\btel{_END}|mobiles?{_END}|\bcell(?:phone|ular(?:e|i)?)?\b|\bfax\b|whats ?app|viber|"
    r"hotlin[a-z]*|\bsms\b|msisdn|cep tel[a-z]*|\bcep (?:no|numar[a-z]*)|telpon|"
    r"telefo+n[a-z]*|\bkom(?:orka)?\b\.?|\bph\b|ruckruf(?:nummer)?(?: unter)?|direct (?:line|dial)|durchwahl|"
    r"telephon[a-z]*|"
    r"movil\b|\bcel\b\.?|celular|handy(?:nummer|nr)?\b|festnetz(?:nummer|nr)?\b|mobiele?\b|mobi+l(?:szam|telefon)|"
    r"mobil'?n[a-z]{2,3}\b|"
    r"rufnummer|mobil(?:nummer|telefon|ni|nr|ne|e)?\b|"
    r"landline|voicemail|telemovel|\bfono\b|\bgsm\b|\btlf\b|\btfno?\b|portable\b|fixe\b|komork[a-z]{1,5}|mobitel|"
    r"matkapuhelin|puh(?:elin[a-z]*)?\b|talr(?:un[a-z]{1,3})?\b|uimhir f.{0,2}in|guthan|mowbajl|\bfone\b|\bsdt\b|"
    r"telepon|\btelp\b|kannykka|kinhto|thl(?:efon[a-z]{1,2})?\b|nomor (?:hp|wa)|no\.? wa\b|numero de contac?to|"
    r"recapito|(?:contact|home|work|office) phone|no\.? hp|handphone|"
    r"call ?back\b|emergency contact|(?:contact|emergency|my|mon|mi|mio|meu) (?:number|numero|no\.?)|"
    r"so dien thoai|dien thoai|\bmob\b|vezetekes|gsm"
)
_LETTERED = r"(?-i:\b(?:HP|Ph|PH|M|T|Tf|P)\b)[ .]?:"  # "HP: ...", not the maker of printers
_PART_OF_NAME = (
    r"(?:[ _-](?:phone|cell|mobile|mobil|movil|celular|portable|fixe|komorkowy|bimbit|work|home|office|contact|"
    r"direct|line|"
    r"cellulare|fisso|celulares|telefono|telefonu|telefon|gsm|fax|whatsapp|klient[a-z]{1,3}|pacjent[a-z]{1,3}))?"
)
# Whose it is: "phone: Maria Lopez 612 84 93 27", "emergency contact: Dr. Paul, ...".
_OWNER = (
    r"(?: ?[:,(-] ?(?:(?:Mrs?|Ms|Dr|Herr|Frau|Mme|Sra?|Sig)\.? )?[A-Z][a-z]{1,15}(?: [A-Z][a-z]{1,15}){0,2}\)?|"
    r" [A-Z][a-z]{1,15}(?: [A-Z][a-z]{1,15}){1,2}:)?"
)
_ASKED = (
    r"\b(?:(?:call|whats ?app|dial|ring|reach|text|phone|contact|message)(?:ed|ing)?|llam(?:a|e|ar|an)(?:me|nos|le|"
    r"la|lo)? al|"
    r"llam(?:a|e)(?:me|nos)|appelez(?: moi| nous)?|joindre|chiam(?:a|i|are)(?:mi|ci|lo|la)|"
    r"lig(?:ue|ar) (?:para|no)|"
    r"bel(?:len)? (?:mij|ons|naar|op)|dzwonic|zadzwon|ruf(?:en)? (?:sie|mich|uns)|erreichbar|"
    r"llam(?:a|e|ar|an|en) a|bellen|(?:za)?vol(?:ejte|at)|pozvonit[ae]?|(?:po)?zvonit(?:e|')|tra?e?ffes pa|tre?ffes pa|"
    r"ringe? (?:til|pa)|(?:nas|trad) pa|soita(?:a|kaa)?|hivja|hivhato|arayin(?:iz)?|sunati|dzvonit')"
)
_WRITTEN = r"\+?\(?[0-9][0-9 ()./-]{5,18}[0-9]"
_LEADING, _SIGNED = frozenset(b".:=>\"'|*"), 3  # signs, and how far before the number
_BARE_DIGITS = 9  # without a sign before them: of "a handy 1234567" none is called
_LABELLED = (
    rf"(?:(?i:{label_pattern(_CALLED)}{_PART_OF_NAME}){_OWNER}(?i:{BESIDE})|"
    rf"{_LETTERED}[ *]{{0,3}}|{PHONE}[^0-9+(\n]{{0,12}}?|"
    rf"(?i:({_ASKED})(?: (?:me|us|him|her|them|at|on|my|our|the|number|cell|"
    r"mobile|line|back|support|now|today|or|is|al|au|op|pod|numer|numero|unter|para|no|mij|pa|mig|meg|sie|uns|mich|"
    r"nous|"
    r"[A-Z][a-z]{1,12})){0,4}[ :]{1,2}))"
    rf"({_WRITTEN})"
)
_CALLED_BEHIND = (
    r"\b(0[0-9]{8,11}|[2-9][0-9]{9}) ?"
    r"\((?i:mobile|cell|phone|tel|fax|whatsapp|home|work|office|mobil|handy|movil|portable)\b"
)
_NAMED_BEHIND = rf"({_WRITTEN})(?i:{label_behind_pattern(_CALLED)})"
_MOST_DIGITS = 15  # E.164
_ASKED_DIGITS = 10  # of "reach 1000000 people" none is called
_JUMBLED = r"\). ?|\. |\..*-|-.*\."  # pp. 226-231. 1996; clause 252.227-7013
_RESULT = r"^ ?= ?-?[0-9]"  # what stands before it was a sum
_DIGITS_APART = bytes(code if chr(code).isdigit() and code < 128 else 32 for code in range(256))
_NOUGHTS = r"(?:[ .,]?000){2,}$"


def find(shape: ByteText, regions: Sequence[str]) -> Iterator[Span]:
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
        find_by_words(shape, plans),
        _grouped(shape, regions, taken, plans),
    )
    for spans in ways:
        for start, end in spans:
            if 1 not in taken[start:end]:
                taken[start:end] = b"\x01" * (end - start)
                yield Span(start, end)


def _international(shape: ByteText, plans: NumberingPlans) -> Iterator[Span]:
    """With "+" or 00 and a country's code, the latter grouped."""
    text = shape.text
    for match in compile_pattern(_INTERNATIONAL).finditer(shape.data):
        start, end = match.start(), _with_extension(shape, match.end())
        number = text[start : match.end()]
        dialled = number[0] == "0"
        if dialled and (number.isdigit() or sum(map(str.isdigit, number)) < _DIALLED_ABROAD):
            continue
        if dialled and is_something_else(shape, start):
            continue
        if compile_pattern(_NOUGHTS).search(match[0]) or not stands_alone(
            text, start, end, "-/" if number[0] == "+" else "-/."
        ):
            continue
        grouped = (
            number[0] == "+"
            and len(number.split()) > _MISDIALLED_GROUPS
            and sum(map(str.isdigit, number)) >= _ASKED_DIGITS
        )
        if grouped or plans.possible("+" + number.lstrip("(+0 ")):
            yield Span(start, end)
    for match in compile_pattern(_IN_QUERY).finditer(shape.data):
        if plans.possible("+" + match[1].decode("latin-1")):
            yield Span(*match.span(1))


def _bracketed(shape: ByteText) -> Iterator[Span]:
    """Three, three and four digits with brackets, hyphens or points between them, and other area codes in brackets."""
    for match in compile_pattern(rf"{_NORTH_AMERICAN}|{_BRACKETED}").finditer(shape.data):
        start, end = match.start(), _with_extension(shape, match.end())
        if stands_alone(shape.text, start, end, "-./") and not is_something_else(shape, start):
            yield Span(start, end)


def _labelled(shape: ByteText) -> Iterator[Span]:
    """What the words before call a telephone number, however it is written."""
    for match in compile_pattern(_LABELLED).finditer(shape.data):
        start, end = match.start(2), _with_extension(shape, match.end(2))
        number = match[2].decode("latin-1")
        digits = sum(map(str.isdigit, number))
        if not _enough(shape, match) <= digits <= _MOST_DIGITS or not stands_alone(shape.text, start, end):
            continue
        if reads_as_date(match[2]) or is_counted(shape, start, match.end(2)) or is_something_else(shape, start):
            continue
        yield Span(start, end)
    yield from _called_behind(shape)


def _called_behind(shape: ByteText) -> Iterator[Span]:
    """What the words behind call a telephone number."""
    for match in compile_pattern(_CALLED_BEHIND).finditer(shape.data):
        if stands_alone(shape.text, match.start(1), match.end(1), "-."):
            yield Span(*match.span(1))
    for match in compile_pattern(_NAMED_BEHIND).finditer(shape.data):
        enough = _BARE_DIGITS <= sum(map(str.isdigit, match[1].decode("latin-1"))) <= _MOST_DIGITS
        if enough and not reads_as_date(match[1]) and stands_alone(shape.text, match.start(1), match.end(1)):
            yield Span(*match.span(1))


def _enough(shape: ByteText, match: Any) -> int:
    """How many digits a number must have that is called so: more where they are bare and no sign leads to them."""
    number, start = match[2], match.start(2)
    if not number.isdigit():
        return _DIGITS
    if match[1] is not None:
        return _ASKED_DIGITS
    signed = not _LEADING.isdisjoint(shape.data[max(start - _SIGNED, 0) : start])
    return _DIGITS if signed or number[:1] == b"0" else _BARE_DIGITS


def _trunk(shape: ByteText, plans: NumberingPlans) -> Iterator[Span]:
    """Grouped, with the leading 0 of calls within a country."""
    for match in compile_pattern(_TRUNK).finditer(shape.data):
        start, end = match.span()
        digits = sum(map(str.isdigit, shape.text[start:end]))
        if digits not in _TRUNK_DIGITS or reads_as_date(match[0]) or not _stands_apart(shape, start, end):
            continue
        if not is_something_else(shape, start) and plans.valid_at_home(shape.text[start:end]):
            yield Span(start, end)


def _stands_apart(shape: ByteText, start: int, end: int) -> bool:
    """Whether it is no part of a row of numbers: 9 223 372 036 854, or lottery numbers."""
    before, after = shape.data[max(start - 2, 0) : start], shape.data[end : end + 2]
    in_row = (before[1:] == b" " and before[:1].isdigit()) or (after[:1] == b" " and after[1:].isdigit())
    return not in_row and stands_alone(shape.text, start, end, "-./")


def _grouped(shape: ByteText, regions: Sequence[str], taken: bytearray, plans: NumberingPlans) -> Iterator[Span]:
    """Numbers that are valid in one of the regions, grouped as there."""
    from phonenumbers import Leniency, PhoneNumberMatcher

    text = shape.text
    for run in compile_pattern(_RUN).finditer(shape.data):
        start, end = run.span()
        groups = run[0].translate(_DIGITS_APART).split()
        if sum(map(len, groups)) < _DIGITS or 1 in taken[start:end]:
            continue
        marked = b"+" in run[0] or b"(" in run[0]
        if not marked and (not 1 < len(groups) <= _GROUPS or compile_pattern(r"[0-9]+\.[0-9]+").fullmatch(run[0])):
            continue
        if reads_as_date(run[0]):
            continue
        # One character before and three after: "ISBN978..." and "2023-10-12 14:30" are told by them.
        first = max(start - 1, 0)
        for region in regions:
            plans.spend(1 + len(groups) // _GROUPS)
            for match in PhoneNumberMatcher(text[first : end + 3], region, leniency=Leniency.STRICT_GROUPING):
                start, after = first + match.start, shape.data[first + match.end : first + match.end + _EXTENDED]
                reckoned = compile_pattern(_RESULT).search(after) is not None
                if _is_written_as_one(match.raw_string) and not reckoned and not is_something_else(shape, start):
                    yield Span(start, first + match.end)


def _with_extension(shape: ByteText, end: int) -> int:
    extension = compile_pattern(_EXTENSION).search(shape.data[end : end + _EXTENDED])
    return end + int(extension.end()) if extension else end


def _is_written_as_one(number: str) -> bool:
    """Whether it starts with "+" or has its digits grouped; 2147483648 has neither, nor has the sum a + 2784375."""
    if number[0] == "+":
        return number[1] != " "
    groups = compile_pattern(r"[0-9]+").findall(number.encode("latin-1", "replace"))
    return (
        len(groups) > 1
        and max(map(len, groups)) <= _LONGEST_GROUP
        and not compile_pattern(_JUMBLED).search(number.encode("latin-1", "replace"))
    )


def detector(regions: Sequence[str]) -> Detector:
    """Of the telephone numbers, with those of some regions."""
    gates = (r"[0-9][0-9().+/ -]{5,}[0-9]",)
    return Detector("phone", "a telephone number", gates, partial(find, regions=regions))
