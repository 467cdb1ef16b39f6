import pytest

from ragtide.evaluators.builtin.readability import reading_ease
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.syllables import syllables
from tests.evaluators.builtin.scoring import outcome, scored

# textstat 0.7.13: words, sentences, syllables and its score.
TEXTSTAT = [
    (6, 1, 6, 116.14500000000001),
    (6, 1, 8, 87.94500000000002),
    (5, 1, 11, 15.640000000000015),
    (2, 1, 3, 77.90500000000002),
    (11, 3, 12, 110.82242424242426),
    (13, 1, 22, 50.470769230769264),
    (16, 1, 23, 68.9825),
]


@pytest.mark.parametrize(("words", "sentences", "count", "score"), TEXTSTAT)
def test_the_formula_equals_textstats(words: int, sentences: int, count: int, score: float) -> None:
    assert reading_ease(words, sentences, count) == pytest.approx(score, abs=1e-9)


# CMU's pronouncing dictionary.
PRONOUNCED = {
    1: "the a cat through strength used called makes whole field eight queue",
    2: "paris being table wanted boxes dishes happy science lion create hopeful safely rhythm prism uses",
    3: "capital element enabled area media radio completely different creation idea video another",
    4: "unrelated information population appreciate ability necessary algorithm especially",
    5: "university opportunity imagination",
}


@pytest.mark.parametrize("count", PRONOUNCED)
def test_syllables_are_those_of_the_pronouncing_dictionary(count: int) -> None:
    assert {word: syllables(word) for word in PRONOUNCED[count].split()} == dict.fromkeys(
        PRONOUNCED[count].split(), count
    )


@pytest.mark.parametrize(
    ("piece", "count"),
    [("$5.00", 1), ("don't", 1), ("(table),", 2), ("state-of-the-art", 4), ("Café", 2), ("—", 0), ("東京", 0), ("", 0)],
)
def test_syllables_of_what_is_no_plain_word(piece: str, count: int) -> None:
    assert syllables(piece) == count


def test_hand_worked() -> None:
    given = scored("readability", answer="The cat sat on the mat. It was happy - until 1999.")
    assert given.parts == {"words": 11.0, "sentences": 2.0, "syllables": 13.0}
    assert given.metrics["flesch_reading_ease"] == pytest.approx(206.835 - 1.015 * 11 / 2 - 84.6 * 13 / 11)


def test_nothing_is_easier_than_one_syllable() -> None:
    assert scored("readability", answer="Go!").metrics["flesch_reading_ease"] == 121.22


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (" ", "empty_answer"),
        ("12. 13.", "no_words"),
        ("東京", "no_words"),
        ("Die Hauptstadt von Frankreich ist Paris, und sie liegt an der Seine.", "not_english"),
        ("東京は日本の首都です。人口は千四百万人です。", "not_english"),
    ],
)
def test_what_flesch_does_not_speak_of_is_no_score(answer: str, reason: str) -> None:
    assert outcome("readability", answer=answer) == NotApplicable(reason)
