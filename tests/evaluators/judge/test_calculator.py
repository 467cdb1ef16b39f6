"""The calculator of agents: decimal arithmetic, and nothing that an expression says takes long or runs."""

import time
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.judge.calculator import LONGEST, NotCalculable, calculate


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("0.1 + 0.2", "0.3"),
        ("1 / 3", "0.33333333333333333333"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ^ 2", "-4"),
        ("2 ** -1", "0.5"),
        ("7 // 2 + 7 % 2", "4"),
        ("1.5e3 \u00d7 2 \u2212 .5", "2999.5"),
        ("round(2.345, 2)", "2.35"),
        ("round(2.5)", "3"),
        ("sqrt(2) * sqrt(2) - 2", "0"),
        ("max(1, 2, min(5, 3)) - abs(-4)", "-1"),
        ("(2021 - 1969) * 365.25", "18993"),
        ("1200 * 0.15", "180"),
        ("10 ** 30", "1E+30"),
        ("--1", "1"),
    ],
)
def test_arithmetic(expression: str, value: str) -> None:
    found = calculate(expression)
    assert Decimal(found) == pytest.approx(Decimal(value), abs=Decimal("1e-19"))
    if value != "0":
        assert found == value


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "a number is missing"),
        ("1 +", "a number is missing"),
        ("1 2", "out of place"),
        ("(1", "')' is missing"),
        ("1,000 * 2", "out of place"),
        ("1 / 0", "division by zero"),
        ("0 ** 0", "no value"),
        ("sqrt(-1)", "a root below zero"),
        ("9 ** 9 ** 9 ** 9", "too large"),
        ("9e9999 * 10", "too large"),
        ("__import__('os').system('id')", "does not know"),
        ("open(1)", "no names but abs, max, min, round, sqrt"),
        ("sqrt(1, 2)", "one number"),
        ("round(1, 2, 3)", "at most 2 numbers"),
        ("round(1, 999)", "0 to 20 places"),
        ("1 if 1 else 2", "out of place"),
        ("[0] * 9", "position 1"),
        ("5!", "position 2"),
        ("(" * 100 + "1" + ")" * 99, "levels deep"),
        ("1+" * 150 + "1", "longer than 200 characters"),
    ],
)
def test_what_is_no_arithmetic_says_why(expression: str, said: str) -> None:
    with pytest.raises(NotCalculable, match=said.replace("(", r"\(").replace(")", r"\)")):
        calculate(expression)


@given(st.text("0123456789.+-*/%^()eE ,", max_size=LONGEST) | st.text(max_size=40))
def test_any_text_ends_at_once_with_a_number_or_a_reason(expression: str) -> None:
    start = time.thread_time()
    with suppress(NotCalculable):
        Decimal(calculate(expression))
    assert time.thread_time() - start < 0.5


@pytest.mark.parametrize(
    "expression", ["9**" * 60 + "9", "9.9**9999.9", "2**0.5" * 30, "(" * 19 + "1" + ")" * 19, "9" * 200]
)
def test_towers_of_powers_take_no_time(expression: str) -> None:
    start = time.thread_time()
    with suppress(NotCalculable):
        calculate(expression)
    assert time.thread_time() - start < 0.5
