"""Rows hold every reading, tokens that readings share once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.models.prefixes import (
    LEAST_SHARED,
    LONGEST_ROW,
    Reading,
    Row,
    Sheet,
    one_per_row,
    share_prefixes,
)

STEMS = [[stem] * LEAST_SHARED + list(range(9)) for stem in range(3)]


@st.composite
def readings(draw: st.DrawFn) -> list[Reading]:
    tokens = st.builds(
        lambda stem, tail: stem + tail,
        st.sampled_from([[], *STEMS]),
        st.lists(st.integers(0, 3), min_size=2, max_size=40),
    )
    drawn = draw(st.lists(tokens, min_size=1, max_size=12))
    return [Reading(owner, each, draw(st.integers(1, len(each) - 1))) for owner, each in enumerate(drawn)]


def unpacked(row: Row) -> list[list[int]]:
    """The tokens of each reading of a row, as a model would see them."""
    sheet = Sheet([row]).arrays
    if "parts" not in sheet:
        return [sheet["ids"][0].tolist()]
    [ids], [parts], [positions] = sheet["ids"], sheet["parts"], sheet["positions"]
    seen = []
    for part in range(1, len(row.readings) + 1):
        mine = (parts == 0) | (parts == part)
        assert positions[mine].tolist() == list(range(mine.sum()))
        seen.append(ids[mine].tolist())
    return seen


@given(readings())
def test_every_reading_is_in_one_row_and_fewer_tokens_are_read(given_readings: list[Reading]) -> None:
    rows = share_prefixes(given_readings)
    held = [reading for row in rows for reading in row.readings]
    assert sorted(held) == sorted(given_readings)
    assert sum(row.length for row in rows) <= sum(row.length for row in one_per_row(given_readings))
    for row in rows:
        assert row.length <= max(LONGEST_ROW, *(len(reading.tokens) for reading in row.readings))
        assert unpacked(row) == [reading.tokens for reading in row.readings]


@given(readings())
def test_a_scored_token_stands_behind_what_it_is_scored_by(given_readings: list[Reading]) -> None:
    for rows in (one_per_row(given_readings), share_prefixes(given_readings)):
        sheet = Sheet(rows)
        arrays = sheet.arrays
        before = arrays["ids"].reshape(-1)[arrays["places"]]
        expected = [
            (reading.owner, reading.tokens[i - 1], reading.tokens[i])
            for row in rows
            for reading in row.readings
            for i in range(reading.first, len(reading.tokens))
        ]
        assert list(zip(sheet.owners.tolist(), before.tolist(), arrays["targets"].tolist(), strict=True)) == expected


def test_what_is_common_to_most_is_read_once() -> None:
    stem = list(range(100, 100 + 2 * LEAST_SHARED))
    [row] = share_prefixes([Reading(i, [*stem, i, i], 2 * LEAST_SHARED) for i in range(8)])
    assert (row.shared, row.length) == (2 * LEAST_SHARED, 2 * LEAST_SHARED + 16)
    other = Reading(9, [*stem[:LEAST_SHARED], *range(50)], 60)
    assert {len(row.readings) for row in share_prefixes([*row.readings, other])} == {1, 8}, (
        "less in common would be read twice"
    )


def test_a_short_beginning_is_not_shared() -> None:
    stem = list(range(LEAST_SHARED - 1))
    assert len(share_prefixes([Reading(i, [*stem, 500 + i, 0], 20) for i in range(8)])) == 8


def test_a_row_ends_before_attention_outweighs_what_is_saved() -> None:
    stem = list(range(LONGEST_ROW // 2))
    rows = share_prefixes([Reading(i, [*stem, *([i] * 300)], 1) for i in range(12)])
    assert [len(row.readings) for row in rows] == [3, 3, 3, 3]


def test_padding_is_of_no_part() -> None:
    stem = list(range(LEAST_SHARED))
    rows = [*share_prefixes([Reading(i, [*stem, i], 1) for i in range(3)]), *one_per_row([Reading(3, [1, 2], 1)])]
    arrays = Sheet(rows).arrays
    assert arrays["parts"][1].tolist() == [0, 0] + [-1] * (LEAST_SHARED + 1)
    assert arrays["parts"][0].tolist() == [0] * LEAST_SHARED + [1, 2, 3]
    assert Sheet(rows).rows(0, 1).tokens == LEAST_SHARED + 3
    assert np.array_equal(Sheet(rows).rows(1, 2).arrays["ids"], [[1, 2]])
