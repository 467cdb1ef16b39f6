from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import NotApplicable
from tests.evaluators.builtin.scoring import outcome, scored

PAIRS = (
    ("the cat", "cat?"),
    ("theater", "theater"),
    ("YELLING", "yelling"),
    ("agent007", "agent"),
    ("Eiffel tower", "the Eiffel Tower!"),
)
EITHER_CASE = {"ignore_case": True, "ignore_punctuation": True}
# Hugging Face's evaluate (a7dd338): for each way of normalising, which of the pairs are equal.
HUGGING_FACE: list[tuple[dict[str, Any], list[float]]] = [
    ({}, [0, 1, 0, 0, 0]),
    ({"regexes_to_ignore": ["the ", "yell"]}, [0, 1, 0, 0, 0]),
    ({"regexes_to_ignore": ["the ", "yell"], **EITHER_CASE}, [1, 1, 0, 0, 1]),
    ({"regexes_to_ignore": ["the ", "yell", "YELL"], **EITHER_CASE, "ignore_numbers": True}, [1, 1, 1, 1, 1]),
    ({"ignore_case": True}, [0, 1, 1, 0, 0]),
    ({"ignore_punctuation": True}, [0, 1, 0, 0, 0]),
    ({"ignore_numbers": True}, [0, 1, 0, 1, 0]),
]


def exact_match(answer: str, *expected: str, **params: Any) -> float:
    return scored("exact_match", params, answer=answer, expected=expected).metrics["exact_match"]


@pytest.mark.parametrize(("params", "equal"), HUGGING_FACE)
def test_equals_hugging_face(params: dict[str, Any], equal: list[float]) -> None:
    assert [exact_match(answer, reference, **params) for reference, answer in PAIRS] == equal


def test_expressions_are_taken_out_before_the_case_is() -> None:
    assert exact_match("A b", "b", regexes_to_ignore=["a "], ignore_case=True) == 0.0
    assert exact_match("a B", "b", regexes_to_ignore=["a "], ignore_case=True) == 1.0


def test_expressions_know_more_than_ascii() -> None:
    assert exact_match("Ångström 東京\ud800", "東京\ufffd", regexes_to_ignore=[r"\pL+ "]) == 1.0


def test_any_of_the_references_may_be_equal_and_white_space_counts() -> None:
    assert exact_match("b", "a", "b") == 1.0
    assert exact_match("b ", "a", "b") == 0.0
    assert exact_match("", "") == 1.0


def test_without_a_reference_there_is_no_score() -> None:
    assert outcome("exact_match", answer="a", expected=()) == NotApplicable("empty_expected")


@pytest.mark.parametrize("expression", ["a(.*b)?", "[ab]{1,300}c", ""])
def test_taking_out_is_never_quadratic(expression: str) -> None:
    params, short, long = {"regexes_to_ignore": [expression]}, "a" * 100, "a" * 400_000
    assert exact_match(short, short, **params) == 1.0
    assert outcome("exact_match", params, answer=long, expected=(long,)) == NotApplicable("too_long")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [("(", "expression 1: .*missing"), (r"(a)\1", "invalid escape"), ("[ab]{900}" * 9, "large")],
)
def test_an_expression_without_linear_time_is_refused_at_start(expression: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"exact_match\.regexes_to_ignore.*{reason}"):
        outcome("exact_match", {"regexes_to_ignore": ["fine", expression]}, answer="a", expected=("a",))
