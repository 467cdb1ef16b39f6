"""A version is ordered as the tuple it packs."""

from hypothesis import given
from hypothesis import strategies as st

from ragtide.sinks.version import pack, revision_of, source_of, timestamp_of, without_evaluator

PARTS = st.tuples(
    st.integers(0, (1 << 48) - 1),  # timestamp
    st.integers(0, (1 << 8) - 1),  # source
    st.integers(0, (1 << 40) - 1),  # offset
    st.integers(0, (1 << 16) - 1),  # revision
    st.integers(0, (1 << 16) - 1),  # evaluator
)
Parts = tuple[int, int, int, int, int]


def packed(parts: Parts) -> int:
    timestamp, source, offset, revision, evaluator = parts
    return pack(timestamp, offset, revision, evaluator, source=source)


@given(PARTS, PARTS)
def test_order(one: Parts, other: Parts) -> None:
    assert (packed(one) < packed(other)) == (one < other)
    assert (packed(one) == packed(other)) == (one == other)


@given(st.tuples(*[st.integers(-(1 << 70), 1 << 70)] * 5))
def test_it_always_fits_its_column(parts: Parts) -> None:
    assert 0 <= packed(parts) < 1 << 128


@given(PARTS)
def test_the_parts_are_read_back(parts: Parts) -> None:
    version = packed(parts)
    assert (timestamp_of(version), revision_of(version)) == (parts[0], parts[3])
    assert without_evaluator(version) == packed((*parts[:4], 0))


@given(PARTS)
def test_without_a_source_a_version_is_as_older_releases_stored_it(parts: Parts) -> None:
    timestamp, _, offset, revision, evaluator = parts
    assert packed((timestamp, 0, *parts[2:])) == (timestamp << 80) + (offset << 32) + (revision << 16) + evaluator


def test_255_partitions_of_a_topic_have_different_sources() -> None:
    assert {source_of("rag.traces", partition) for partition in range(7, 262)} == set(range(1, 256))
    assert 1 <= source_of("file:\udcff", 0) <= 255  # a name that is not valid UTF-8


def test_by_hand() -> None:
    assert pack(1, 2, 3, 4) == (1 << 80) + (2 << 32) + (3 << 16) + 4
    assert pack(1, 2, 3, 4, source=5) == (1 << 80) + (5 << 72) + (2 << 32) + (3 << 16) + 4
    assert pack(-1, (1 << 40) + 7) == 7 << 32
