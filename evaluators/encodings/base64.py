"""Base64 (RFC 4648, sections 4 and 5): both alphabets, optional padding, in one line or wrapped as in mail."""

import codecs
import string
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Iterator

from ragtide.evaluators.encodings.run import Encoding, Run, readable
from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.patterns import compile_pattern

_DIGIT = r"[A-Za-z0-9+/_-]"
_RUN = rf"(?:{_DIGIT}{{60,76}}\r?\n)+{_DIGIT}{{2,76}}={{0,2}}|{_DIGIT}{{%d,}}={{0,2}}"
_LETTERS = string.ascii_letters.encode()
_ROT13 = bytes.maketrans(_LETTERS, codecs.encode(string.ascii_letters, "rot13").encode())
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _find(shape: ByteText, shortest: int) -> Iterator[Run]:
    """Find sequences, also those whose letters were moved by ROT13, which have no words that would show it."""
    for match in compile_pattern(_RUN % (shortest * 4 // 3)).finditer(shape.data):
        digits = match[0].translate(_URL_SAFE, b"=\r\n")
        text = _decode(digits) or _decode(digits.translate(_ROT13))
        if text is not None and len(text) >= shortest:
            yield Run(match.start(), match.end(), text)


def _decode(digits: bytes) -> str | None:
    try:
        return readable(urlsafe_b64decode(digits + b"=" * (-len(digits) % 4)))
    except Error:
        return None


ENCODING = Encoding(("base64",), 12, _find)
