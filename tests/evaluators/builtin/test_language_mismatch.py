import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.text.languages import same_language
from tests.evaluators.builtin.scoring import chunks, outcome, scored

ENGLISH = "How can I reset the password of my account?"
FRENCH = "Vous pouvez réinitialiser votre mot de passe en cliquant sur le lien."
DANISH = "Du kan nulstille din adgangskode ved at klikke på linket i den mail, vi har sendt dig."
NORWEGIAN = "Hva er hovedstaden i Norge og hvor mange mennesker bor der?"
JAPANESE = "アプリでパスワードをリセットするにはどうすればよいですか"


@pytest.mark.parametrize(
    ("question", "answer", "passes", "languages"),
    [
        (ENGLISH, "You can reset the password with the link that we have sent you.", 1.0, ("en", "en")),
        (ENGLISH, FRENCH, 0.0, ("en", "fr")),
        (FRENCH, ENGLISH, 0.0, ("fr", "en")),
        (JAPANESE, ENGLISH, 0.0, ("ja", "en")),
        (NORWEGIAN, DANISH, 1.0, ("no", "da")),  # kindred: nobody would call it a mismatch, and detectors mix them up
    ],
)
def test_question_and_answer_are_compared(
    question: str, answer: str, passes: float, languages: tuple[str, str]
) -> None:
    given = scored("language_mismatch", question=question, answer=answer)
    assert given.metrics == {"passes": passes, "failures": 1 - passes, "generation_failures": 1 - passes}
    assert given.categories == {"question_language": languages[0], "answer_language": languages[1]}


@pytest.mark.parametrize(
    ("question", "answer"), [("Why?", FRENCH), (ENGLISH, "42"), (ENGLISH, ""), (ENGLISH, "x = [1, 2]; y = x[::2] * 3")]
)
def test_what_cannot_be_told_is_not_judged(question: str, answer: str) -> None:
    assert outcome("language_mismatch", question=question, answer=answer) == NotApplicable("unknown_language")


def test_a_translation_is_meant_to_be_in_another_language() -> None:
    assert outcome("language_mismatch", question=ENGLISH, answer=FRENCH, task="translation") == NotApplicable(
        "translation"
    )


def test_contexts_are_not_looked_at() -> None:
    given = scored("language_mismatch", question=ENGLISH, answer=FRENCH, contexts=chunks(FRENCH))
    assert "retrieval_failures" not in given.metrics


def test_only_kindred_languages_are_one() -> None:
    assert same_language("cs", "sk")
    assert same_language("sr", "hr")
    assert not same_language("da", "sv")
    assert not same_language("cs", "hr")


def test_a_judge_that_is_not_there_is_refused_at_start() -> None:
    with pytest.raises(ConfigError, match="'auto' or 'library'"):
        outcome("language_mismatch", {"method": "judge"}, question=ENGLISH, answer=FRENCH)
