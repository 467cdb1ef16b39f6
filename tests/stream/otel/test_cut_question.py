"""Chunks are cut out of a question that is the prompt of the LLM call, and nothing else is."""

import json

import pytest

from ragtide.stream.ingest.otel import MappedTrace
from tests.stream.otel.scene import HOURS, PRICES, QUESTION, fields_of, map_one, span


def asked(chunks: list[str], prompt: str) -> MappedTrace:
    """A retrieval of the chunks, and an LLM call with the prompt."""
    message = {"role": "user", "parts": [{"type": "text", "content": prompt}]}
    return map_one(
        span(1, gen_ai__operation__name="retrieval", gen_ai__retrieval__documents=json.dumps(chunks)),
        span(2, gen_ai__operation__name="chat", gen_ai__input__messages=json.dumps([message])),
    )


def test_chunks_are_cut_out_of_a_question_that_is_the_prompt() -> None:
    fields = fields_of(asked([HOURS], f"{HOURS}\n\n{QUESTION}"))
    assert fields["question"] == QUESTION
    assert fields["attributes"]["question_from"] == "prompt"


@pytest.mark.parametrize(
    ("chunks", "prompt", "question"),
    [
        (["a", "in", "box?"], "Is the cat in the box?", "Is the cat in the box?"),
        (["open", "Nine."], "open\nopen\n  Nine.\n\nIs it open at Nine.?", "Nine.\n\nIs it open at Nine.?"),
        ([HOURS, f"{HOURS} {PRICES}"], f"Use {HOURS} {PRICES} to answer: {QUESTION}", f"Use  to answer: {QUESTION}"),
        ([QUESTION], QUESTION, QUESTION),
    ],
)
def test_short_chunks_are_cut_as_whole_lines_only(chunks: list[str], prompt: str, question: str) -> None:
    assert fields_of(asked(chunks, prompt))["question"] == question
