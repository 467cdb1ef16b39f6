"""Cells of tables with headers: the header of a column is the label of its cells."""

from collections.abc import Generator, Iterator

from ragtide.evaluators.leaks.byte_text import Span
from ragtide.evaluators.leaks.patterns import compile_pattern

_SHORTEST_CELL, _LONGEST_HEAD = 6, 48  # characters; shorter cells hold nothing that only a label tells, but for codes
_SHORTEST_CODE = 3  # digits
# The line under the heads of a Markdown table, and one that may be the heads of separated values or of columns.
_MARKDOWN_RULE = r"(?m)^[ >]{0,8}\|?(?: ?:?-{2,}:? ?\|)+(?: ?:?-{2,}:? ?)?\|?[ \r]{0,4}$"
_LETTER = r"[A-Za-z\x80-\x8f?]"
_HEAD = rf"[\"']?{_LETTER}[A-Za-z\x80-\x8f?0-9_ .()/#'-]{{1,47}}[\"']?"
_HEADS = rf"(?m)^[>|]?[ \t]{{0,4}}{_HEAD}(?:[,;\t|] ?{_HEAD})+[ |]{{0,4}}\r?$"
_WORD = rf"{_LETTER}[A-Za-z\x80-\x8f?0-9_.()/#'-]{{0,24}}"
_ALIGNED_HEADS = rf"(?m)^ {{0,8}}{_WORD}(?: {_WORD}){{0,3}}(?: {{2,40}}{_WORD}(?: {_WORD}){{0,3}})+ {{0,40}}\r?$"
_RULE_SIGNS = b"-+=|: \r"  # what a line between rows may be made of
_SEPARATORS = b",;\t|"
_COLUMN = r"[^ \r]+(?: [^ \r]+)*"  # a cell where blanks part them


def labelled_cells(data: bytes) -> Iterator[tuple[Span, Span]]:
    """Yield each cell that may hold a value, of every table with headers, with its header."""
    if b"\n" not in data:
        return
    marked: set[int] = set()
    if b"--" in data:
        end = 0
        for rule in compile_pattern(_MARKDOWN_RULE).finditer(data):
            if rule.start() >= end:
                first = data.rfind(b"\n", 0, max(rule.start() - 1, 0)) + 1
                heads = Span(first, max(rule.start() - 1, first))
                marked.add(first)
                end = yield from _cells_under(data, heads, rule.end() + 1, b"|")
    for pattern in (_HEADS, _ALIGNED_HEADS) if b"  " in data else (_HEADS,):
        end = 0
        for match in compile_pattern(pattern).finditer(data):
            if match.start() >= end and match.start() not in marked:
                separator = next((bytes([sign]) for sign in _SEPARATORS if sign in match[0]), b"")
                end = yield from _cells_under(data, Span(*match.span()), match.end() + 1, separator)


def _cells_under(data: bytes, heads: Span, start: int, separator: bytes) -> Generator[tuple[Span, Span], None, int]:
    """Yield the cells of the lines from `start` with as many cells as headers. Returns their end."""
    columns = _split_line(data, heads, separator)
    end = start
    while len(columns) > 1 and start < len(data):
        found = data.find(b"\n", start)
        line = Span(start, found if found >= 0 else len(data))
        start = line.end + 1
        if not data[line.start : line.end].strip(_RULE_SIGNS):
            if line.end > line.start:
                continue
            break
        row = _split_line(data, line, separator)
        if len(row) != len(columns):
            break
        for head, cell in zip(columns, row, strict=True):
            if 0 < head.end - head.start <= _LONGEST_HEAD and _may_be_value(data[cell.start : cell.end]):
                yield head, cell
        end = start
    return end


def _may_be_value(cell: bytes) -> bool:
    """Whether it is long enough for a labelled value, and not words only."""
    if len(cell) < _SHORTEST_CELL:
        return len(cell) >= _SHORTEST_CODE and cell.isdigit()
    return b" " not in cell or len(cell.translate(None, b"0123456789")) < len(cell)


def _split_line(data: bytes, line: Span, separator: bytes) -> list[Span]:
    """Return the places between separators, or between wide blanks, without blanks and quotes."""
    text = data[line.start : line.end]
    if not separator:
        found = compile_pattern(_COLUMN).finditer(text)
        return [Span(line.start + cell.start(), line.start + cell.end()) for cell in found]
    parts, start = [], line.start
    for part in _cells(text, separator):
        bare = part.strip()
        bare = bare[1:-1] if len(bare) > 1 and bare[:1] == bare[-1:] == b'"' else bare
        first = start + part.find(bare) if bare else start
        parts.append(Span(first, first + len(bare)))
        start += len(part) + 1
    return parts


def _cells(text: bytes, separator: bytes) -> list[bytes]:
    """Split at separators that are not in quotes."""
    parts = text.split(separator)
    if b'"' not in text:
        return parts
    cells: list[list[bytes]] = []
    within = False
    for part in parts:
        if within:
            cells[-1].append(part)
        else:
            cells.append([part])
        within ^= part.count(b'"') % 2 == 1
    return parts if within else [separator.join(cell) for cell in cells]
