"""Decompression up to a limit: as aiokafka's own where it fits, and never far beyond the limit whatever is stated."""

import gzip
import os
import random
import struct
import subprocess
import sys
import time

import cramjam
import pytest
from aiokafka import codec as of_aiokafka

from ragtide.stream.kafka.expansion import CorruptError, TooLargeError, expand
from tests.infra.raw_producer import CODECS, compress

COMPRESSED = [name for name in CODECS if name != "none"]
LIMIT = 1 << 20
TEXT = " ".join(str(random.Random(1).randrange(10**6)) for _ in range(100_000)).encode()


def expanded(name: str, data: bytes, limit: int = LIMIT) -> bytes:
    return bytes(expand(CODECS[name], memoryview(data), limit))


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("size", [1, 1000, 300_000])
def test_what_fits_expands_as_in_aiokafka(name: str, size: int) -> None:
    data = compress(name, TEXT[:size])
    decode = getattr(of_aiokafka, f"{name.removesuffix('_raw')}_decode")
    assert expanded(name, data) == TEXT[:size] == decode(data)


@pytest.mark.parametrize("name", COMPRESSED)
def test_the_limit_is_exact(name: str) -> None:
    assert len(expanded(name, compress(name, bytes(LIMIT)))) == LIMIT
    with pytest.raises(TooLargeError):
        expanded(name, compress(name, bytes(LIMIT + 1)))


@pytest.mark.parametrize("name", COMPRESSED)
@pytest.mark.parametrize("limit", [1000, 1 << 20, 1 << 30])
def test_damaged_bytes_are_corrupt_or_too_large(name: str, limit: int) -> None:
    data = compress(name, TEXT[:50_000])
    dice = random.Random(name)
    for damaged in [b"", data[:-1], data[: len(data) // 2], os.urandom(100)] + [
        bytes(byte ^ (at == place) * 0xFF for at, byte in enumerate(data[:2000])) + data[2000:]
        for place in dice.sample(range(2000), 20)
    ]:
        if name == "zstd" and not damaged:
            continue
        try:
            found = expanded(name, damaged, limit)
        except (CorruptError, TooLargeError):
            continue
        assert len(found) <= limit  # a flipped byte may be one of the text


def test_sizes_that_lie_expand_to_no_more_than_the_limit() -> None:
    two_gigabytes = b"\xff\xff\xff\xff\x07"  # a varint
    with pytest.raises(TooLargeError):
        expanded("snappy_raw", two_gigabytes + b"\x00")
    block = bytes(cramjam.snappy.compress_raw(bytes(LIMIT // 2)))
    framed = compress("snappy", b"x")[:16] + (struct.pack("!i", len(block)) + block) * 3
    with pytest.raises(TooLargeError):
        expanded("snappy", framed)
    with pytest.raises(CorruptError):
        expanded("snappy", framed[:16] + struct.pack("!i", -5) + block)


def test_several_members_are_one_and_add_up() -> None:
    for name in ("gzip", "zstd"):
        half = compress(name, bytes(LIMIT // 2))
        assert len(expanded(name, half * 2)) == LIMIT
        with pytest.raises(TooLargeError):
            expanded(name, half * 3)
    assert expanded("gzip", gzip.compress(b"text") + b"rest") == b"text", "brokers store it, and Java reads it"


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_many_members_take_no_time_by_the_square_of_their_number(name: str) -> None:
    """Nor by their number times what the first of them holds."""
    large, one = compress(name, bytes(31 << 20)), compress(name, b"x")
    began = time.process_time()
    assert len(expanded(name, large + one * 5000, 32 << 20)) == (31 << 20) + 5000
    with pytest.raises(CorruptError, match="more than 10,000 compressed members"):
        expanded(name, large + one * 100_000, 32 << 20)
    assert time.process_time() - began < 10


def test_an_unknown_codec_is_corrupt() -> None:
    with pytest.raises(CorruptError, match="codec 6 is unknown"):
        expand(6, memoryview(b"x"), LIMIT)


PEAK = """
import resource, sys
from pathlib import Path
from ragtide.stream.kafka.expansion import TooLargeError, expand
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    expand(int(sys.argv[1]), memoryview(Path(sys.argv[2]).read_bytes()), 1 << 20)
except TooLargeError:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_bomb_takes_no_memory(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    bomb = tmp_path_factory.mktemp("bomb") / "bomb"
    bomb.write_bytes(compress(name, bytes(200 << 20)))
    command = [sys.executable, "-c", PEAK, str(CODECS[name]), str(bomb)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(told) < (40 << 10) + bomb.stat().st_size // 1024, "KiB; the bomb holds 204,800"
