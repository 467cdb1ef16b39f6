"""Read a file of JSON lines as numbered lines of bounded size."""

from collections.abc import Iterator
from typing import IO, NamedTuple

_CHUNK = 1 << 20


class Line(NamedTuple):
    """One line without its line break; the first of a file has number 1."""

    number: int
    value: bytes


def read_lines(file: IO[bytes], max_bytes: int, after: int = 0) -> Iterator[Line]:
    """Yield every line that is not blank; `after` is the number of the line before.

    A line of more than `max_bytes` is skipped to its end and yielded with one byte more than the limit, so that
    decoding refuses it as too big. Between two lines the file stands at the start of the next.
    """
    number = after
    while value := file.readline(max_bytes + 1):
        number += 1
        end = value
        while not end.endswith(b"\n") and (end := file.readline(_CHUNK)):
            pass  # the rest of a line that is too big
        if value.strip():
            yield Line(number, value.rstrip(b"\r\n"))
