"""Numbers in sentences are read by people: three digits, thousands in full, no powers of ten."""

import pytest

from ragtide.drift.text import number


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (-3.14159, "-3.14"),
        (999.4, "999"),
        (999.6, "1,000"),
        (1234567.8, "1,234,568"),
        (0.00012345, "0.000123"),
        (0.000012345, "0.0000123"),
        (-0.0000012, "-0.0000012"),
        (float("inf"), "inf"),
    ],
)
def test_a_number_is_said_in_three_digits(value: float, said: str) -> None:
    assert number(value) == said
    assert number(value, "s") == f"{said} s"
