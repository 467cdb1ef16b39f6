"""Hexadecimal: in one piece, or bytes separated by blanks, colons, commas, 0x or backslash-x."""

from collections.abc import Iterator

from ragtide.evaluators.encodings.run import Encoding, Run, readable
from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.patterns import compile_pattern

_BYTE = r"[0-9A-Fa-f]{2}"
_MARK = r"(?:0x|\\x)"
_RUN = (
    rf"\b(?:0x)?(?:{_BYTE}){{%d,}}\b|{_MARK}{_BYTE}(?:[ ,;]{{0,2}}{_MARK}{_BYTE}){{3,}}|"
    rf"\b{_BYTE}(?:[ :,-]{_BYTE}){{3,}}\b"
)


def _find(shape: ByteText, shortest: int) -> Iterator[Run]:
    for match in compile_pattern(_RUN % shortest).finditer(shape.data):
        marked = match[0].replace(b"0x", b"").replace(b"\\x", b"")
        digits = bytes(byte for byte in marked if byte not in b" ,;:-")
        text = readable(bytes.fromhex(digits.decode()))
        if text is not None and len(text) >= shortest:
            yield Run(match.start(), match.end(), text)


ENCODING = Encoding(("base16", "hex", "hexadecimal"), 12, _find, like_numbers=True)
