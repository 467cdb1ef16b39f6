"""Activation keys of Windows and other products: five groups of five letters and digits."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_SHAPE = r"\b[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}\b"
_FEW = 6  # different characters; fewer are a filler


def _find(shape: ByteText) -> Iterator[Span]:
    for match in compile_pattern(_SHAPE).finditer(shape.data):
        start, end = match.span()
        text = shape.text[start:end]
        mixed = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
        if mixed and len(set(text)) > _FEW and stands_alone(shape.text, start, end, "-"):
            yield Span(start, end)


DETECTORS: tuple[Detector, ...] = (
    Detector("windows_key", "a product activation key", (r"[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}-",), _find),
)
