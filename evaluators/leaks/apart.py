"""Values that do not stand beside their labels, as "label: value": cells of tables, fields of records, answers."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from evaluators.leaks.answers import answered
from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.keys import keyed
from evaluators.leaks.records import fields
from evaluators.leaks.tables import under_heads


class Apart(NamedTuple):
    """`text` has a line for each value; `starts` where each stands in it, `places` where in the original."""

    text: str
    starts: Sequence[int]
    places: Sequence[Span]

    def original(self, start: int, end: int) -> Span | None:
        """Where the original has what stands there; None where that is not within one value."""
        index = bisect_right(self.starts, start) - 1
        if index < 0:
            return None
        place, offset = self.places[index], start - self.starts[index]
        found = Span(place.start + offset, place.start + offset + end - start)
        return found if found.end <= place.end else None


def apart(shape: Formatted) -> Apart | None:
    """Of the whole text; None where there are none."""
    labelled = list(_labelled(shape))
    if not labelled:
        return None
    lines, starts, length = [], [], 0
    for label, value in labelled:
        lines.append(f"{label}: {shape.text[value.start : value.end]}")
        starts.append(length + len(lines[-1]) - (value.end - value.start))
        length += len(lines[-1]) + 1
    return Apart("\n".join(lines), starts, [value for _, value in labelled])


def _labelled(shape: Formatted) -> Iterator[tuple[str, Span]]:
    for label, value in chain(under_heads(shape.data), fields(shape.data), answered(shape)):
        yield shape.text[label.start : label.end], value
    yield from keyed(shape)
