"""Whatever stands in a text, every built-in evaluator gives an outcome, in time that grows as the text does."""

import random
import time
from collections.abc import Callable

import pytest

from evaluators.outcome import Failed, Outcome, Scored
from evaluators.trace import Trace
from tests.evaluators.builtin.golden import builtin
from tests.evaluators.builtin.scoring import chunks, outcomes, trace

KB = 1_000
WORDS = ("the", "door", "is", "locked", "and", "nobody", "knows", "where", "12", "3.4", "(5)", "66-77", "a@b", "x:y")


def prose(size: int) -> str:
    draw = random.Random(size)
    words = [draw.choice(WORDS) + draw.choice(("", "", "", ",", ".")) for _ in range(size // 4)]
    return " ".join(words)[:size]


TEXTS: dict[str, Callable[[int], str]] = {
    "one letter": lambda size: "a" * size,
    "prose": prose,
    "short sentences": lambda size: "It is. " * (size // 7),
    "digits": lambda size: "1" * size,
    "numbers": lambda size: "(2) 555 01 " * (size // 11),
    "addresses": lambda size: "a@b.c@d." * (size // 8),
    "nested brackets": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "lone surrogates": lambda size: "\ud800\udfff" * (size // 2),
    "nul": lambda size: "\0" * size,
    "right to left": lambda size: "\u202e\u05e9\u05dc\u05dd \u202c" * (size // 7),
    "emoji": lambda size: "\U0001f469\u200d\U0001f4bb" * (size // 3),
    "blanks": lambda size: " \n\t\u00a0" * (size // 4),
    "accents": lambda size: "e" + "\u0301" * (size - 1),
}
HOSTILE = 'regexp("(x+x+)+y") OR regexp("[ab]*a[ab]{200}c") OR NOT "\\"" AND regexp(".*.*.*=$")'


def hostile(text: str) -> Trace:
    return trace(question=text[:1_000], answer=text, contexts=chunks(text), expected=(text[:500],), condition=HOSTILE)


def within(place: object, given: Outcome, of: Trace) -> None:
    assert isinstance(given, Scored)
    texts = {"answer": of.answer, "question": of.question, "condition": of.condition}
    for evidence in given.evidence:
        text = texts.get(evidence.field) or next(
            chunk.text for chunk in of.contexts or () if chunk.id == evidence.chunk_id
        )
        assert text is not None
        assert 0 <= evidence.start < evidence.end <= len(text), place


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("id", builtin())
def test_a_hostile_text_costs_no_more_than_its_outcome(id: str, name: str) -> None:
    texts = ["", TEXTS[name](KB), TEXTS[name](20 * KB)]
    given = outcomes(id, [hostile(text) for text in texts])
    assert len(given) == len(texts)
    for text, outcome in zip(texts, given, strict=True):
        assert not isinstance(outcome, Failed)
        if isinstance(outcome, Scored):
            within(name, outcome, hostile(text))


def cpu_s(id: str, text: str) -> float:
    start = time.process_time()
    outcomes(id, [hostile(text)])
    return time.process_time() - start


@pytest.mark.parametrize("name", ["one letter", "prose", "short sentences", "numbers"])
@pytest.mark.parametrize("id", [id for id, each in builtin().items() if each.lane == "fast"])
def test_ten_times_the_text_takes_no_hundred_times_the_processor(id: str, name: str) -> None:
    outcomes(id, [hostile("to load what is loaded once")])
    small, large = cpu_s(id, TEXTS[name](50 * KB)), cpu_s(id, TEXTS[name](500 * KB))
    assert large < 30 * max(small, 0.005)  # linear is 10, quadratic 100; the rest is other load on the machine


@pytest.mark.parametrize("id", builtin())
def test_nothing_that_users_wrote_leaves_with_an_outcome(id: str) -> None:
    secret = "Kassandra"
    text = f"{secret} told bob.{secret}@example.com that {secret} is locked. {secret} is {secret}."
    told = trace(
        question=f"Who is {secret}?",
        answer=text,
        contexts=chunks(text, f"{secret}."),
        expected=(text,),
        condition=f'"{secret}" AND NOT "{secret}" AND regexp("{secret}(")',
    )
    malformed = trace(answer=text, constraints=(f"REGEXP:{secret}(", secret))
    assert secret not in repr(outcomes(id, [told, malformed]))
