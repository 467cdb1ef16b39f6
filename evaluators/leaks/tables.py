"""Cells of tables, and values of keys, as "head: cell": a column's head is the label of what stands under it."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from evaluators.leaks.formatted import Formatted, Span
from evaluators.leaks.keys import keyed
from evaluators.leaks.patterns import compiled

_SHORTEST_CELL, _LONGEST_HEAD = 6, 48  # characters; shorter cells hold nothing that only a label tells, but for codes
_SHORTEST_CODE = 3  # digits
# The line under a Markdown table's heads, and a line that may be the heads of comma-separated values.
_RULE = r"(?m)^[ >]{0,8}\|?(?: ?:?-{2,}:? ?\|)+(?: ?:?-{2,}:? ?)?\|?[ \r]{0,4}$"
_HEAD = r"[\"']?[A-Za-z\x80-\x8f?][A-Za-z\x80-\x8f?0-9_ .()/#'-]{1,47}[\"']?"
_HEADS = rf"(?m)^(?:> ?)?{_HEAD}(?:[,;\t] ?{_HEAD})+\r?$"
_SEPARATORS = b",;\t"


class Cells(NamedTuple):
    """`text` has a line for each cell; `starts` where each cell stands in it, `places` where in the original."""

    text: str
    starts: Sequence[int]
    places: Sequence[Span]

    def original(self, start: int, end: int) -> Span | None:
        """Where the original has what stands there; None where that is not within one cell."""
        index = bisect_right(self.starts, start) - 1
        if index < 0:
            return None
        place, offset = self.places[index], start - self.starts[index]
        found = Span(place.start + offset, place.start + offset + end - start)
        return found if found.end <= place.end else None


def cells(shape: Formatted) -> Cells | None:
    """Of every table in the text that has heads, and of every key (see `keyed`); None where there are none."""
    under = (*_markdown(shape.data), *_separated(shape.data))
    labelled = [*((shape.text[head.start : head.end], cell) for head, cell in under), *keyed(shape)]
    if not labelled:
        return None
    lines, starts, length = [], [], 0
    for label, cell in labelled:
        lines.append(f"{label}: {shape.text[cell.start : cell.end]}")
        starts.append(length + len(lines[-1]) - (cell.end - cell.start))
        length += len(lines[-1]) + 1
    return Cells("\n".join(lines), starts, [cell for _, cell in labelled])


def _markdown(data: bytes) -> Iterator[tuple[Span, Span]]:
    end = 0
    for rule in compiled(_RULE).finditer(data):
        if rule.start() < end:
            continue
        first = data.rfind(b"\n", 0, max(rule.start() - 1, 0)) + 1
        heads = Span(first, max(rule.start() - 1, first))
        rows = _rows(data, heads, rule.end() + 1, b"|")
        end = rows[-1].end if rows else rule.end()
        yield from _under(data, heads, rows, b"|")


def _separated(data: bytes) -> Iterator[tuple[Span, Span]]:
    end = 0
    for match in compiled(_HEADS).finditer(data):
        if match.start() < end:
            continue
        separator = next(bytes([sign]) for sign in _SEPARATORS if sign in match[0])
        heads = Span(*match.span())
        rows = _rows(data, heads, match.end() + 1, separator)
        end = rows[-1].end if rows else match.end()
        yield from _under(data, heads, rows, separator)


def _rows(data: bytes, heads: Span, start: int, separator: bytes) -> list[Span]:
    """The lines from there on that have as many separators as the heads."""
    rows: list[Span] = []
    count = data.count(separator, heads.start, heads.end)
    while count and start < len(data):
        end = data.find(b"\n", start)
        row = Span(start, end if end >= 0 else len(data))
        if data.count(separator, row.start, row.end) != count:
            break
        rows.append(row)
        start = row.end + 1
    return rows


def _under(data: bytes, heads: Span, rows: Sequence[Span], separator: bytes) -> Iterator[tuple[Span, Span]]:
    """Each cell that may hold something, with its head."""
    columns = _parted(data, heads, separator)
    for row in rows:
        for head, cell in zip(columns, _parted(data, row, separator), strict=True):
            if 0 < head.end - head.start <= _LONGEST_HEAD and _may_tell(data[cell.start : cell.end]):
                yield head, cell


def _may_tell(cell: bytes) -> bool:
    """Whether it is long enough for what only a label tells."""
    return len(cell) >= _SHORTEST_CELL or (len(cell) >= _SHORTEST_CODE and cell.isdigit())


def _parted(data: bytes, line: Span, separator: bytes) -> list[Span]:
    """The places between the separators, without blanks around them."""
    parts, start = [], line.start
    for part in data[line.start : line.end].split(separator):
        bare = part.strip()
        first = start + len(part) - len(part.lstrip()) if bare else start
        parts.append(Span(first, first + len(bare)))
        start += len(part) + 1
    return parts
