"""Machine-readable zones of passports, identity cards and visas (ICAO 9303)."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

# The name is in one line; number, nationality, date of birth, sex and expiry are in another.
_FIRST_LINE = r"\b[PIACV][A-Z<][A-Z]{3}[A-Z]{1,30}<<?[A-Z<]{9,39}"
_DATA_LINE = r"\b[A-Z0-9<]{9}[0-9][A-Z<]{3}[0-9]{7}[MFX<][0-9]{7}[A-Z0-9<]{3,16}"


def find(shape: ByteText) -> Iterator[Span]:
    """Each such line of one."""
    for match in compile_pattern(rf"{_FIRST_LINE}|{_DATA_LINE}").finditer(shape.data):
        if b"<<" in match[0]:
            yield Span(*match.span())


DETECTORS: tuple[Detector, ...] = (Detector("passport", "a machine-readable document", (r"<<",), find),)
