"""What enriches a message is known by that message's place, time and version, and by nothing of its own."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.errors import BadRecord
from sinks.refusal import SetAside
from sinks.version import LAST_OFFSET, LAST_REVISION, LAST_TIMESTAMP, pack
from stream.ingest.enriched import as_known, headers, version_of
from stream.ingest.records import StoredRecord
from stream.lanes.refused import dead_letters_of
from stream.settings import Settings
from tests.stream.pipe.records import AT_MS, record
from tests.stream.pipe.test_pipeline import pipeline

LATER_MS = AT_MS + 30 * 86_400_000


def enriching(offset: int = 9, revision: int = 1, timestamp: int = LATER_MS) -> StoredRecord:
    """As a consumer sees it: at a place and time of its own, about the message at rag.traces/0/5."""
    sent = record(offset=offset, timestamp=timestamp, expected=["it is so"])
    return replace(sent, headers=[("traceparent", b"00"), *headers("rag.traces", 0, 5, AT_MS, revision)])


@given(
    st.text(min_size=1),
    st.integers(0, (1 << 31) - 1),
    st.integers(0, LAST_OFFSET),
    st.integers(0, LAST_TIMESTAMP),
    st.integers(1, LAST_REVISION),
)
def test_headers_lead_back(topic: str, partition: int, offset: int, timestamp: int, revision: int) -> None:
    if any("\ud800" <= sign <= "\udfff" for sign in topic):
        return
    sent = replace(record(), headers=headers(topic, partition, offset, timestamp, revision))
    known = as_known(sent)
    assert (known.topic, known.partition, known.offset, known.timestamp) == (topic, partition, offset, timestamp)
    assert (known.key, known.value) == (sent.key, sent.value)
    assert version_of(known) == pack(timestamp, offset, revision)


def test_other_headers_change_nothing() -> None:
    plain = record()
    other = replace(plain, headers=[("traceparent", b"00-1"), ("enriched", None)])
    assert as_known(plain) is plain
    assert as_known(other) is other
    assert version_of(other) == pack(AT_MS, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topic", b""),
        ("topic", b"\xff"),
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
    wrong = replace(record(offset=9), headers=list(told.items()))
    with pytest.raises(BadRecord) as bad:
        as_known(wrong)
    assert bad.value.reason == "bad_enrichment"
    done = pipeline().process([wrong])
    assert [(letter.record, letter.reason) for letter in done.dead] == [(wrong, "bad_enrichment")]
    assert [row.offset for row in done.block.dead_letters] == [9]


def test_its_rows_win_over_those_of_the_message_and_lose_against_a_newer_one() -> None:
    original, enriched, newer = record(offset=5), enriching(), record(offset=6, timestamp=AT_MS + 1)
    (row,) = pipeline().process([enriched]).block.traces
    assert (row.topic, row.partition, row.offset) == ("rag.traces", 0, 5)
    assert row.version == pack(AT_MS, 5, 1)
    for records in ([original, enriched], [enriched, original]):  # in one slice, whichever comes first
        block = pipeline().process(records).block
        assert [one.version for one in block.traces] == [pack(AT_MS, 5, 1)]
        assert [one.version for one in block.scores] == [pack(AT_MS, 5, 1, 3)]
        assert [one.expected for one in block.texts] == [("it is so",)]
    block = pipeline().process([newer, enriched, original]).block
    assert [one.version for one in block.traces] == [pack(AT_MS + 1, 6)]


def test_one_of_days_ago_is_neither_too_old_nor_news() -> None:
    done = pipeline().process([enriching()])
    assert not done.dead
    assert done.newest == datetime.fromtimestamp(LATER_MS / 1000, UTC)  # all before it is stored: it holds nothing back


def test_its_own_timestamp_may_be_beyond_all_time() -> None:
    done = pipeline().process([enriching(timestamp=AT_MS * 1000)])
    assert [row.trace_id for row in done.block.traces] == ["t-1"]


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
    letters = dead_letters_of([SetAside("scores", row, "odd")], [original, enriched, unreadable])
    assert [letter.record for letter in letters] == [enriched]
