"""From rows that the sink will never take back to the records that they came from."""

import logging
from collections.abc import Sequence

from sinks.identity import rows_of
from sinks.refusal import SetAside
from sinks.rows import Block
from sinks.version import offset_of
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

    `records` are those that the rows were made of, and of one partition: rows tell the offset, and not all the rest.
    """
    if len({(record.topic, record.partition) for record in records}) > 1:
        raise ValueError("records of several partitions: an offset does not tell them apart")
    by_offset = {record.offset: record for record in records}
    letters: dict[int, DeadLetter] = {}
    for aside in refused:
        version = getattr(aside.row, "version", None)
        offset = None if version is None else offset_of(version)
        log.error("the sink refused a row of table %s (offset %s): %s", aside.table, offset, aside.reason)
        if offset is not None:
            letter = DeadLetter(by_offset[offset], "refused", "sink", f"{aside.table}: {aside.reason}")
            letters.setdefault(offset, letter)
    return list(letters.values())
