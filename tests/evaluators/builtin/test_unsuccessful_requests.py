import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.text.refusals import KINDS, Refusals, built_in
from tests.evaluators.builtin.refused_answers import ANSWERS, REFUSALS
from tests.evaluators.builtin.scoring import outcome, outcomes, scored, trace

UNANSWERED = [
    ("", "empty"),
    (" \n", "empty"),
    ("I don't know.", "no_knowledge"),
    ("I don\u2019t know the answer to that.", "no_knowledge"),
    ("Sorry, I do not know.", "no_knowledge"),
    ("Unfortunately, I do not have enough information to answer this.", "no_knowledge"),
    ("Based on the documents, there is no information about prices.", "no_knowledge"),
    ("The provided context does not mention a deadline.", "no_knowledge"),
    ("I couldn't find anything on that.", "no_knowledge"),
    ("I'm sorry, but I can't help with that.", "refused"),
    ("I'm sorry. I cannot assist with this request. Please call us.", "refused"),
    ("As an AI, I'm unable to give medical advice.", "refused"),
    ("I WON'T ANSWER THAT", "refused"),
    ("500 Internal Server Error", "error_text"),
    ("An unexpected error has occurred. Please try again.", "error_text"),
    ("Traceback (most recent call last):\n  File", "error_text"),
    ("Ich weiß es nicht.", "no_knowledge"),
    ("Je ne peux malheureusement pas vous aider.", "refused"),
    ("Je n'ai pas assez d'informations.", "no_knowledge"),
    ("No lo sé.", "no_knowledge"),
    ("Non posso aiutarti.", "refused"),
    ("申し訳ありませんが、お答えできません。", "refused"),
    ("我不知道。", "no_knowledge"),
    ("Could you rephrase your question?", "asked_back"),
]
ANSWERED = [
    "Paris is the capital of France.",
    "42",
    "No, pets are not allowed.",
    "You can not return items after 30 days.",
    "If you don't know your password, choose a new one.",
    "I can help you with that: hold the button for ten seconds.",
    "The error occurred because the disk was full.",
    "The policy does not cover water damage.",
    "There is no fee.",
    "Je peux vous aider : appuyez sur le bouton.",
    "Hold the button. Wait for the light. If I am not able to reach you, I will write.",  # not in the opening
]


@pytest.mark.parametrize(("answer", "kind"), UNANSWERED)
def test_an_answer_that_is_none(answer: str, kind: str) -> None:
    given = scored("unsuccessful_requests", question="What does it cost?", answer=answer)
    assert given.metrics == {"unsuccessful": 1.0}
    assert given.categories == {"refusal": kind}
    assert [place.kind for place in given.evidence] == ([] if kind == "empty" else [kind])


@pytest.mark.parametrize("answer", ANSWERED)
def test_an_answer_that_is_one(answer: str) -> None:
    given = scored("unsuccessful_requests", question="What does it cost?", answer=answer)
    assert (given.metrics, given.categories, given.evidence) == ({"unsuccessful": 0.0}, {}, ())


def test_evidence_is_the_phrase() -> None:
    answer = "I\u2019m sorry, but I can\u2019t help with that."
    [place] = scored("unsuccessful_requests", question="Why?", answer=answer).evidence
    assert answer[place.start : place.end] == "I can\u2019t help"


def test_a_refusal_that_goes_on_to_answer_is_successful() -> None:
    def unsuccessful(words: int, **params: Any) -> float:
        answer = "I am not sure. " + "word " * (words - 4)
        return scored("unsuccessful_requests", params, question="Why?", answer=answer).metrics["unsuccessful"]

    assert (unsuccessful(100), unsuccessful(101)) == (1.0, 0.0)
    assert (unsuccessful(20, longest_words=20), unsuccessful(21, longest_words=20)) == (1.0, 0.0)


def test_a_phrase_that_was_asked_about_does_not_count() -> None:
    answer = "An Internal Server Error means that the server failed."
    given = scored("unsuccessful_requests", question="What is an internal server error?", answer=answer)
    assert given.metrics == {"unsuccessful": 0.0}


def test_phrases_can_be_added() -> None:
    params = {"phrases": {"refused": ["ask * colleague|colleagues"], "wrong_desk": ["お問い合わせください"]}}

    def kind(answer: str) -> str | None:
        given = scored("unsuccessful_requests", params, question="Why?", answer=answer)
        return given.categories.get("refusal")

    assert kind("Please ask one of our colleagues.") == "refused"
    assert kind("サポートにお問い合わせください。") == "wrong_desk"
    assert kind("I don't know.") == "no_knowledge"
    assert kind("Please ask five or six or seven colleagues.") is None  # more than three words between


@pytest.mark.parametrize(
    ("phrases", "says"),
    [
        ({"Not a slug": ["no"]}, "slugs"),
        ({"refused": [" ", "no"]}, "without a word"),
        ({"refused": ["* "]}, "without a word"),
        ({"refused": [f"{number} * word" for number in range(100_000)]}, "too many"),
    ],
)
def test_phrases_that_cannot_work_are_refused_at_start(phrases: dict[str, list[str]], says: str) -> None:
    with pytest.raises(ConfigError, match=rf"evaluators\.params\.unsuccessful_requests\.phrases: .*{says}"):
        outcome("unsuccessful_requests", {"phrases": phrases}, question="Why?", answer="Because.")


def test_a_phrase_is_taken_at_its_word() -> None:
    found = Refusals(("a.c (x)",))
    assert found.find("A.C (X)!") == (0, 7)
    assert found.find("abc (x)") is None
    assert found.find("za.c (x)") is None


@pytest.mark.parametrize("kind", KINDS)
def test_each_built_in_phrase_is_found_as_it_stands(kind: str) -> None:
    words, kinds = built_in()

    def said(phrase: str) -> str:
        chosen = (word.removesuffix("|$").split("|")[-1] for word in phrase.split() if word not in "^*$")
        return " ".join(said(words[word[1:-1]][-1]) if word[0] == "{" else word for word in chosen)

    phrases = Refusals(kinds[kind], words)
    for phrase in kinds[kind]:
        assert phrases.find(text := said(phrase)) is not None, text


def test_a_name_stands_for_each_of_its_phrases() -> None:
    found = Refusals(("i {lack} * answer",), {"lack": ("do not have", "am {far} from", "lack"), "far": ("far|miles",)})
    assert found.find("I don't have an answer.") == (0, 22)
    assert found.find("I am miles from any answer.") == (0, 26)
    assert found.find("I lack the answer.") == (0, 17)
    assert found.find("I have the answer.") is None


@pytest.mark.parametrize(
    "text", ["There isn't one.", "There's not one.", "There is not one.", "there isn\u2019t one", "There isnt one"]
)
def test_a_verb_and_not_are_one_word_or_two(text: str) -> None:
    assert Refusals(("there is not one",)).find(text) == (0, len(text.removesuffix(".")))


def _flagged(answers: Iterable[str]) -> list[str]:
    given = outcomes("unsuccessful_requests", [trace(question="What is it?", answer=answer) for answer in answers])
    return [
        answer
        for answer, outcome in zip(answers, given, strict=True)
        if isinstance(outcome, Scored) and outcome.metrics["unsuccessful"] == 1
    ]


@pytest.mark.parametrize("unseen", [False, True])
def test_refusals_of_many_languages_are_told_from_right_answers_that_sound_like_them(unseen: bool) -> None:
    corpus = tomllib.loads((Path(__file__).parent / "unseen_answers.toml").read_text("utf-8"))
    languages = corpus["refusals"] if unseen else REFUSALS
    right = [answer for of in corpus["answers"].values() for answer in of] if unseen else ANSWERS
    refused = [answer for of in languages.values() for answer in of]
    assert min(len(refused), len(right)) >= 60
    assert len(languages) >= 8
    found, wrong = _flagged(refused), _flagged(right)
    assert len(found) / len(refused) >= 0.95, set(refused) - set(found)
    assert len(found) / (len(found) + len(wrong)) >= 0.95, wrong


@pytest.mark.parametrize(
    ("answer", "unsuccessful"),
    [
        ('The bot says "I don\'t know" below 0.4.', False),
        ('"I don\'t know."', True),
        ("I can't overstate how important backups are.", False),
        ("I can't book flights.", True),
        ("If no documents are found, the list is empty.", False),
        ("If you mean prices, no documents were found.", True),
        ("The contract does not mention an age, so anyone may sign.", False),
        ("The contract does not mention an age, so I cannot say.", True),
        ("It costs $40. The documents do not mention discounts.", False),
        ("Theft is covered. However, I cannot say whether floods are.", False),
        ("Thank you for asking. However, I cannot help with that.", True),
    ],
)
def test_an_answer_that_quotes_supposes_concludes_or_is_only_limited_is_one(answer: str, unsuccessful: bool) -> None:
    given = scored("unsuccessful_requests", question="What is it?", answer=answer)
    assert given.metrics == {"unsuccessful": float(unsuccessful)}


def test_a_phrase_can_be_bound_to_the_beginning_and_to_a_sentences_end() -> None:
    found = Refusals(("^ no answer $", "gone $"))
    assert found.find("No answer.") == (0, 9)
    assert found.find("Sorry, but no answer: ask later.") == (11, 20)
    assert found.find("No answer key") is found.find("There is no answer.") is found.find("gone fishing") is None
    assert found.find("It is gone") == (6, 10)
