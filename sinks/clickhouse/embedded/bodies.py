"""Bodies of requests, whatever they were compressed with."""

import importlib
import sys
import zlib
from collections.abc import Callable
from typing import Protocol

from ragtide.evaluators.errors import BadRecord

# What one request may hold, packed or not; a block of 10,000 rows is a few MB.
MAX_BYTES = 1 << 30


class _Decoder(Protocol):
    """Interface of zlib, lz4.frame and zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpack(body: bytes, encoding: str, limit: int = MAX_BYTES) -> bytes:
    """The plain bytes; BadRecord for an unknown encoding, a broken body or one larger than `limit`.

    A body may be several frames: clickhouse-connect compresses block by block.
    """
    if encoding in ("", "identity"):
        return body
    new_decoder = _DECODERS.get(encoding)
    if new_decoder is None:
        raise BadRecord("encoding", f"Content-Encoding {encoding!r} is not one of {', '.join(sorted(_DECODERS))}")
    plain: list[bytes] = []
    room = limit
    while body:
        decoder = new_decoder()
        try:
            plain.append(decoder.decompress(body, room + 1))
        except Exception as error:  # noqa: BLE001  # each library has an error type of its own: an edge of the request
            raise BadRecord("encoding", f"the body is not {encoding}: {type(error).__name__}") from None
        room -= len(plain[-1])
        if room < 0:
            raise BadRecord("too_large", f"the body unpacks to more than {limit} bytes")
        if not decoder.eof:
            raise BadRecord("encoding", f"the {encoding} body is cut short")
        body = decoder.unused_data or b""
    return b"".join(plain)


def _gzip() -> _Decoder:
    return zlib.decompressobj(wbits=31)


def _lz4() -> _Decoder:
    decoder: _Decoder = importlib.import_module("lz4.frame").LZ4FrameDecompressor()
    return decoder


def _zstd() -> _Decoder:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    decoder: _Decoder = importlib.import_module(name).ZstdDecompressor()
    return decoder


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "deflate": zlib.decompressobj,
    "gzip": _gzip,
    "lz4": _lz4,
    "zstd": _zstd,
}
