"""A version is ordered as the tuple it packs."""

from hypothesis import given
from hypothesis import strategies as st

from sinks.version import offset_of, pack

PARTS = st.tuples(
    st.integers(0, (1 << 48) - 1),
    st.integers(0, (1 << 48) - 1),
    st.integers(0, (1 << 16) - 1),
    st.integers(0, (1 << 16) - 1),
)


@given(PARTS, PARTS)
def test_order(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> None:
    assert (pack(*one) < pack(*other)) == (one < other)
    assert (pack(*one) == pack(*other)) == (one == other)


@given(st.tuples(*[st.integers(-(1 << 70), 1 << 70)] * 4))
def test_it_always_fits_its_column(parts: tuple[int, int, int, int]) -> None:
    assert 0 <= pack(*parts) < 1 << 128


@given(PARTS)
def test_the_offset_is_read_back(parts: tuple[int, int, int, int]) -> None:
    assert offset_of(pack(*parts)) == parts[1]


def test_by_hand() -> None:
    assert pack(1, 2, 3, 4) == (1 << 80) + (2 << 32) + (3 << 16) + 4
    assert pack(-1, 1 << 60) == ((1 << 48) - 1) << 32
