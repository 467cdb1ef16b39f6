"""The type of all detectors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ragtide.evaluators.leaks.byte_text import ByteText, Span

Find = Callable[[ByteText], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one kind of value.

    Every text with a finding matches one of `gates` (RE2), which are as short as possible. `name` has its article ("an
    IBAN"). Spans of one detector do not overlap. `find` takes linear time.
    """

    kind: str
    name: str
    gates: tuple[str, ...]
    find: Find
