"""Send labels to the topic that the jobs of a running system read."""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from ragtide.evaluators.errors import BadRecord, ConfigError
from ragtide.stream.api.effective_settings import NO_CHANGES, Changes, connection_settings
from ragtide.stream.api.inputs import RefusedItem, Source, open_source
from ragtide.stream.labels.decoding import decode
from ragtide.stream.labels.joining import Message
from ragtide.stream.labels.label import Label
from ragtide.stream.labels.sending import send

_MOST_FAULTS = 20
_PER_REQUEST = 1_000  # labels that wait for the brokers together


class ReadLabel(NamedTuple):
    """A label, and its message."""

    label: Label
    value: bytes


def label(labels: object, *, config: str | os.PathLike[str] | None = None, settings: Changes = NO_CHANGES) -> int:
    """Send labels to `kafka.labels_topic`, and return how many the brokers accepted.

    `labels` are dicts with the fields of docs/labels.md, such as
    `{"trace_id": "t-1", "author": "ada", "verdict": {"thumbs": "down"}}`: a list of them, a path of a JSON lines file,
    or a table as `evaluate` takes it. `config` and `settings` are those of `connect`. Sending a label twice does no
    harm: the newest counts.

    All labels are checked before the first is sent. Raises `ConfigError` with the number, field and reason of each
    wrong one, and `Transient` if no broker answers; some labels may have been sent then.
    """
    chosen = connection_settings(config, settings)
    found = read_labels(open_source(labels, chosen.ingest.max_bytes), chosen.ingest.max_bytes, "no label was sent")
    topic = chosen.kafka.labels_topic
    messages = [Message(topic, one.label.trace_id.encode(), one.value, []) for one in found]
    accepted = 0
    with ThreadPoolExecutor(1) as outside:  # a notebook has an event loop in this thread
        for at in range(0, len(messages), _PER_REQUEST):
            accepted += sum(outside.submit(send, chosen.kafka, messages[at : at + _PER_REQUEST]).result())
    return accepted


def read_labels(source: Source, max_bytes: int, consequence: str) -> list[ReadLabel]:
    """Return the labels of a source, in order. Raises `ConfigError` with every fault, and the consequence first."""
    found: list[ReadLabel] = []
    faults: list[str] = []
    for item in source.items:
        record = item.record
        try:
            if isinstance(record, RefusedItem):
                raise record.fault
            label = decode(record, max_bytes)
            assert record.value is not None  # or it would be refused
            found.append(ReadLabel(label, record.value))
        except BadRecord as fault:
            number = record.number if isinstance(record, RefusedItem) else record.offset
            faults.append(f"label {number}: {fault.detail or fault.reason}")
    if faults:
        more = [f"and {len(faults) - _MOST_FAULTS:,} more"] if len(faults) > _MOST_FAULTS else []
        raise ConfigError(f"{consequence}; correct these:", *faults[:_MOST_FAULTS], *more)
    return found
