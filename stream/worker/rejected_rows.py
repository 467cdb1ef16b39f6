"""Find the records of rows that the sink rejected."""

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
    """Rejected rows of each block, in the order of `blocks`.

    A row belongs to the block that holds this very object: rows of two partitions may be equal.
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
    """One dead letter per record with rejected rows; marks and rows of dead letters have none.

    `records` are those of the rows. A row identifies its record by the version only, so records of several partitions
    must have different ones.
    """
    by_version: dict[int, Record] = {}
    for known, record in known_versions(records):
        other = by_version.setdefault(known, record)
        if (other.topic, other.partition) != (record.topic, record.partition):
            raise ValueError("records of several partitions with one version: it does not tell them apart")
        by_version[known] = record
    letters: dict[tuple[str, int, int], DeadLetter] = {}
    for one in rejected:
        version = getattr(one.row, "version", None)
        found = None if version is None else by_version[without_evaluator(version)]
        where = "" if found is None else f" (offset {found.offset})"
        log.error("the sink refused a row of table %s%s: %s", one.table, where, one.reason)
        if found is not None:
            letter = DeadLetter(found, "refused", "sink", f"{one.table}: {one.reason}")
            letters.setdefault((found.topic, found.partition, found.offset), letter)
    return list(letters.values())


def known_versions(records: Sequence[Record]) -> Iterator[tuple[int, Record]]:
    """Yield the versions of the records, enriching ones included; those with invalid headers have no rows."""
    for record in records:
        with suppress(BadRecord):
            yield version_of(resolve_enrichment(record)), record
