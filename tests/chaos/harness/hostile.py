"""Records that no client library sends, as a fault of producers: what each is, and what must become of it."""

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.failures.bad_records import trace
from tests.infra.raw_producer import CODECS, RawRecord, batch, body_of, compress, corrupt_lz4, produce, raw_batch

_BOMB_BYTES = 64 << 20  # twice what a batch may expand to


class HostileKind(NamedTuple):
    """`batch` makes one with contents of its own for every number; `reason` is that of its only dead letter."""

    batch: Callable[[int], bytes]
    reason: str
    records: int = 1


class Hostile(NamedTuple):
    """A batch that the brokers have, and where its only dead letter lies: at its last offset."""

    partition: int
    offset: int
    reason: str


def _bomb(number: int) -> bytes:
    body = body_of([RawRecord(bytes(_BOMB_BYTES) + _text(number))])
    return raw_batch(compress("zstd", body), 1, _now_ms(), CODECS["zstd"])


def _now_ms() -> int:
    return int(time.time() * 1000)


def _text(number: int) -> bytes:
    return f"hostile {number} ".encode() * 20


# A new kind of hostile record that ends as a dead letter is one line here: schedule, model and verdict follow.
HOSTILE: Mapping[str, HostileKind] = {
    "no key and no value": HostileKind(lambda _: batch([RawRecord()], _now_ms()), "no_value"),
    "tombstone": HostileKind(lambda number: batch([RawRecord(key=b"trace-%d" % number)], _now_ms()), "no_value"),
    "header not UTF-8": HostileKind(
        lambda number: batch([RawRecord(_text(number), None, [(b"\xff\xfe", b"x"), (b"", None)])], _now_ms()),
        "header_not_utf8",
    ),
    "decompression bomb": HostileKind(_bomb, "batch_too_large"),
    "corrupt compression": HostileKind(
        lambda number: corrupt_lz4([RawRecord(_text(number))] * 3, _now_ms()), "batch_corrupt", records=3
    ),
    "no timestamp": HostileKind(lambda number: batch([RawRecord(trace(f"no timestamp {number}"))]), "no_timestamp"),
    "long app name": HostileKind(
        lambda number: batch([RawRecord(trace(f"long name {number}", app="a" * 60_000))], _now_ms()), "name_too_long"
    ),
}


def send_hostile(bootstrap: str, topic: str, partition: int, number: int) -> list[Hostile]:
    """One batch of every kind; the brokers have each once when this returns."""
    offsets = produce(bootstrap, topic, [kind.batch(number) for kind in HOSTILE.values()], partition, once=True)
    return [
        Hostile(partition, first + kind.records - 1, kind.reason)
        for kind, first in zip(HOSTILE.values(), offsets, strict=True)
    ]


def offsets_taken() -> int:
    """How many offsets one batch of every kind takes."""
    return sum(kind.records for kind in HOSTILE.values())
