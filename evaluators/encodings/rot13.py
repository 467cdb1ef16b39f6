"""ROT13: lines that contain common English words moved by thirteen letters."""

import codecs
from collections.abc import Iterator

from ragtide.evaluators.encodings.run import Encoding, Run
from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.patterns import compile_pattern

_COMMON = (
    "the|and|that|this|with|from|your|you|have|for|are|not|was|will|can|password|secret|email|mail|phone|name|number|"
    "address|contact|please|here|his|her|their|which|token|account"
)
_PLAIN = rf"(?i)\b(?:{_COMMON})\b"
_MOVED = rf"(?i)\b(?:{codecs.encode(_COMMON, 'rot13')})\b"
_LINE = r"[^\n:]+"


def _find(shape: ByteText, shortest: int) -> Iterator[Run]:
    """Find lines with at least `shortest` moved words."""
    if compile_pattern(_MOVED).search(shape.data) is None:
        return
    for match in compile_pattern(_LINE).finditer(shape.data):
        moved = len(compile_pattern(_MOVED).findall(match[0]))
        if moved >= shortest and moved > len(compile_pattern(_PLAIN).findall(match[0])):
            start, end = match.span()
            yield Run(start, end, codecs.encode(shape.text[start:end], "rot13"))


ENCODING = Encoding(("rot13",), 2, _find)
