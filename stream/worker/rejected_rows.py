"""From rows that the sink will never take back to the records that they came from."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ragtide.evaluators.errors import BadRecord
from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.row_identity import rows_of
from ragtide.sinks.rows import Block
from ragtide.sinks.version import without_evaluator
from ragtide.stream.ingest.enriched import resolve_enrichment, version_of
from ragtide.stream.ingest.records import DeadLetter, Record

log = logging.getLogger(__name__)


def rejected_by_block(rejected: Sequence[RejectedRow], blocks: Sequence[Block]) -> list[list[RejectedRow]]:
    """What was refused of each block, in the order of `blocks`.

    A row belongs to the block that holds that very object: rows of two partitions may be equal in all that they say.
    """
    found: list[list[RejectedRow]] = [[] for _ in blocks]
    if not rejected:
        return found
    owners = {
        id(row): of for of, block in zip(found, blocks, strict=True) for rows in rows_of(block).values() for row in rows
    }
    for one in rejected:
        owners[id(one.row)].append(one)
    return found


def dead_letters_of(rejected: Sequence[RejectedRow], records: Sequence[Record]) -> list[DeadLetter]:
    """One for each record that rows were refused of, however many; marks and rows about dead letters have none.

    `records` are those that the rows were made of, and of one partition: rows tell the version, and not all the rest.
    """
    if len({(record.topic, record.partition) for record in records}) > 1:
        raise ValueError("records of several partitions: an offset does not tell them apart")
    by_version = dict(_known_versions(records))
    letters: dict[int, DeadLetter] = {}
    for one in rejected:
        version = getattr(one.row, "version", None)
        record = None if version is None else by_version[without_evaluator(version)]
        where = "" if record is None else f" (offset {record.offset})"
        log.error("the sink refused a row of table %s%s: %s", one.table, where, one.reason)
        if record is not None:
            letter = DeadLetter(record, "refused", "sink", f"{one.table}: {one.reason}")
            letters.setdefault(record.offset, letter)
    return list(letters.values())


def _known_versions(records: Sequence[Record]) -> Iterator[tuple[int, Record]]:
    """Of records that enrich others too; those whose headers are wrong have no rows."""
    for record in records:
        with suppress(BadRecord):
            yield version_of(resolve_enrichment(record)), record
