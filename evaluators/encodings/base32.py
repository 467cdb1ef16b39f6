"""Base32 (RFC 4648, section 6): upper or lower case, optional padding."""

from base64 import b32decode
from binascii import Error
from collections.abc import Iterator

from ragtide.evaluators.encodings.run import Encoding, Run, readable
from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.patterns import compile_pattern

_RUN = r"\b(?:[A-Z2-7]{%d,}|[a-z2-7]{%d,})\b={0,6}"
_GROUP = 8
_NO_WORD = 20  # small letters alone are a word rather, up to here


def _find(shape: ByteText, shortest: int) -> Iterator[Run]:
    letters = shortest * _GROUP // 5
    for match in compile_pattern(_RUN % (letters, letters)).finditer(shape.data):
        if match[0].isalpha() and match[0].islower() and len(match[0]) < _NO_WORD:
            continue
        digits = match[0].rstrip(b"=")
        try:
            text = readable(b32decode(digits + b"=" * (-len(digits) % _GROUP), casefold=True))
        except Error:
            continue
        if text is not None and len(text) >= shortest:
            yield Run(match.start(), match.end(), text)


ENCODING = Encoding(("base32",), 12, _find)
