"""Refused rows lead back to their own records, however alike the rows of two partitions are."""

import pytest

from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.row_identity import Row
from ragtide.sinks.rows import Block
from ragtide.sinks.sample import embedding, score, text, trace
from ragtide.stream.ingest.enriched import version_of
from ragtide.stream.ingest.records import DeadLetter
from ragtide.stream.worker.rejected_rows import dead_letters_of, rejected_by_block
from tests.stream.core.rows import dead, progress, record


def refused(*rows: Row) -> list[RejectedRow]:
    return [RejectedRow("traces", row, "odd") for row in rows]


def test_equal_rows_of_two_blocks_belong_to_their_own() -> None:
    first, second = (
        Block(texts=[text("t", version=version_of(record(7)))], progress=[progress(0, 8)]) for _ in range(2)
    )
    assert first.texts == second.texts
    (aside,) = refused(second.texts[0])
    assert rejected_by_block([aside], [first, second]) == [[], [aside]]
    (mark,) = refused(first.progress[0])
    assert rejected_by_block([mark], [first, second]) == [[mark], []]
    assert rejected_by_block([], [first, second]) == [[], []]


def test_a_record_is_one_dead_letter_however_many_rows_were_refused() -> None:
    records = [record(number) for number in (6, 7, 8)]
    scores = (score(trace_id, version=version_of(record(offset)) + 3) for trace_id, offset in (("t", 7), ("u", 8)))
    vector = embedding("t", version=version_of(record(7)))
    letters = dead_letters_of(refused(trace("t", version=version_of(record(7))), *scores, vector), records)
    assert letters == [
        DeadLetter(records[1], "refused", "sink", "traces: odd"),
        DeadLetter(records[2], "refused", "sink", "traces: odd"),
    ]


def test_rows_about_dead_letters_and_progress_become_none() -> None:
    assert dead_letters_of(refused(dead(7), progress(0, 7)), [record(7)]) == []


def test_records_of_several_partitions_are_told_apart_by_their_versions() -> None:
    records = [record(7), record(7, partition=1)]
    rows = [trace("t", version=version_of(one)) for one in records]
    letters = dead_letters_of(refused(*rows), records)
    assert [letter.record for letter in letters] == records


def test_records_of_several_partitions_with_one_version_are_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="several partitions with one version"):
        dead_letters_of(refused(trace("t", version=version_of(record(7)))), [record(7), record(7, partition=255)])
