"""Personal identification numbers: of a card, a telephone, a door."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.labels import BESIDE, LED, label_pattern, search_by_label
from ragtide.evaluators.leaks.patterns import compile_pattern

_OWN = (
    r"(?:my|your|his|her|their|card|atm|bank|debit|credit|sim|new|login|account|security|mobile|phone|app|door|gate|"
    r"alarm|"
    r"voicemail|entry|unlock|temporary|secret|codigo|codice|code|kod)"
)
_CAPITAL = r"(?-i:\bPIN\b)"
_CODE = r"\bpin ?(?:code|kod|number|nummer|numero|no)\b|geheimzahl"
_PLACES = r"(?:door|gate|alarm|safe|entry|lock|garage|keypad|lock ?box|elevator) (?:pass)?code"
_LABELS = rf"{_PLACES}|{_CAPITAL}|{_CODE}|{_OWN} pin\b"
_LONGER = r"^[-.,/:][0-9A-Za-z]"  # 1234.5, 1234-5678
# Pins of parts have numbers, too, and of six digits is the code that India's post has: nobody's own.
_FOUND = (
    search_by_label(_LABELS, r"[0-9]{4,5}", BESIDE),
    search_by_label(r"\bpin\b", r"[0-9]{4,5}", LED),
    search_by_label(rf"{_OWN} (?:{_CODE}|pin\b)|geheimzahl", r"[0-9]{6,8}", BESIDE),
)


def find(shape: ByteText) -> Iterator[Span]:
    """Four or five digits behind the word; up to eight where it says whose, or what for."""
    seen: set[int] = set()
    for search in _FOUND:
        for start, end in search(shape):
            longer = compile_pattern(_LONGER).search(shape.data[end : end + 2]) or not stands_alone(
                shape.text, start, end
            )
            if start not in seen and not longer:
                seen.add(start)
                yield Span(start, end)


DETECTORS: tuple[Detector, ...] = (
    Detector("password", "a password", (rf"(?i:{label_pattern(_LABELS)}|{label_pattern('pin')})",), find),
)
