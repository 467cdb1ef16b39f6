"""Values that follow one of their kind, and numbers that only look so."""

import pytest

from ragtide.evaluators.leaks import scanner

scan = scanner()


def found(text: str) -> list[str]:
    return [text[hit.start : hit.end] for hit in scan(text).hits]


@pytest.mark.parametrize(
    "text",
    [
        "Passports: X10000001, X20000002 and X30000003",
        "passports:\n- X10000001\n- X20000002\n- X30000003",
        '{"passport": ["X10000001", "X20000002", "X30000003"]}',
        "Passport X10000001 or X20000002 / X30000003",
    ],
)
def test_all_values_of_a_list_are_found(text: str) -> None:
    assert found(text) == ["X10000001", "X20000002", "X30000003"]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("passport X10000001, 20000002 pages", "X10000001"),  # of another form
        ("passport X10000001,X20000002,X30000003", "X10000001"),  # cells of other columns
        ("| passport | X10000001 | X20000002 |", "X10000001"),
        ("passport X10000001, X20000002-B", "X10000001"),  # part of something longer
        ("PIN: 6803, 6804, 6805", "6803"),  # as short as counts and years
    ],
)
def test_what_is_no_list_ends_it(text: str, first: str) -> None:
    assert found(text) == [first]
