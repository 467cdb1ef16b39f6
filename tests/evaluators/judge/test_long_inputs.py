"""Long answers, many chunks and other languages: split and merged, never cut."""

import pytest

from ragtide.evaluators.judge.calls import MOST_CALLS
from ragtide.evaluators.judge.splitting import GROUP, GROUP_CHARACTERS, PIECE, SOURCE, pieces_of
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.resources import Resources
from tests.evaluators.builtin.scoring import chunks, outcomes, trace
from tests.evaluators.judge.scripted import ScriptedJudge, lines, metrics, picks, stated, texts_in, yes_if

LONG = "\n".join(f"Item {number} of the list weighs {number} grams." for number in range(2_600))


def test_an_answer_of_100_kb_is_taken_apart_in_pieces_and_every_statement_is_judged() -> None:
    assert len(LONG) > 100_000
    judge = ScriptedJudge({"statements": lines, "support": stated("claims")})
    known = "\n".join(line for number, line in enumerate(LONG.splitlines()) if number % 2)
    [found] = outcomes("faithfulness", [trace(answer=LONG, contexts=chunks(known))], judge=judge)
    assert isinstance(found, Scored)
    assert found.metrics == {"faithfulness": 0.5}
    taken = judge.calls_of("statements")
    assert "".join(text for call in taken for text in texts_in(call, "text")) == LONG
    assert max(len(text) for call in taken for text in texts_in(call, "text")) <= PIECE
    asked = judge.calls_of("support")
    assert max(len(texts_in(call, "claims")) for call in asked) == GROUP
    assert max(sum(map(len, texts_in(call, "source"))) for call in asked) <= SOURCE
    sent = sum(len(texts_in(call, "claims")) for call in asked)
    assert sent < 4 * 2_600, "a statement that has its support is not asked about again"


def test_200_chunks_are_each_read_once() -> None:
    judge = ScriptedJudge({"chunk_use": picks(lambda text: "even" in text, lambda text: "even" in text)})
    contexts = chunks(*(f"Chunk {n} is {'odd' if n % 2 else 'even'}. It has two sentences." for n in range(200)))
    fields = {"question": "Which are even?", "contexts": contexts, "expected": ("The even ones.",)}
    [found] = outcomes("context_precision", [trace(**fields)], judge=judge)
    assert isinstance(found, Scored)
    assert found.metrics["statement_precision"] == 100 / 400
    assert found.metrics["context_precision"] == pytest.approx(sum(k / (2 * k - 1) for k in range(1, 101)) / 100)
    assert len(judge.calls) == 20
    assert [text for call in judge.calls for text in texts_in(call, "chunk ")][::2] == [
        f"Chunk {n} is {'odd' if n % 2 else 'even'}." for n in range(200)
    ]


def test_a_chunk_of_100_kb_is_read_in_parts_and_one_yes_is_enough() -> None:
    judge = ScriptedJudge({"chunk_relevance": picks(lambda text: "Item 2599 " in text, lambda text: False)})
    [found] = outcomes("context_relevance", [trace(question="Q?", contexts=chunks(LONG, "Short."))], judge=judge)
    assert isinstance(found, Scored)
    assert found.metrics == {"context_relevance": 0.5}
    assert len(judge.calls) > 20


def test_a_long_item_is_judged_in_pieces() -> None:
    rules = {"contact": yes_if("texts", lambda item, call: "Item 2599 " in item)}
    assert metrics("contact_information", rules, answer=LONG)["failures"] == 1.0
    [piece, *_] = pieces_of("x" * 100_000, GROUP_CHARACTERS, Resources().batch())
    assert len(piece) == GROUP_CHARACTERS


@pytest.mark.parametrize("text", [LONG, "x" * 30_001, "a. " * 9_000, "他们说。" * 5_000, "\n" * 20_000 + "A word.", ""])
@pytest.mark.parametrize("most", [7, 1_000, PIECE])
def test_pieces_hold_every_character_that_is_not_blank(text: str, most: int) -> None:
    pieces = pieces_of(text, most, Resources().batch())
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(len(piece) <= most for piece in pieces)


def test_a_record_that_would_take_too_many_calls_is_too_long_and_pays_for_few() -> None:
    judge = ScriptedJudge({"statements": lines, "support": yes_if("claims", lambda item, call: False)})
    answer = "\n".join(f"{number} is a number of its own kind" for number in range(7_000))
    contexts = chunks(*(f"Some text {n}. " * 60 for n in range(190)))
    [found] = outcomes("faithfulness", [trace(answer=answer, contexts=contexts)], judge=judge)
    assert found == NotApplicable("too_long")
    assert len(judge.calls) <= MOST_CALLS


@pytest.mark.parametrize(
    "sentences",
    [
        ("店はローマにあります。", "九時に開きます。"),
        ("المتجر في روما.", "يفتح في التاسعة."),
        ("दुकान रोम में है।", "यह नौ बजे खुलती है।"),
        ("Магазин в Риме.", "Он открывается в девять."),
    ],
)
def test_other_languages_reach_the_judge_as_they_are(sentences: tuple[str, str]) -> None:
    rules = {"statements": lines, "support": stated("claims")}
    recall = metrics("context_recall", rules, contexts=chunks(sentences[0]), expected=(" ".join(sentences),))
    assert recall == {"context_recall": 0.5}
