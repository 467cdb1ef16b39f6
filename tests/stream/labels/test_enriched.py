"""What enriches a message is known by that message's place, time and version, and by nothing of its own."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ragtide.sinks.bisect import RejectedRow
from ragtide.sinks.version import LAST_REVISION, LAST_TIMESTAMP, pack, source_of
from ragtide.stream.ingest.enriched import (
    LAST_OFFSET,
    enrichment_headers,
    is_only_for_judges,
    requested_judges,
    resolve_enrichment,
    version_of,
)
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.loader import Settings
from ragtide.stream.worker.rejected_rows import dead_letters_of
from tests.stream.pipe.records import AT_MS, record, version
from tests.stream.pipe.test_pipeline import pipeline

LATER_MS = AT_MS + 30 * 86_400_000


def enriching(offset: int = 9, revision: int = 1, timestamp: int = LATER_MS) -> StoredRecord:
    """As a consumer sees it: at a place and time of its own, about the message at rag.traces/0/5."""
    sent = record(offset=offset, timestamp=timestamp, expected=["it is so"])
    return replace(sent, headers=[("traceparent", b"00"), *enrichment_headers("rag.traces", 0, 5, AT_MS, revision)])


@given(
    st.text(min_size=1, max_size=256),
    st.integers(0, (1 << 31) - 1),
    st.integers(0, LAST_OFFSET),
    st.integers(0, LAST_TIMESTAMP),
    st.integers(1, LAST_REVISION),
)
def test_headers_lead_back(topic: str, partition: int, offset: int, timestamp: int, revision: int) -> None:
    assume(topic.isprintable())
    sent = replace(record(), headers=enrichment_headers(topic, partition, offset, timestamp, revision))
    known = resolve_enrichment(sent)
    assert (known.topic, known.partition, known.offset, known.timestamp) == (topic, partition, offset, timestamp)
    assert (known.key, known.value) == (sent.key, sent.value)
    assert version_of(known) == pack(
        timestamp, offset, revision, source=source_of(topic, partition) if timestamp else 0
    )


def test_judges_that_score_on_request_are_known_by_headers() -> None:
    sent = replace(record(), headers=enrichment_headers("rag.traces", 0, 5, AT_MS, 1, ["a", "b"], only_judges=True))
    known = resolve_enrichment(sent)
    assert (requested_judges(known), is_only_for_judges(known)) == (frozenset(("a", "b")), True)
    assert (requested_judges(enriching()), is_only_for_judges(enriching())) == (frozenset(), False)


def test_other_headers_change_nothing() -> None:
    plain = record()
    other = replace(plain, headers=[("traceparent", b"00-1"), ("enriched", None)])
    assert resolve_enrichment(plain) is plain
    assert resolve_enrichment(other) is other
    assert version_of(other) == version(0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("judges", b""),
        ("judges", b"a,,b"),
        ("judges", b"\xff"),
        ("topic", b""),
        ("topic", b"\xff"),
        ("topic", b"t" * 257),
        ("topic", b"rag.traces\x1b[2J"),
        ("timestamp", str(LATER_MS + 86_400_001).encode()),  # more than a day after the message's own
        ("timestamp", str(LATER_MS - 90 * 86_400_000 - 1).encode()),  # whose scores are deleted by now
        ("partition", b"-1"),
        ("offset", str(LAST_OFFSET + 1).encode()),
        ("offset", b"9" * 100_000),
        ("timestamp", b"1.5"),
        ("timestamp", b" 1"),
        ("revision", b"0"),
        ("revision", b"65536"),
        ("revision", None),
        ("offset", "\N{ARABIC-INDIC DIGIT FIVE}".encode()),
    ],
)
def test_wrong_headers_make_a_dead_letter(name: str, value: bytes | None) -> None:
    told = dict(enriching().headers) | {f"enriches.{name}": value}
    wrong = replace(record(offset=9, timestamp=LATER_MS), headers=list(told.items()))
    done = pipeline().process([wrong])
    assert [(letter.record, letter.reason) for letter in done.dead] == [(wrong, "bad_enrichment")]
    assert [row.offset for row in done.block.dead_letters] == [9]


def test_its_rows_win_over_those_of_the_message_and_lose_against_a_newer_one() -> None:
    original, enriched, newer = record(offset=5), enriching(), record(offset=6, timestamp=AT_MS + 1)
    (row,) = pipeline().process([enriched]).block.traces
    assert (row.topic, row.partition, row.offset) == ("rag.traces", 0, 5)
    assert row.version == version(5, 1)
    for records in ([original, enriched], [enriched, original]):  # in one slice, whichever comes first
        block = pipeline().process(records).block
        assert [one.version for one in block.traces] == [version(5, 1)]
        assert [one.version for one in block.scores] == [version(5, 1, 3)]
        assert [one.expected for one in block.texts] == [("it is so",)]
    block = pipeline().process([newer, enriched, original]).block
    assert [one.version for one in block.traces] == [version_of(newer)]


def test_one_of_days_ago_is_neither_too_old_nor_news() -> None:
    done = pipeline().process([enriching()])
    assert not done.dead
    assert done.newest == datetime.fromtimestamp(LATER_MS / 1000, UTC)  # all before it is stored: it holds nothing back


@pytest.mark.parametrize(
    ("timestamp", "reason"), [(0, "no_timestamp"), (-1, "no_timestamp"), (AT_MS * 1000, "timestamp_in_the_future")]
)
def test_its_own_timestamp_is_limited_as_that_of_every_record(timestamp: int, reason: str) -> None:
    done = pipeline().process([enriching(timestamp=timestamp)])
    assert [letter.reason for letter in done.dead] == [reason]
    assert done.block.traces == []


def test_one_about_a_line_of_a_file_is_limited_by_its_own_timestamp() -> None:
    def about_a_line(time_ms: int) -> list[str]:
        sent = record(timestamp=LATER_MS, time=time_ms)
        done = pipeline().process([replace(sent, headers=enrichment_headers("file:traces.jsonl", 0, 7, 0, 1))])
        return [letter.reason for letter in done.dead] or [row.topic for row in done.block.traces]

    assert about_a_line(LATER_MS - 89 * 86_400_000) == ["file:traces.jsonl"]
    assert about_a_line(LATER_MS + 2 * 86_400_000) == ["in_the_future"]
    assert about_a_line(LATER_MS - 91 * 86_400_000) == []  # expired


def test_its_user_is_not_hashed_twice() -> None:
    privacy = {"hash_users": True, "hash_key": "k"}
    settings = Settings.model_validate({"privacy": privacy})
    (first,) = pipeline(settings=settings).process([record(user_id="ada")]).block.traces
    again = replace(record(user_id=first.user_id), headers=enriching().headers)
    (second,) = pipeline(settings=settings).process([again]).block.traces
    assert first.user_id not in ("", "ada")
    assert second.user_id == first.user_id


def test_what_the_sink_refuses_of_it_leads_back_to_it() -> None:
    original, enriched = record(offset=5), enriching(offset=9)
    unreadable = replace(record(offset=10), headers=[("enriches.offset", b"5")])
    (row,) = pipeline().process([enriched]).block.scores
    letters = dead_letters_of([RejectedRow("scores", row, "odd")], [original, enriched, unreadable])
    assert [letter.record for letter in letters] == [enriched]
