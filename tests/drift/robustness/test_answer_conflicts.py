"""Answers to one question agree or not, by arithmetic that is worked by hand."""

import numpy as np
import pytest

from ragtide.drift.robustness.answer_agreement import AnswerConflict, AnswerFeatures, find_conflict


def answers(*claims: dict[str, str]) -> list[AnswerFeatures]:
    """Named a, b, …; the values of a kind are letters."""
    return [
        AnswerFeatures(name, claims={kind: frozenset(values) for kind, values in own.items()})
        for name, own in zip("abcdefghij", claims, strict=False)
    ]


def at(*degrees: float) -> list[AnswerFeatures]:
    """Vectors that lie so in a plane, of any length."""
    turned = np.radians(degrees)
    return [
        AnswerFeatures(name, vector=np.array([np.cos(one), np.sin(one)], np.float32) * (number + 1))
        for number, (name, one) in enumerate(zip("abcdefghij", turned, strict=False))
    ]


@pytest.mark.parametrize(
    ("claims", "odd"),
    [
        ([{"eur": "x"}, {"eur": "x"}, {"eur": "y"}], "c"),
        ([{"eur": "x"}, {"eur": "xy"}, {"eur": "y"}], None),  # b shares with both
        ([{"eur": "x"}, {"eur": "y"}, {}], None),  # two that state something: neither is odd
        ([{"eur": "x"}, {"usd": "y"}, {"percent": "z"}], None),  # of different kinds
        ([{"eur": "x"}] * 5 + [{"eur": "y"}] * 5, "a"),  # two camps: each is against 5 of 9
        ([{"eur": "x", "days": "m"}, {"days": "m"}, {"eur": "x"}, {"days": "n"}, {"eur": "x"}], "d"),
        ([{"eur": "w"}, {"eur": "wx"}, {"eur": "xy"}, {"eur": "yz"}, {"eur": "z"}], "a"),  # against 3 of 4
        ([{"eur": "wx"}, {"eur": "wy"}, {"eur": "xz"}, {"eur": "yz"}, {"eur": "wz"}], None),  # each against 1 of 4
    ],
)
def test_an_answer_is_odd_where_most_that_state_the_like_state_something_else(
    claims: list[dict[str, str]], odd: str | None
) -> None:
    found = find_conflict(answers(*claims), None)
    assert (found.odd if found else None) == odd


def test_yes_or_no_goes_before_figures() -> None:
    said = answers({"stance": "n", "eur": "x"}, {"stance": "y", "eur": "z"}, {"stance": "y", "eur": "z"})
    assert find_conflict(said, None) == AnswerConflict("stance", "a", "b")


def test_a_refusal_among_answers_is_one_and_what_refusals_say_is_not_compared() -> None:
    refusing = AnswerFeatures("r", is_refusal=True, claims={"stance": frozenset("n")})
    answering = [AnswerFeatures(name, is_refusal=False, claims={"stance": frozenset("y")}) for name in "ab"]
    assert find_conflict([*answering, refusing], 0.3) == AnswerConflict("refusal", "r", "a")
    assert find_conflict([refusing] * 3, 0.3) is None
    unknown = AnswerFeatures("u", claims={"stance": frozenset("y")})
    assert find_conflict([refusing, unknown, unknown], 0.3) is None, "nobody knows whether those answered"


def test_an_answer_that_is_far_from_half_of_the_others() -> None:
    # Cosines of d to the others: cos 80°, cos 80°, cos 60°; their median is cos 80° = 0.17.
    assert find_conflict(at(0, 0, 20, 80), 0.3) == AnswerConflict("meaning", "d", "a")
    assert find_conflict(at(0, 0, 20, 80), 0.1) is None
    assert find_conflict(at(0, 0, 20, 80), None) is None, "a line that was not measured"
    assert find_conflict(at(0, 80), 0.3) is None, "of two nobody knows which one is odd"
    assert find_conflict(at(0, 40, 80), 0.3) is None, "a and c are 80° apart, but b lies between: 0.77 and 0.17"
