"""Keys written as one word, with their values: `customerSsn: ...` becomes "customer Ssn: ..."."""

import re
from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span
from ragtide.evaluators.leaks.patterns import compile_pattern

_KEYED = (
    r"\b([A-Za-z][a-z0-9]{1,24}(?:[A-Z]+[a-z0-9]{0,24}){1,6})[\"'\\]{0,2}\s{0,2}[:=>]{1,2}\s{0,2}[\"'\\]{0,2}"
    r"([^\"',;{}<>\[\]\\\s][^\"',;{}<>\[\]\\\n]{1,62}[^\"',;{}<>\[\]\\\s])"
)
_OF_SECRETS = re.compile(r"(?i)token|key|secret|password")  # these are read as one word already
_WITHIN = re.compile(r"(?<=[a-z0-9])[A-Z](?:[a-z]+|[A-Z]*)")  # a word of the key: "Number", "SIN"


def find_keys(shape: ByteText) -> Iterator[tuple[str, Span]]:
    """Yield the words of each key, and the place of its value, which has a digit or is in capitals."""
    for match in compile_pattern(_KEYED).finditer(shape.data):
        key = match[1].decode("latin-1")
        if (any(chr(byte).isdigit() for byte in match[2]) or match[2].isupper()) and not _OF_SECRETS.search(key):
            yield _WITHIN.sub(_split_word, key), Span(*match.span(2))


def _split_word(word: re.Match[str]) -> str:
    return f" {word[0] if word[0].isupper() else word[0].lower()}"
