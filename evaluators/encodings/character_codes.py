"""Lists of character codes: decimal, binary, HTML references, and \\u escapes."""

from collections.abc import Iterator

from ragtide.evaluators.encodings.run import Encoding, Run, readable
from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.patterns import compile_pattern

_CODE = r"(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6]|10|13|9)"
_BINARY = r"0[01]{7}"
_RUN = (
    rf"(?P<decimal>\b{_CODE}(?:[ ,;]{{1,2}}{_CODE}){{3,}}\b)|(?P<binary>\b{_BINARY}(?: ?{_BINARY}){{3,}}\b)|"
    r"(?P<reference>(?:&#(?:[0-9]{2,6}|x[0-9A-Fa-f]{2,5});){4,})|(?P<escape>(?:\\u[0-9A-Fa-f]{4}){4,})"
)
_NUMBER, _BITS, _HEX = r"[0-9]+", r"[01]{8}", r"[0-9A-Fa-f]+"
_REFERENCE = r"(x?)([0-9A-Fa-f]+);"
_LAST = 0x10FFFF


def _find(shape: ByteText, shortest: int) -> Iterator[Run]:
    for match in compile_pattern(_RUN).finditer(shape.data):
        text = _decode(match[0], match.lastgroup.decode())
        if text is not None and len(text) >= shortest:
            yield Run(match.start(), match.end(), text)


def _decode(run: bytes, form: str) -> str | None:
    if form == "decimal":
        codes = [int(number) for number in compile_pattern(_NUMBER).findall(run)]
    elif form == "binary":
        codes = [int(bits, 2) for bits in compile_pattern(_BITS).findall(run.replace(b" ", b""))]
    elif form == "reference":
        codes = [int(number, 16 if x else 10) for x, number in compile_pattern(_REFERENCE).findall(run)]
    else:
        codes = [int(number, 16) for number in compile_pattern(_HEX).findall(run.replace(b"\\u", b" "))]
    if any(code > _LAST for code in codes):
        return None
    return readable("".join(map(chr, codes)).encode("utf-8", "replace"))


ENCODING = Encoding(
    ("charcode", "charcodes", "ascii", "binary", "character-codes", "unicode-escape"), 8, _find, like_numbers=True
)
