"""Fields of records with separate name and value: objects with a name and a value, rows of SQL inserts."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import Span
from ragtide.evaluators.leaks.patterns import compile_pattern

_QUOTES = r"[\"'\\]{0,2}"
_NAME, _VALUE = (
    r"(?:name|key|type|field|label|kind|title|attribute|entity|column|property|param(?:eter)?|header|category|system)",
    r"(?:value|val|content|text|data|number|answer|id|default|string)",
)
_IN_QUOTES = r"\"([^\"\\\n]{3,200})|'([^'\\\n]{3,200})|([^\s\"',;{}\[\]\\]{3,200})"
_IS = r"\s{0,3}[:=]\s{0,3}\\?"
_FIELD = r"([a-z][a-z0-9 _./-]{1,47}?)"
# {"type": "passport", "value": "..."}, "- name: DB_PASS" with "value: ..." in the line below, {"passport": {"id": ...
_NAMED = (
    rf"(?i)[\"'](?:\w{{0,16}}[_-])?{_NAME}\\?[\"']?{_IS}[\"']{_FIELD}\\?[\"']\s{{0,3}},?\s{{0,16}}"
    rf"{_QUOTES}{_VALUE}{_QUOTES}{_IS}(?:{_IN_QUOTES})"
)
_NAMED_BELOW = rf"(?i)\b{_NAME}\s?{_IS}{_QUOTES}{_FIELD}{_QUOTES}\s{{1,16}}value\s?{_IS}(?:{_IN_QUOTES})"
_NESTED = rf"(?i)[\"']{_FIELD}[\"']{_IS}\{{\s{{0,16}}[\"']{_VALUE}[\"']{_IS}(?:{_IN_QUOTES})"
_INSERT = r"(?i)\binto\s{1,4}[^\s(),;]{1,80}\s{0,4}\(([^()]{3,1000})\)\s{0,8}values\s{0,8}"
_ROW = r"^[,\s]{0,8}\(((?:'(?:[^']|'')*'|[^()'])*)\)"
_LITERAL = r"'((?:[^']|'')*)'|\"([^\"]*)\"|([^,\s'\"][^,'\"]*)"
_LONGEST_ROW = 4_000  # characters


def fields(data: bytes) -> Iterator[tuple[Span, Span]]:
    """Yield each name with its value."""
    for pattern, mark in ((_NAMED, b'"'), (_NAMED_BELOW, b"value"), (_NESTED, b"{")):
        if mark not in data:
            continue
        for match in compile_pattern(pattern).finditer(data):
            yield Span(*match.span(1)), Span(*match.span(match.lastindex))
    if b"into" not in data and b"INTO" not in data:
        return
    for match in compile_pattern(_INSERT).finditer(data):
        columns = list(_literals(data, *match.span(1)))
        end = match.end()
        while row := compile_pattern(_ROW).search(data[end : end + _LONGEST_ROW]):
            values = list(_literals(data, end + row.start(1), end + row.end(1)))
            if len(values) == len(columns):
                yield from zip(columns, values, strict=True)
            end += row.end()


def _literals(data: bytes, start: int, end: int) -> Iterator[Span]:
    for match in compile_pattern(_LITERAL).finditer(data[start:end]):
        found = match.span(match.lastindex)
        yield Span(start + found[0], start + found[1])
