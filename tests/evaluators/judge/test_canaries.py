"""Forms of canaries keep the content, and every judge has canaries to score."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.judge.canaries import (
    FORMS,
    Canary,
    Form,
    changes_form_only,
    in_form,
    padded,
    with_markdown,
    without_markdown,
)
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.registry import load
from ragtide.evaluators.trace import Trace
from ragtide.stream.judge_canaries import MIN_CANARIES, load_canaries
from ragtide.stream.settings.loader import Settings

CANARIES = load_canaries(Settings())
JUDGES = {one.id: one for one in load().values() if one.judge is not None}
WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=1, max_size=30)


def words(text: str | None) -> list[str]:
    return re.findall(r"\w+", text or "")


def of_content(trace: Trace) -> tuple[object, ...]:
    """What the trace says, whatever its form."""
    chunks = Counter(tuple(words(one.text)) for one in trace.contexts or ())
    return words(trace.question), [w for w in words(trace.answer) if not w.isdigit()], chunks, Counter(trace.expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_changes_no_word(form: Form) -> None:
    for one in CANARIES:
        other = in_form(one, form)
        assert of_content(other.trace) == of_content(one.trace)
        assert (other.content != one.content) == (other.trace != one.trace)
        assert other.trace != one.trace or len(one.trace.contexts or ()) < 2


@given(WORDS)
def test_markdown_comes_and_goes(some: list[str]) -> None:
    text = ". ".join(some) + "."
    assert words(with_markdown(text)) == some
    assert words(without_markdown(with_markdown(text))) == some
    assert "*" not in without_markdown(with_markdown(text))
    assert words(padded(text)) == some


def test_markdown_and_its_absence_look_as_expected() -> None:
    assert with_markdown("The shop opens at nine. It closes at six.") == (
        "- **The shop** opens at nine.\n- **It closes** at six."
    )
    assert without_markdown("## Hours\n\n1. Opens at **nine**\n2. Closes at *six*, not `five`.\n") == (
        "Hours. Opens at nine. Closes at six, not five."
    )
    assert without_markdown("snake_case and 2 * 3 stay") == "snake_case and 2 * 3 stay."


def test_taking_markdown_away_counts_the_other_way() -> None:
    directions = Counter(in_form(one, "markdown").direction for one in CANARIES)
    assert directions == {1: 22, -1: 2}


@pytest.mark.parametrize("id_", JUDGES)
def test_every_judge_has_canaries(id_: str) -> None:
    judge = JUDGES[id_]
    applicable = [one for one in CANARIES if not isinstance(judge.project(one.trace), NotApplicable)]
    assert len(applicable) >= MIN_CANARIES


def compared(id_: str) -> set[str]:
    judge = JUDGES[id_]
    return {form for form in FORMS for one in CANARIES if changes_form_only(judge, one, in_form(one, form))}


def test_a_form_that_is_part_of_the_content_or_that_a_judge_does_not_read_is_left_out() -> None:
    assert compared("faithfulness") == {"markdown", "padded", "reordered"}
    assert compared("context_precision") == {"padded"}, "ranks count, and no answer is read"
    assert compared("ragas") == {"markdown", "padded"}
    assert compared("context_recall") == {"padded", "reordered"}
    assert compared("sexism") == {"markdown", "padded"}
    assert compared("summary_coherence") == {"padded"}


def test_the_content_is_the_same_in_every_process() -> None:
    one = CANARIES[0]
    assert one.content == Canary(one.trace).content == "d5cac7e235dcfeec", "a change begins new references everywhere"
