"""Rewrites values that are apart from their labels as "label: value": cells of tables, fields of records, answers."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from ragtide.evaluators.leaks.answers import find_answers
from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.keys import find_keys
from ragtide.evaluators.leaks.records import fields
from ragtide.evaluators.leaks.tables import labelled_cells

# Characters of all lines. A label is repeated for each of its values: lines can be 300 times as long as the text.
LONGEST = 1_000_000


class LabelLines(NamedTuple):
    """`text` has a line for each value. `starts` are the places of values in it, `places` those in the original.

    `complete` is False if the lines would exceed `LONGEST`: later values are missing.
    """

    text: str
    starts: Sequence[int]
    places: Sequence[Span]
    complete: bool

    def original(self, start: int, end: int) -> Span | None:
        """Map offsets to the original. None if they are not within one value."""
        index = bisect_right(self.starts, start) - 1
        if index < 0:
            return None
        place, offset = self.places[index], start - self.starts[index]
        found = Span(place.start + offset, place.start + offset + end - start)
        return found if found.end <= place.end else None


def label_lines(shape: ByteText) -> LabelLines | None:
    """Collect the lines of the whole text. None if there are none."""
    lines: list[str] = []
    starts: list[int] = []
    places: list[Span] = []
    length = 0
    complete = True
    for label, value in _label_value_pairs(shape):
        line = f"{label}: {shape.text[value.start : value.end]}"
        if length + len(line) > LONGEST:
            complete = False
            break
        lines.append(line)
        starts.append(length + len(line) - (value.end - value.start))
        places.append(value)
        length += len(line) + 1
    return LabelLines("\n".join(lines), starts, places, complete) if lines or not complete else None


def _label_value_pairs(shape: ByteText) -> Iterator[tuple[str, Span]]:
    for label, value in chain(labelled_cells(shape.data), fields(shape.data), find_answers(shape)):
        yield shape.text[label.start : label.end], value
    yield from find_keys(shape)
