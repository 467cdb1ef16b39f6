"""What finds one kind: a name for people, what every text with it holds, and where in a text it stands."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ragtide.evaluators.leaks.byte_text import ByteText, Span

Find = Callable[[ByteText], Iterator[Span]]


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one kind. Each text in which `find` finds something matches one of `gates` (RE2), as short as they can be.

    `name` has its article ("an IBAN"). Spans of one detector do not overlap; `find` takes linear time.
    """

    kind: str
    name: str
    gates: tuple[str, ...]
    find: Find
