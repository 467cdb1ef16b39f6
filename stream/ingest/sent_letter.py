"""Read a message of the dead-letter topic: the original record, and what its `dlq.*` headers say."""

from collections.abc import Mapping
from typing import NamedTuple

from ragtide.stream.ingest.header_names import restore_names
from ragtide.stream.ingest.records import Record, StoredRecord, broker_time


class SentLetter(NamedTuple):
    """The original record, and the added headers by name. Anybody may have written both."""

    record: StoredRecord
    fields: Mapping[str, bytes]


def read_letter(sent: Record) -> SentLetter | None:
    """The letter; None if its headers are no letter's.

    The original may have `dlq.*` headers of its own, from an earlier replay: the last ones count. If `dlq.omitted` is
    there, the value is not the original one.
    """
    names = [name for name, _ in sent.headers]
    try:
        ours = len(names) - 1 - names[::-1].index("dlq.topic")
        values = {name: value for name, value in sent.headers[ours:] if value is not None}
        partition, offset, timestamp = (int(values[f"dlq.{name}"]) for name in ("partition", "offset", "timestamp"))
        topic = values["dlq.topic"].decode()
        headers = restore_names(sent.headers[:ours], sent.headers[ours:])
        record = StoredRecord(topic, partition, offset, timestamp, sent.key, sent.value, headers)
        broker_time(record)
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    return SentLetter(record, values)
