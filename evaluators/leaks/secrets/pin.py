"""Personal identification numbers: of a card, a telephone, a door."""

from collections.abc import Iterator

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span, stands_alone
from evaluators.leaks.labels import BESIDE, LED, called, labelled
from evaluators.leaks.patterns import compiled

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
    labelled(_LABELS, r"[0-9]{4,5}", BESIDE),
    labelled(r"\bpin\b", r"[0-9]{4,5}", LED),
    labelled(rf"{_OWN} (?:{_CODE}|pin\b)|geheimzahl", r"[0-9]{6,8}", BESIDE),
)


def find(shape: Formatted) -> Iterator[Span]:
    """Four or five digits behind the word; up to eight where it says whose, or what for."""
    seen: set[int] = set()
    for search in _FOUND:
        for start, end in search(shape):
            longer = compiled(_LONGER).search(shape.data[end : end + 2]) or not stands_alone(shape.text, start, end)
            if start not in seen and not longer:
                seen.add(start)
                yield Span(start, end)


DETECTORS: tuple[Detector, ...] = (
    Detector("password", "a password", (rf"(?i:{called(_LABELS)}|{called('pin')})",), find),
)
