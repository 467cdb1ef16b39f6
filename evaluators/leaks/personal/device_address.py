"""Network addresses of devices (MAC, EUI-48): six pairs of hexadecimal digits, or three groups of four with a label."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern
from ragtide.evaluators.leaks.personal.number_detectors import any_number, number_near_label

_PAIRS = r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}"
_GROUPS = r"[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}|[0-9A-F]{4}\.[0-9A-F]{4}\.[0-9A-F]{4}"
_LABELS = r"\bmac\b|hardware addr|ethernet addr|physical addr|\bbssid\b|hwaddr|bluetooth addr|\bether\b"
_FEW = 3  # different characters with the separator; fewer are everyone's (ff:ff:...) or nobody's (00:00:...)


def find(shape: ByteText) -> Iterator[Span]:
    """Six pairs or three groups and no more (a fingerprint has more), a letter in them (a date and time has none)."""
    for match in compile_pattern(_PAIRS).finditer(shape.data):
        start, end = match.span()
        address = shape.text[start:end]
        if len(set(address)) >= _FEW and any(map(str.isalpha, address)) and stands_alone(shape.text, start, end, ":-"):
            yield Span(start, end)
    for match in compile_pattern(_GROUPS).finditer(shape.data):
        start, end = match.span()
        address = shape.text[start:end]
        mixed = any(map(str.isalpha, address)) and sum(map(str.isdigit, address)) >= _FEW
        if mixed and stands_alone(shape.text, start, end, ".-"):
            yield Span(start, end)


_NAME = "a device's network address"
DETECTORS: tuple[Detector, ...] = (
    Detector(
        "mac", _NAME, (r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", r"\b(?:[0-9A-Fa-f]{4}\.){2}[0-9A-Fa-f]{4}"), find
    ),
    number_near_label(
        "mac", _NAME, _LABELS, rf"{_PAIRS}|(?:[0-9A-Fa-f]{{4}}\.){{2}}[0-9A-Fa-f]{{4}}|[0-9A-Fa-f]{{12}}", any_number
    ),
)
