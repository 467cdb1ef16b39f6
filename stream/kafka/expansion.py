"""Decompress record batches up to a limit: a batch of 32 KB may hold gigabytes, and its stated size may be wrong."""

import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import cramjam
from backports import zstd
from lz4 import frame as lz4

_GZIP = 31  # zlib's code for a gzip header and 32 KiB of window
_GZIP_MAGIC = b"\x1f\x8b"
_MEMBER_STEP = 4096  # bytes
_MOST_MEMBERS = 10_000  # of one batch: producers make one, and a reader of each takes 60 µs
_LZ4_RATIO = 255  # a byte of LZ4 stands for 255 bytes at most
_LZ4_STEP = 1 << 20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES = 16
Buffer = bytes | bytearray | memoryview


class TooLargeError(Exception):
    """The batch expands to more than the limit."""


class CorruptError(Exception):
    """The compressed bytes cannot be decompressed; the message says why and quotes none of them."""


def expand(codec: int, data: memoryview, limit: int) -> Buffer:
    """Decompress `data` by Kafka's number of its codec; never makes much more than `limit` bytes.

    Raises `TooLargeError` where the result has more than `limit` bytes, and `CorruptError`.
    """
    if codec not in _CODECS:
        raise CorruptError(f"codec {codec} is unknown")
    name, decompress = _CODECS[codec]
    try:
        expanded = decompress(data, limit)
    except (zlib.error, zstd.ZstdError, cramjam.DecompressionError, RuntimeError, EOFError, struct.error) as error:
        raise CorruptError(f"{name}: {type(error).__name__}") from None
    if len(expanded) > limit:
        raise TooLargeError
    return expanded


def codec_name(codec: int) -> str:
    """Kafka's name for the codec, for people."""
    if not codec:
        return "not compressed"
    return _CODECS[codec][0] if codec in _CODECS else f"codec {codec}"


def _gzip(data: memoryview, limit: int) -> Buffer:
    """All members; like Java's reader, bytes after the last member are ignored."""
    return _members(data, limit, partial(zlib.decompressobj, _GZIP), _GZIP_MAGIC)


def _members(data: memoryview, limit: int, new: Callable[[], Any], magic: bytes = b"") -> Buffer:
    """Decompress members that follow each other; what comes after the first begins with `magic`, or is ignored.

    A reader copies what follows its member. So all but the first get small steps, or a batch of many small members
    would take time by the square of its size.
    """
    expanded = bytearray()
    at, step, found = 0, len(data), 0
    while not found or (at < len(data) and data[at : at + len(magic)] == magic):
        reader, found = new(), found + 1
        if found > _MOST_MEMBERS:
            raise CorruptError(f"more than {_MOST_MEMBERS:,} compressed members")
        while not reader.eof:
            if at >= len(data):
                raise EOFError
            part = data[at : at + step]
            expanded += reader.decompress(part, limit + 1 - len(expanded))
            if len(expanded) > limit:
                return expanded
            at += len(part)
        at -= len(reader.unused_data)
        step = _MEMBER_STEP
    return expanded


def _snappy(data: memoryview, limit: int) -> Buffer:
    """Raw, or in xerial's frames; a block states its size, and the decoder enforces it."""
    expanded, left = [], limit
    for block in _xerial_blocks(data) if data[: len(_XERIAL)] == _XERIAL else (data,):
        left -= int(cramjam.snappy.decompress_raw_len(block))
        if left < 0:
            raise TooLargeError
        expanded.append(cramjam.snappy.decompress_raw(block))
    return b"".join(expanded)


def _xerial_blocks(data: memoryview) -> Iterator[memoryview]:
    at = _XERIAL_HEAD_BYTES
    while at < len(data):
        (size,) = struct.unpack_from("!i", data, at)
        at += 4
        if not 0 <= size <= len(data) - at:
            raise EOFError
        yield data[at : at + size]
        at += size


def _lz4(data: memoryview, limit: int) -> Buffer:
    if len(data) * _LZ4_RATIO <= limit:
        return memoryview(cramjam.lz4.decompress(data))  # several times as fast for small batches
    reader = lz4.LZ4FrameDecompressor()
    expanded = bytearray(reader.decompress(data, max_length=_LZ4_STEP))
    while not reader.eof and len(expanded) <= limit:
        if reader.needs_input:
            raise EOFError
        expanded += reader.decompress(b"", max_length=_LZ4_STEP)
    return expanded


def _zstd(data: memoryview, limit: int) -> Buffer:
    """All frames."""
    return _members(data, limit, zstd.ZstdDecompressor)


_CODECS: Mapping[int, tuple[str, Callable[[memoryview, int], Buffer]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
