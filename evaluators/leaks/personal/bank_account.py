"""International bank account numbers with their country's length and right check digits."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, continues_word
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.personal.number_detectors import number_near_label

# Characters of an IBAN by country (SWIFT's IBAN registry).
_LENGTHS: dict[str, int] = {
    country: length
    for length, countries in {
        15: "NO",
        16: "BE",
        18: "DK FI FK FO GL NL SD",
        19: "MK SI",
        20: "AT BA EE KZ LT LU MN XK",
        21: "CH HR LI LV",
        22: "BG BH CR DE GB GE IE ME RS VA",
        23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG",
        25: "LY PT ST",
        26: "IS TR",
        27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV",
        29: "BR EG PS QA UA",
        30: "JO KW MU YE",
        31: "MT SC",
        32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}


_HEAD = r"(?i)[A-Z][A-Z][0-9][0-9][ -]?[A-Z0-9]"


def find(shape: ByteText) -> Iterator[Span]:
    """Numbers in one piece or with single blanks or hyphens between their groups."""
    text = shape.text
    for head in compile_pattern(_HEAD).finditer(shape.data):
        start = head.start()
        length = _LENGTHS.get(text[start : start + 2].upper())
        if length is None or (start and continues_word(text[start - 1])):
            continue
        end = _end(text, start, length)
        if end and is_iban(text[start:end].replace(" ", "").replace("-", "").upper()):
            yield Span(start, end)


def _end(text: str, start: int, length: int) -> int:
    """Where `length` letters and digits from `start` on end, single blanks between them; 0 where they do not."""
    position, count = start, 0
    while count < length and position < len(text):
        character = text[position]
        if character.isascii() and character.isalnum():
            count += 1
        elif character not in " -" or text[position - 1] in " -":
            return 0
        position += 1
    alone = position == len(text) or not continues_word(text[position])
    return position if count == length and alone else 0


def is_iban(text: str) -> bool:
    """Whether length and check digits are right (ISO 13616: the rearranged number leaves 1 modulo 97)."""
    if len(text) != _LENGTHS.get(text[:2]):
        return False
    return _checks(text)


def _checks(text: str) -> bool:
    digits = "".join(str(int(character, 36)) for character in text[4:] + text[:4])
    return int(digits) % 97 == 1


DETECTORS: tuple[Detector, ...] = (
    Detector("iban", "an IBAN", (_HEAD,), find),
    number_near_label("iban", "an IBAN", r"\biban\b", r"[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]{1,4}){3,8}", _checks),
)
