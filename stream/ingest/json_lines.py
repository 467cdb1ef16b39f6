"""Read a file of JSON lines as numbered lines of bounded size."""

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from ragtide.evaluators.errors import ConfigError

_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"  # of UTF-8
_UTF_16 = ("UTF-16", "write it in UTF-8: iconv -f UTF-16 -t UTF-8")
_OTHER_FORMATS = {  # by their first bytes
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"{\0": _UTF_16,
    b"\0{": _UTF_16,
    _GZIP: ("gzip", "unpack it: gzip -d"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unpack it: zstd -d"),
    b"BZh": ("bzip2", "unpack it: bzip2 -d"),
    b"PK\x03\x04": ("zip", "unpack it: unzip"),
    b"PAR1": ("Parquet", "in Python, evaluate(pandas.read_parquet(FILE)) reads it"),
}


class Line(NamedTuple):
    """One line without its line break; the first of a file has number 1."""

    number: int
    value: bytes


def read_file(file: IO[bytes], name: str, max_bytes: int) -> Iterator[Line]:
    """Yield every line of a whole file, as `read_lines`; what is packed with gzip is unpacked.

    Raises `ConfigError` if the file holds something else than one JSON object per line, or its gzip is damaged.
    """
    number = 0
    try:
        for number, value in read_lines(_opened(file, name), max_bytes):
            yield Line(number, value)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ConfigError(f"{name}: its gzip is damaged or cut short after line {number:,}; pack it again") from None


def check_file(file: IO[bytes], name: str) -> None:
    """Raise what the first line of `read_file` raises. Reads the beginning."""
    next(read_file(file, name, 1), None)


def refuse_other_formats(head: bytes, name: str) -> None:
    """Raise `ConfigError` if a file that begins with these bytes holds something else than one JSON object per line."""
    for start, (found, advice) in _OTHER_FORMATS.items():
        if head.startswith(start):
            raise ConfigError(f"{name}: looks like {found}, not JSON lines; {advice}")
    first = head.removeprefix(_BOM).lstrip()
    if first.startswith(b"["):
        advice = "write one object per line: jq -c '.[]' FILE > traces.jsonl"
        raise ConfigError(f"{name}: begins with [ as a JSON array does; {advice}")
    line, _, others = first.partition(b"\n")
    if line.rstrip() == b"{" and others:
        advice = "write one object per line: jq -c . FILE > traces.jsonl"
        raise ConfigError(f"{name}: its first JSON object stands on several lines; {advice}")


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


def _opened(file: IO[bytes], name: str) -> IO[bytes]:
    """Look at the first bytes, and return the file or what is packed in it."""
    reader: Any = file if hasattr(file, "peek") else io.BufferedReader(file)
    head = reader.peek(1)
    if head.startswith(_GZIP):
        reader = gzip.GzipFile(fileobj=reader)
        head = reader.peek(1)
    refuse_other_formats(head, name)
    found: IO[bytes] = reader
    return found
