"""From rows that the sink will never take back to the records that they came from."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

from evaluators.errors import BadRecord
from sinks.identity import rows_of
from sinks.refusal import SetAside
from sinks.rows import Block
from sinks.version import without_evaluator
from stream.ingest.enriched import as_known, version_of
from stream.ingest.records import DeadLetter, Record

log = logging.getLogger(__name__)


def by_block(refused: Sequence[SetAside], blocks: Sequence[Block]) -> list[list[SetAside]]:
    """What was refused of each block, in the order of `blocks`.

    A row belongs to the block that holds that very object: rows of two partitions may be equal in all that they say.
    """
    found: list[list[SetAside]] = [[] for _ in blocks]
    if not refused:
        return found
    owners = {
        id(row): of for of, block in zip(found, blocks, strict=True) for rows in rows_of(block).values() for row in rows
    }
    for aside in refused:
        owners[id(aside.row)].append(aside)
    return found


def dead_letters_of(refused: Sequence[SetAside], records: Sequence[Record]) -> list[DeadLetter]:
    """One for each record that rows were refused of, however many; marks and rows about dead letters have none.

    `records` are those that the rows were made of, and of one partition: rows tell the version, and not all the rest.
    """
    if len({(record.topic, record.partition) for record in records}) > 1:
        raise ValueError("records of several partitions: an offset does not tell them apart")
    by_version = dict(_known_versions(records))
    letters: dict[int, DeadLetter] = {}
    for aside in refused:
        version = getattr(aside.row, "version", None)
        record = None if version is None else by_version[without_evaluator(version)]
        where = "" if record is None else f" (offset {record.offset})"
        log.error("the sink refused a row of table %s%s: %s", aside.table, where, aside.reason)
        if record is not None:
            letter = DeadLetter(record, "refused", "sink", f"{aside.table}: {aside.reason}")
            letters.setdefault(record.offset, letter)
    return list(letters.values())


def _known_versions(records: Sequence[Record]) -> Iterator[tuple[int, Record]]:
    """Of records that enrich others too; those whose headers are wrong have no rows."""
    for record in records:
        with suppress(BadRecord):
            yield version_of(as_known(record)), record
