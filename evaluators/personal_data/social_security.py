"""United States social security numbers, written with hyphens or blanks."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from evaluators.personal_data.formatted import Formatted, Span, stands_alone


@lru_cache(maxsize=1)
def _pattern() -> Any:
    import re2

    return re2.compile(rb"([0-9]{3})(?:-([0-9]{2})-| ([0-9]{2}) )([0-9]{4})")


def find(shape: Formatted) -> Iterator[Span]:
    """Numbers that the Social Security Administration can have given out: no 000, 666 or 9xx, no 00, no 0000."""
    for match in _pattern().finditer(shape.data):
        area, group, serial = match[1], match[2] or match[3], match[4]
        given_out = area not in (b"000", b"666") and area < b"900" and group != b"00" and serial != b"0000"
        if given_out and stands_alone(shape.text, match.start(), match.end(), joints="-."):
            yield Span(match.start(), match.end())
