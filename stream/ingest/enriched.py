"""Messages that enrich an earlier one: the same trace with late facts, told apart by its headers.

`enriches.topic`, `.partition`, `.offset` and `.timestamp` say where the message lay that it enriches, `.revision` how
many labels went into it. Its rows have the version of that message with the revision: they win over its rows however
often that one is read again, and lose against those of a newer message.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.errors import BadRecord
from sinks.version import LAST_OFFSET, LAST_REVISION, LAST_TIMESTAMP, pack
from stream.ingest.records import Record, StoredRecord

_PREFIX = "enriches."
Header = tuple[str, bytes]
_LAST_PARTITION = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class EnrichedRecord(StoredRecord):
    """Value and key of the message that enriches; topic, partition, offset and timestamp of the one it enriches."""

    revision: int = field(kw_only=True)


def as_known(record: Record) -> Record:
    """The record, or what its headers make of it where it enriches another; raises `BadRecord` where they are wrong."""
    told = {name: value for name, value in record.headers if name.startswith(_PREFIX)}
    if not told:
        return record
    return EnrichedRecord(
        _text(told, "topic"),
        _number(told, "partition", 0, _LAST_PARTITION),
        _number(told, "offset", 0, LAST_OFFSET),
        _number(told, "timestamp", 0, LAST_TIMESTAMP),
        record.key,
        record.value,
        record.headers,
        revision=_number(told, "revision", 1, LAST_REVISION),
    )


def version_of(record: Record) -> int:
    """Of the rows that a known record is made into, the evaluator's part left at 0."""
    return pack(record.timestamp, record.offset, record.revision if isinstance(record, EnrichedRecord) else 0)


def headers(topic: str, partition: int, offset: int, timestamp: int, revision: int) -> list[Header]:
    """What makes a message one that enriches the message that lay there."""
    told = {"topic": topic, "partition": partition, "offset": offset, "timestamp": timestamp, "revision": revision}
    return [(f"{_PREFIX}{name}", str(value).encode()) for name, value in told.items()]


def _text(told: Mapping[str, bytes | None], name: str) -> str:
    try:
        text = (told.get(f"{_PREFIX}{name}") or b"").decode()
    except UnicodeDecodeError:
        text = ""
    if not text:
        raise _wrong(name, "the name of a topic")
    return text


def _number(told: Mapping[str, bytes | None], name: str, least: int, greatest: int) -> int:
    value = told.get(f"{_PREFIX}{name}") or b""
    if not value.isdigit() or len(value) > len(str(greatest)) or not least <= int(value) <= greatest:
        raise _wrong(name, f"a number from {least} to {greatest}")
    return int(value)


def _wrong(name: str, what: str) -> BadRecord:
    return BadRecord("bad_enrichment", f"header {_PREFIX}{name}: {what}; all five are needed where one is")
