"""Names are words that tell topics apart, and never what belongs to a person."""

import pytest

from ragtide.drift.topics.naming import names_of as named
from ragtide.drift.topics.naming import words_of


def names_of(topics: list[list[str]], others: list[str]) -> list[str]:
    return named(topics, others, min_questions=5)


def asked(*words: str, times: int = 6) -> list[str]:
    """Different questions, each with these words and one of its own, in letters."""
    return [f"how do i {' '.join(words)} {chr(97 + i) * 4}?" for i in range(times)]


def test_words_that_every_topic_has_name_none() -> None:
    assert names_of([asked("refund", "order"), asked("reset", "password")], []) == ["order, refund", "password, reset"]


def test_the_word_that_tells_most_comes_first() -> None:
    """Of 12 questions 6 are of the first topic: refund 6/6 ln(1 / (6/12)) = 0.69, order 6/6 ln(1 / (9/12)) = 0.29."""
    others = [*asked("order", "password", times=3), *asked("reset", "password", times=3)]
    assert names_of([asked("order", "refund"), others], [])[0] == "refund, order"


def test_languages_need_no_list_of_stop_words() -> None:
    topics = [
        [f"wie kann ich die rechnung {chr(97 + i) * 3} bezahlen" for i in range(6)],
        [f"wie kann ich die lieferung {chr(97 + i) * 3} verfolgen" for i in range(6)],
    ]
    assert names_of(topics, []) == ["bezahlen, rechnung", "lieferung, verfolgen"]


def test_where_no_spaces_are_two_characters_are_a_word() -> None:
    assert words_of("退款订单") == {"退款", "款订", "订单"}


def test_a_word_of_four_questions_names_nothing() -> None:
    topic = [*asked("invoice", times=6), *asked("mustermann", times=4)]
    assert names_of([topic, asked("reset")], [])[0] == "invoice"


def test_how_many_questions_must_share_a_word_is_said() -> None:
    topic = [*asked("invoice", times=9), *asked("invoice", "mustermann", times=7)]
    assert named([topic, asked("reset", times=9)], [], min_questions=7)[0] == "invoice, mustermann"
    assert named([topic, asked("reset", times=9)], [], min_questions=8)[0] == "invoice"


def test_the_same_words_again_are_one_question() -> None:
    assert names_of([["How do I find Mustermann?", "how do i find  mustermann"] * 10, asked("reset")], []) == [
        "",
        "reset",
    ]


@pytest.mark.parametrize(
    "question",
    [
        "mail maria.mustermann@example.org about it",
        "mail [email] about it",
        "mail [email 3fa2b1c0] about it",
    ],
)
def test_what_is_personal_or_masked_is_no_word(question: str) -> None:
    assert words_of(question) == {"mail", "about"}


def test_texts_that_are_not_stored_name_nothing() -> None:
    assert names_of([["", ""], [""]], [""]) == ["", ""]
