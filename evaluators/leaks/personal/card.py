"""Payment card numbers: an issuer's prefix, one of its lengths, and a right check digit."""

from collections.abc import Iterator, Sequence

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import CARD
from ragtide.evaluators.leaks.labels import is_something_else
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.personal.checks import luhn

# First and last prefix, and how long such numbers are (ISO/IEC 7812; the schemes' own published ranges).
_ISSUERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("4", "4", (13, 16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("6011", "6011", (16, 17, 18, 19)),  # Discover
    ("644", "659", (16, 17, 18, 19)),
    ("35", "35", (16, 17, 18, 19)),  # JCB: 3528 to 3589, and all 35 in examples
    ("2131", "2131", (15,)),
    ("1800", "1800", (15,)),
    ("300", "305", (14, 16, 17, 18, 19)),  # Diners Club
    ("3095", "3095", (14, 16, 17, 18, 19)),
    ("36", "36", (14, 15, 16, 17, 18, 19)),
    ("38", "39", (14, 16, 17, 18, 19)),
    ("62", "62", (16, 17, 18, 19)),  # UnionPay
    ("2200", "2204", (16, 17, 18, 19)),  # Mir
    *((prefix, prefix, tuple(range(12, 20))) for prefix in ("5018", "5020", "5038", "5893", "6304")),  # Maestro
    *((prefix, prefix, tuple(range(12, 20))) for prefix in ("6759", "6761", "6762", "6763")),
)
# How the digits are grouped where they are not in one piece.
_GROUPINGS = ((4, 4, 4, 4, 3), (4, 4, 4, 4, 2), (4, 4, 4, 4, 1), (4, 4, 4, 4), (4, 4, 4, 1), (4, 6, 5), (4, 6, 4))
# Shorter numbers in one piece are mostly of articles, longer ones ids: only a label makes them a card's.
_USUAL = range(14, 17)
_LABEL = (
    rf"(?i)(?:\b(?:cards?|visa|mastercard|maestro|amex|cc|pan|payment|credit|debit|kreditkarten?(?:nummer)?|carte|"
    rf"tarjeta|"
    rf"cartao|carta|kaart|karty?)\b|{CARD})[^\n]{{0,24}}$"
)
_ID = r"(?i)\bids?\b[\"']?[ :#=]*$"
_PARCEL = r"(?:^|[^0-9])9[1-5][0-9]{2} $"  # how the 22 digits of the US post's parcels begin
_BEFORE = 40


def find(shape: ByteText) -> Iterator[Span]:
    """Numbers in one piece or grouped as on a card, also within a longer row of numbers."""
    for run in compile_pattern(r"[0-9]+(?:[ -][0-9]+)*").finditer(shape.data):
        if run.end() - run.start() < 12:
            continue
        lengths = [len(group) for group in run[0].replace(b"-", b" ").split(b" ")]
        start, index = run.start(), 0
        while index < len(lengths):
            taken = _card_at(shape, start, lengths[index : index + 5])
            span = sum(lengths[index : index + (taken or 1)]) + (taken or 1)  # a blank or hyphen behind each group
            if taken:
                yield Span(start, start + span - 1)
            start, index = start + span, index + (taken or 1)


def _card_at(shape: ByteText, start: int, lengths: Sequence[int]) -> int:
    """How many of the groups of digits from `start` on make a card number; 0 where none do."""
    first = lengths[0]
    if first != 4 and not 12 <= first <= 19:
        return 0
    for grouping in ((first,),) if first != 4 else _GROUPINGS:
        count = len(grouping)
        if tuple(lengths[:count]) != grouping:
            continue
        end = start + sum(grouping) + count - 1
        digits = shape.text[start:end].replace(" ", "").replace("-", "")
        if stands_alone(shape.text, start, end, joints=".") and _is_meant(shape, start, count, digits):
            return count
    return 0


def _is_meant(shape: ByteText, start: int, count: int, digits: str) -> bool:
    """Whether it is a card's, and no other number that happens to fit."""
    before = shape.data[max(start - _BEFORE, 0) : start]
    if compile_pattern(_PARCEL).search(before):
        return False
    if compile_pattern(_LABEL).search(before):
        return luhn(digits)
    if not is_card(digits):
        return False
    return count > 1 or (
        len(digits) in _USUAL and not is_something_else(shape, start) and not compile_pattern(_ID).search(before)
    )


def is_card(digits: str) -> bool:
    """Whether an issuer gives out such numbers and the check digit is right."""
    for first, last, lengths in _ISSUERS:
        if len(digits) in lengths and first <= digits[: len(first)] <= last:
            return luhn(digits)
    return False


DETECTORS: tuple[Detector, ...] = (
    Detector("card", "a payment card number", (r"[0-9]{4}[ -]?[0-9]{4}", r"[0-9]{4}[ -][0-9]{6}"), find),
)
