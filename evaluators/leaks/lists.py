"""Finds further values in a list: "Passports: X1234567, Y7654321 and Z1122334"."""

from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.patterns import compile_pattern

_AND = r"(?:and|or|und|oder|et|ou|y|o|e|en|of|i|och|og)"
_QUOTE = r"[\"'`]"
_NEXT = (
    rf"^(?:[)*_]{{0,3}}(?:{_QUOTE}\s{{0,8}},\s{{0,16}}|{_QUOTE}?(?:[,;]\s{{1,16}}(?:{_AND} )?| {_AND} | / |"
    rf"\s{{0,2}}\n\s{{0,12}}(?:[-*+?]|[0-9]{{1,2}}[.)]) )){_QUOTE}?)[*_(]{{0,3}}"
)
_LONGEST_JOINT = 48
_SHORTEST = 6  # characters; shorter ones are counts and years as often
_SHAPE = bytes.maketrans(b"123456789ABCDEFGHIJKLMNOPQRSTUVWXYZbcdefghijklmnopqrstuvwxyz", b"0" * 9 + b"a" * 51)


def further_items(shape: ByteText, first: Span) -> Iterator[Span]:
    """Yield further values of the same length and shape of letters, digits and signs."""
    length = first.end - first.start
    form = shape.data[first.start : first.end].translate(_SHAPE)
    end = first.end
    while length >= _SHORTEST and (b"0" in form or shape.text[first.start : first.end].isupper()):
        joint = compile_pattern(_NEXT).search(shape.data[end : end + _LONGEST_JOINT])
        if not joint:
            return
        start = end + int(joint.end())
        end = start + length
        if shape.data[start:end].translate(_SHAPE) != form or not stands_alone(shape.text, start, end, "-./"):
            return
        yield Span(start, end)
