"""Versions of rows: the order (broker timestamp, source, offset, input revision, evaluator).

The source is a number from topic and partition. Without it, messages of two partitions with one timestamp and one
offset would have one version, and whichever was stored last would win.
"""

from functools import lru_cache
from zlib import crc32

_TIMESTAMP_BITS, _SOURCE_BITS, _OFFSET_BITS, _REVISION_BITS, _EVALUATOR_BITS = 48, 8, 40, 16, 16
_LOW_BITS = _REVISION_BITS + _EVALUATOR_BITS
_PLACE_BITS = _SOURCE_BITS + _OFFSET_BITS
_LAST_OFFSET, _LAST_SOURCE = (1 << _OFFSET_BITS) - 1, (1 << _SOURCE_BITS) - 1
LAST_TIMESTAMP = (1 << _TIMESTAMP_BITS) - 1
LAST_REVISION, _LAST_EVALUATOR = (1 << _REVISION_BITS) - 1, (1 << _EVALUATOR_BITS) - 1


def pack(
    timestamp_ms: int, offset: int, input_revision: int = 0, evaluator_version: int = 0, *, source: int = 0
) -> int:
    """An unsigned 128-bit number ordered as (timestamp, source, offset, revision, evaluator), each clipped.

    They take 48, 8, 40, 16 and 16 bits; offsets count modulo 2^40. File replays give timestamp 0, source 0 and the line
    number as offset. Rows that older releases of ragtide stored have source 0.
    """
    usual = 0 <= timestamp_ms <= LAST_TIMESTAMP and 0 <= offset <= _LAST_OFFSET and 0 <= source <= _LAST_SOURCE
    if usual and not input_revision and not evaluator_version:  # every record that is read takes this way
        return (timestamp_ms << _PLACE_BITS | source << _OFFSET_BITS | offset) << _LOW_BITS
    high = min(max(timestamp_ms, 0), LAST_TIMESTAMP) << _SOURCE_BITS | min(max(source, 0), _LAST_SOURCE)
    place = high << _OFFSET_BITS | max(offset, 0) & _LAST_OFFSET
    low = min(max(input_revision, 0), LAST_REVISION) << _EVALUATOR_BITS
    return place << _LOW_BITS | low | min(max(evaluator_version, 0), _LAST_EVALUATOR)


@lru_cache(maxsize=4096)
def source_of(topic: str, partition: int) -> int:
    """A number from 1 to 255; 255 partitions of a topic that follow each other have different ones."""
    return 1 + (crc32(topic.encode(errors="surrogatepass")) + partition) % _LAST_SOURCE


def timestamp_of(version: int) -> int:
    """The timestamp that was packed, in ms."""
    return version >> _PLACE_BITS + _LOW_BITS


def revision_of(version: int) -> int:
    """The input revision that was packed."""
    return version >> _EVALUATOR_BITS & LAST_REVISION


def without_evaluator(version: int) -> int:
    """The version with the evaluator's part at 0, equal for all rows of one input."""
    return version >> _EVALUATOR_BITS << _EVALUATOR_BITS


def input_sql(version: str) -> str:
    """SQL expression: a number that is equal for all rows of one input, shorter than `without_evaluator`."""
    return f"bitShiftRight({version}, {_EVALUATOR_BITS})"


def is_older_sql(version: str, newest: str) -> str:
    """SQL expression: whether a row is of an older input than `newest`.

    A row without a source was stored by an older release: the same record read again has a source. It is not older.
    """
    source = f"bitAnd(bitShiftRight({version}, {_OFFSET_BITS + _LOW_BITS}), {_LAST_SOURCE})"
    mask = (1 << 128) - 1 - (_LAST_SOURCE << _OFFSET_BITS + _LOW_BITS)
    sourceless = f"bitAnd({newest}, toUInt128('{mask}'))"
    return f"{input_sql(version)} < {input_sql(f'if({source} = 0, {sourceless}, {newest})')}"
