"""Payment card numbers: an issuer's prefix, one of its lengths, and a right check digit."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from evaluators.personal_data.formatted import Formatted, Span, stands_alone

# First and last prefix, and how long such numbers are (ISO/IEC 7812; the schemes' own published ranges).
_ISSUERS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("4", "4", (13, 16, 19)),  # Visa
    ("51", "55", (16,)),  # Mastercard
    ("2221", "2720", (16,)),
    ("34", "34", (15,)),  # American Express
    ("37", "37", (15,)),
    ("6011", "6011", (16, 17, 18, 19)),  # Discover
    ("644", "659", (16, 17, 18, 19)),
    ("3528", "3589", (16, 17, 18, 19)),  # JCB
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
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)


@lru_cache(maxsize=1)
def _digit_runs() -> Any:
    import re2

    return re2.compile(rb"[0-9]+(?:[ -][0-9]+)*")


@lru_cache(maxsize=1)
def _groups() -> Any:
    import re2

    return re2.compile(rb"[0-9]+")


def find(shape: Formatted) -> Iterator[Span]:
    """Numbers in one piece or grouped as on a card, also within a longer row of numbers."""
    for run in _digit_runs().finditer(shape.data):
        if run.end() - run.start() < 12:
            continue
        groups = [Span(group.start(), group.end()) for group in _groups().finditer(shape.data, run.start(), run.end())]
        index = 0
        while index < len(groups):
            taken = _card_at(shape, groups, index)
            if taken:
                yield Span(groups[index].start, groups[index + taken - 1].end)
            index += taken or 1


def _card_at(shape: Formatted, groups: list[Span], index: int) -> int:
    """How many groups from `index` on make a card number; 0 where none do."""
    lengths = tuple(group.end - group.start for group in groups[index : index + 5])
    whole = ((lengths[0],),) if 12 <= lengths[0] <= 19 else ()
    for grouping in whole or _GROUPINGS:
        count = len(grouping)
        if lengths[:count] != grouping:
            continue
        start, end = groups[index].start, groups[index + count - 1].end
        digits = shape.text[start:end].replace(" ", "").replace("-", "")
        if is_card(digits) and stands_alone(shape.text, start, end, joints="."):
            return count
    return 0


def is_card(digits: str) -> bool:
    """Whether an issuer gives out such numbers and the check digit is right."""
    for first, last, lengths in _ISSUERS:
        if len(digits) in lengths and first <= digits[: len(first)] <= last:
            return luhn(digits)
    return False


def luhn(digits: str) -> bool:
    """Whether the last digit checks the others (ISO/IEC 7812-1, annex B)."""
    values = [int(digit) for digit in reversed(digits)]
    return (sum(values[::2]) + sum(_DOUBLED[value] for value in values[1::2])) % 10 == 0
