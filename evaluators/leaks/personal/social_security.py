"""United States social security numbers, written with hyphens, or in another way with a label."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import BESIDE, is_something_else, label_pattern, search_by_label
from ragtide.evaluators.leaks.patterns import compile_pattern

_HYPHENED = r"[0-9]{3}-[0-9]{2}-[0-9]{4}"
_TOLD = r"[0-9]{9}|[0-9]{3}[ .][0-9]{2}[ .][0-9]{4}"
_LABELS = r"\bssn|social security|\bss (?:#|no\b|num)|\bss#|\b(?:my|his|her|their|the) social"


def find(shape: ByteText) -> Iterator[Span]:
    """Numbers that the Social Security Administration can have given out: no 000, 666 or 9xx, no 00, no 0000."""
    for match in compile_pattern(_HYPHENED).finditer(shape.data):
        start, end = match.span()
        alone = stands_alone(shape.text, start, end, joints="-.")
        if alone and _given_out(shape.text[start:end]) and not is_something_else(shape, start):
            yield Span(start, end)


def _find_bare(shape: ByteText) -> Iterator[Span]:
    """With blanks, points or nothing between the digits, and a label."""
    for start, end in search_by_label(_LABELS, _TOLD, BESIDE)(shape):
        if _given_out(shape.text[start:end]):
            yield Span(start, end)


def _given_out(number: str) -> bool:
    digits = "".join(filter(str.isdigit, number))
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


_NAME = "a social security number"
DETECTORS: tuple[Detector, ...] = (
    Detector("ssn", _NAME, (r"[0-9]{3}-[0-9]{2}-[0-9]",), find),
    Detector("ssn", _NAME, (rf"(?i:{label_pattern(_LABELS)})",), _find_bare),
)
