"""Record batches (format v2) built byte by byte and sent as they are: what any producer may put on a topic.

The client library refuses to send some of these records, so tests that need them build the bytes themselves.
"""

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import cramjam
from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.errors import for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.record.util import calc_crc32c, encode_varint

from tests.infra.kafka_clients import patiently

CODECS: Mapping[str, int] = {"none": 0, "gzip": 1, "snappy": 2, "snappy_raw": 2, "lz4": 3, "zstd": 4}
_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": gzip_encode,
    "snappy": snappy_encode,  # with xerial's framing, as Java sends it
    "snappy_raw": lambda body: bytes(cramjam.snappy.compress_raw(body)),
    "lz4": lz4_encode,
    "zstd": zstd_encode,
}
_CHECKED = struct.Struct(">hiqqqhii")  # from the attributes to the number of records
_HEAD = struct.Struct(">qiibI")  # base offset, length, leader epoch, magic, CRC
_PRODUCER_AT = struct.calcsize(">hiqq")  # of what is checked
_AFTER_LENGTH = 12
_TIMEOUT_MS = 30_000
NO_TIMESTAMP = -1


class RawRecord(NamedTuple):
    """One record. Header keys are bytes, because nothing makes a producer send UTF-8."""

    value: bytes | None = None
    key: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()


def batch(records: Sequence[RawRecord], timestamp_ms: int = NO_TIMESTAMP, codec: str = "none") -> bytes:
    """A valid batch of these records, all of one timestamp, compressed with one of `CODECS`."""
    return raw_batch(compress(codec, body_of(records)), len(records), timestamp_ms, CODECS[codec])


def compress(codec: str, body: bytes) -> bytes:
    """As producers of every language do it."""
    return _ENCODERS[codec](body)


def raw_batch(body: bytes, count: int, timestamp_ms: int = NO_TIMESTAMP, codec: int = 0) -> bytes:
    """A batch with a right CRC around any body; `count` is the number of records that its header states."""
    checked = _CHECKED.pack(codec, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count) + body
    head = _HEAD.pack(0, _HEAD.size - _AFTER_LENGTH + len(checked), -1, 2, calc_crc32c(checked))
    return head + checked


def body_of(records: Sequence[RawRecord]) -> bytes:
    """The records as they lie in a batch, not compressed."""
    body = bytearray()
    for offset_delta, record in enumerate(records):
        told = bytearray(1)  # attributes: none are defined
        _varint(0, told)  # timestamp delta
        _varint(offset_delta, told)
        _bytes(record.key, told)
        _bytes(record.value, told)
        _varint(len(record.headers), told)
        for name, value in record.headers:
            _bytes(name, told)
            _bytes(value, told)
        _varint(len(told), body)
        body += told
    return bytes(body)


def corrupt_lz4(records: Sequence[RawRecord], timestamp_ms: int = NO_TIMESTAMP) -> bytes:
    """A batch that Apache Kafka stores and that does not decompress: brokers do not verify LZ4's content checksum."""
    compressor = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    compressor.compress(body_of(records))
    body = bytearray(compressor.finish())
    body[-1] ^= 0xFF
    return raw_batch(bytes(body), len(records), timestamp_ms, CODECS["lz4"])


def produce(
    bootstrap: str, topic: str, batches: Sequence[bytes], partition: int = 0, *, once: bool = False
) -> list[int]:
    """The offset of each batch's first record; raises the broker's error for a batch that it refuses.

    `once`: a broker that goes meanwhile has none of them twice (an idempotent producer).
    """
    return asyncio.run(send(bootstrap, topic, batches, partition, once=once))


async def send(
    bootstrap: str, topic: str, batches: Sequence[bytes], partition: int = 0, *, once: bool = False
) -> list[int]:
    """As `produce`, from an event loop."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    try:
        await patiently(client.bootstrap)
        if once:
            batches = _numbered(batches, *await patiently(partial(_producer_id, client)))
        return [await patiently(partial(_send, client, topic, partition, one)) for one in batches]
    finally:
        await client.close()


async def _send(client: AIOKafkaClient, topic: str, partition: int, one: bytes) -> int:
    await client._wait_on_metadata(topic)
    leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
    request = ProduceRequest(None, -1, _TIMEOUT_MS, [(topic, [(partition, one)])])
    [(_, [(_, code, offset, *_)])] = (await client.send(leader, request)).topics
    if code:
        raise for_code(code)(f"{topic}/{partition}")
    return int(offset)


async def _producer_id(client: AIOKafkaClient) -> tuple[int, int]:
    answer = await client.send(client.get_random_node(), InitProducerIdRequest(None, _TIMEOUT_MS))
    if answer.error_code:
        raise for_code(answer.error_code)("a producer's id")
    return answer.producer_id, answer.producer_epoch


def _numbered(batches: Sequence[bytes], producer_id: int, epoch: int) -> list[bytes]:
    """The same batches with the numbers by which a broker knows one that it has already."""
    numbered, sequence = [], 0
    for one in batches:
        checked = bytearray(one[_HEAD.size :])
        (count,) = struct.unpack_from(">i", checked, _CHECKED.size - 4)
        struct.pack_into(">qhi", checked, _PRODUCER_AT, producer_id, epoch, sequence)
        head = bytearray(one[: _HEAD.size])
        struct.pack_into(">I", head, _HEAD.size - 4, calc_crc32c(checked))
        numbered.append(bytes(head + checked))
        sequence += count
    return numbered


def _varint(number: int, out: bytearray) -> None:
    encode_varint(number, out.append)


def _bytes(value: bytes | None, out: bytearray) -> None:
    if value is None:
        _varint(-1, out)
    else:
        _varint(len(value), out)
        out += value
