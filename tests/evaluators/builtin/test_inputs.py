import pytest

from ragtide.evaluators.text.languages import language_of
from tests.evaluators.builtin.scoring import chunks, scored


def test_sizes_are_counted() -> None:
    given = scored(
        "inputs",
        question="What is the capital of France?",
        answer="Paris is the  capital.\n",
        contexts=chunks("one two", "three", None),
    )
    assert given.metrics == {"question_words": 6.0, "answer_words": 4.0, "contexts": 3.0, "context_words": 3.0}
    assert given.parts == {"question_characters": 30.0, "answer_characters": 23.0, "context_characters": 12.0}


def test_what_was_not_recorded_is_absent() -> None:
    given = scored("inputs", question="Why?", contexts=chunks(None, None))
    assert given.metrics == {"question_words": 1.0, "contexts": 2.0}
    assert given.categories.keys() == {"question_language"}


def test_empty_contexts_have_no_words() -> None:
    metrics = scored("inputs", question="", contexts=()).metrics
    assert metrics == {"question_words": 0.0, "contexts": 0.0, "context_words": 0.0}


def test_languages_are_categories() -> None:
    given = scored(
        "inputs",
        question="Quelle est la capitale de la France ?",
        answer="The capital of France is Paris, on the river Seine.",
    )
    assert given.categories == {"question_language": "fr", "answer_language": "en"}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("What is the capital of France?", "en"),
        ("Quelle est la capitale de la France ?", "fr"),
        ("Jaké je hlavní město Francie?", "cs"),
        ("フランスの首都はどこですか", "ja"),
        ("Welche Rechte habe ich als Mieter?", "de"),
        ("مرحبا كيف حالك اليوم يا صديقي", "ar"),
    ],
)
def test_language_of_a_question(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "OK", "Ciao", "1234 5678 9012 3456 7890", "def f(x): return x**2", "\ud800" * 50])
def test_a_language_that_cannot_be_told_is_unknown(text: str) -> None:
    assert language_of(text) == "unknown"


def test_only_the_head_of_a_text_is_read() -> None:
    english = "The quick brown fox jumps over the lazy dog. " * 8
    assert language_of(english + "フランスの首都はどこですか" * 10_000) == "en"


@pytest.mark.parametrize("text", ["word " * 30_000, "abc" * 50_000, " \u3000x" * 40_000, "a" * 49_999 + " " + "b" * 9])
def test_words_of_a_long_text_are_those_of_the_whole(text: str) -> None:
    assert scored("inputs", question=text).metrics["question_words"] == len(text.split())


def test_the_longest_texts_are_counted() -> None:
    metrics = scored(
        "inputs", question="Why?", answer="word " * 600_000, contexts=chunks("two words " * 200_000)
    ).metrics
    assert metrics == {"question_words": 1.0, "answer_words": 600_000.0, "contexts": 1.0, "context_words": 400_000.0}
