"""Percent-encoding (RFC 3986, section 2.1), as in URLs."""

from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from ragtide.evaluators.encodings.run import Encoding, Run, readable
from ragtide.evaluators.leaks.byte_text import ByteText
from ragtide.evaluators.leaks.patterns import compile_pattern

_RUN = r"[A-Za-z0-9_.~+-]*(?:%[0-9A-Fa-f]{2}[A-Za-z0-9_.~+-]*)+"


def _find(shape: ByteText, shortest: int) -> Iterator[Run]:
    """Find sequences with at least `shortest` escapes: an ordinary address has a few."""
    for match in compile_pattern(_RUN).finditer(shape.data):
        text = readable(unquote_to_bytes(match[0]))
        if text is not None and match[0].count(b"%") >= shortest:
            yield Run(match.start(), match.end(), text)


ENCODING = Encoding(("url", "percent", "urlencode", "url-encoding"), 8, _find)
