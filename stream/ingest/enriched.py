"""Messages that enrich an earlier one: the same trace with facts of labels, recognised by headers.

`enriches.topic`, `.partition`, `.offset` and `.timestamp` say where the message lay that it enriches, `.revision` how
many labels went into it. Its rows have the version of that message with the revision: they win over its rows however
often that one is read again, and lose against those of a newer message.

`.judges` names evaluators that score the trace because a person disliked the answer, on request: the score stands for
no other trace. `.only` is `judges` if the message is for nothing else, so that it replaces no other row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragtide.evaluators.errors import BadRecord
from ragtide.evaluators.trace import LONGEST_NAME
from ragtide.sinks.version import LAST_REVISION, LAST_TIMESTAMP, pack, source_of
from ragtide.stream.ingest.names import has_control_characters
from ragtide.stream.ingest.records import Record, StoredRecord, check_readable

_PREFIX = "enriches."
Header = tuple[str, bytes]
_LAST_PARTITION = (1 << 31) - 1
LAST_OFFSET = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class EnrichedRecord(StoredRecord):
    """Value and key of an enriching message; topic, partition, offset and timestamp of the enriched one.

    `sent_ms` is the timestamp of the message that enriches. `judges` are evaluators that score the trace on request,
    `only_judges` says that nothing else reads it.
    """

    revision: int = field(kw_only=True)
    sent_ms: int = field(kw_only=True)
    judges: frozenset[str] = field(default=frozenset(), kw_only=True)
    only_judges: bool = field(default=False, kw_only=True)


def resolve_enrichment(record: Record) -> Record:
    """Return the record, or an `EnrichedRecord` by its headers; raise `BadRecord` if they are invalid.

    Checks all headers; calls `check_readable` first.
    """
    check_readable(record)
    found = {name: value for name, value in record.headers if name.startswith(_PREFIX)}
    if not found:
        return record
    judges = _names(found, "judges")
    return EnrichedRecord(
        _text(found, "topic"),
        _number(found, "partition", 0, _LAST_PARTITION),
        _number(found, "offset", 0, LAST_OFFSET),
        _number(found, "timestamp", 0, LAST_TIMESTAMP),
        record.key,
        record.value,
        record.headers,
        revision=_number(found, "revision", 1, LAST_REVISION),
        sent_ms=record.timestamp,
        judges=judges,
        only_judges=bool(judges) and f"{_PREFIX}only" in found,
    )


def version_of(record: Record) -> int:
    """Version of the record's rows, with the evaluator's part at 0.

    A record without a timestamp has no source: the lines of a file keep their order when the file is renamed.
    """
    revision = record.revision if isinstance(record, EnrichedRecord) else 0
    source = source_of(record.topic, record.partition) if record.timestamp > 0 else 0
    return pack(record.timestamp, record.offset, revision, source=source)


def requested_judges(record: Record) -> frozenset[str]:
    """Return the evaluators that score the trace of the record on request."""
    return record.judges if isinstance(record, EnrichedRecord) else frozenset()


def is_only_for_judges(record: Record) -> bool:
    """Tell whether the record is for the judges that it names, and for nothing else."""
    return isinstance(record, EnrichedRecord) and record.only_judges


def enrichment_headers(
    topic: str,
    partition: int,
    offset: int,
    timestamp: int,
    revision: int,
    judges: Sequence[str] = (),
    *,
    only_judges: bool = False,
) -> list[Header]:
    """Make the headers of a message that enriches the one at this position, with judges that score it on request."""
    found: dict[str, str | int] = {"topic": topic, "partition": partition, "offset": offset, "timestamp": timestamp}
    found["revision"] = revision
    if judges:
        found["judges"] = ",".join(judges)
    if only_judges:
        found["only"] = "judges"
    return [(f"{_PREFIX}{name}", str(value).encode()) for name, value in found.items()]


def _text(found: Mapping[str, bytes | None], name: str) -> str:
    try:
        text = (found.get(f"{_PREFIX}{name}") or b"").decode()
    except UnicodeDecodeError:
        text = ""
    if not text or len(text) > LONGEST_NAME or has_control_characters(text):
        raise _bad_header(name, f"the name of a topic, of at most {LONGEST_NAME} characters")
    return text


def _names(found: Mapping[str, bytes | None], name: str) -> frozenset[str]:
    """Return the names of a list with commas; empty if the header is absent."""
    if f"{_PREFIX}{name}" not in found:
        return frozenset()
    try:
        names = (found[f"{_PREFIX}{name}"] or b"").decode().split(",")
    except UnicodeDecodeError:
        names = []
    if not names or not all(one and len(one) <= LONGEST_NAME and not has_control_characters(one) for one in names):
        raise _bad_header(name, "ids of evaluators, separated by commas")
    return frozenset(names)


def _number(found: Mapping[str, bytes | None], name: str, min_value: int, max_value: int) -> int:
    value = found.get(f"{_PREFIX}{name}") or b""
    if not value.isdigit() or len(value) > len(str(max_value)) or not min_value <= int(value) <= max_value:
        raise _bad_header(name, f"a number from {min_value} to {max_value}")
    return int(value)


def _bad_header(name: str, what: str) -> BadRecord:
    return BadRecord(
        "bad_enrichment", f"header {_PREFIX}{name}: {what}; all but judges and only are needed where one is"
    )
