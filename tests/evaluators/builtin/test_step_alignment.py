"""Alignment against every possible one and rapidfuzz's Levenshtein distance; the evaluator by hand."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from ragtide.evaluators.outcome import Evidence, NotApplicable
from ragtide.evaluators.plan import wanted_encoders
from ragtide.evaluators.registry import load
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.text.alignment import align
from tests.evaluators.builtin.angles import Angles, cosine
from tests.evaluators.builtin.scoring import chunks, outcome, scored

SYMBOLS = st.lists(st.integers(0, 3), max_size=12)


@given(SYMBOLS, SYMBOLS)
def test_edits_are_levenshteins(first: list[int], second: list[int]) -> None:
    matches = np.array([[one == other for other in second] for one in first], bool).reshape(len(first), len(second))
    pairs, deleted, inserted = align(matches)
    replaced = sum(not matches[pair] for pair in pairs)
    assert replaced + len(deleted) + len(inserted) == Levenshtein.distance(first, second)


@settings(deadline=None)
@given(st.integers(0, 5), st.integers(0, 5), st.data())
def test_no_alignment_has_fewer_edits_or_as_few_with_more_matches(rows: int, columns: int, data: st.DataObject) -> None:
    """Similarity is not transitive: any matrix may occur."""
    drawn = data.draw(st.lists(st.booleans(), min_size=rows * columns, max_size=rows * columns))
    matches = np.array(drawn, bool).reshape(rows, columns)

    @cache
    def best(i: int, j: int) -> tuple[int, int]:
        """Fewest edits and, negative, most matches from here on, by trying everything."""
        if i == rows or j == columns:
            return rows - i + columns - j, 0
        edits, matched = best(i + 1, j + 1)
        together = (edits, matched - 1) if matches[i, j] else (edits + 1, matched)
        alone = [(best(*there)[0] + 1, best(*there)[1]) for there in ((i + 1, j), (i, j + 1))]
        return min(together, *alone)

    pairs, deleted, inserted = align(matches)
    matched = sum(bool(matches[pair]) for pair in pairs)
    assert (len(pairs) - matched + len(deleted) + len(inserted), -matched) == best(0, 0)
    assert sorted([*(i for i, _ in pairs), *deleted]) == list(range(rows))
    assert sorted([*(j for _, j in pairs), *inserted]) == list(range(columns))
    assert pairs == sorted(pairs)
    assert all(one[1] < other[1] for one, other in pairwise(pairs))


ANGLES = {"Boil.": 0.0, "Cook.": 20.0, "Pour.": 90.0, "Wait.": 180.0, "Stir.": 270.0}
ANSWER = "1. Cook.\n2. Stir.\n3. Wait."
CONTEXTS = chunks("- Boil.\n- Pour.", None, "No list.", "a) Wait.\nb) Stir.")


def test_edits_by_hand() -> None:
    given = scored("step_alignment", encoder=Angles(ANGLES), answer=ANSWER, contexts=CONTEXTS)
    # Cook is Boil (20 degrees), Wait is Wait; Stir stands where Pour should, and Stir is lacking at the end.
    assert given.metrics == {
        "edits": 2.0,
        "insertions": 1.0,
        "deletions": 0.0,
        "mismatches": 1.0,
        "context_steps": 4.0,
        "answer_steps": 3.0,
    }
    replaced, missing = given.evidence
    assert replaced == Evidence("answer", 12, 17, kind="mismatched_step", score=0.0)
    assert (missing.field, missing.chunk_id, missing.start, missing.kind) == ("contexts", "c4", 12, "missing_step")
    assert missing.score == pytest.approx(1.0)  # Stir is there, in another place


def test_the_threshold_decides_what_matches() -> None:
    fields: dict[str, Any] = {"answer": "1. Cook.", "contexts": chunks("1. Boil.")}
    assert scored("step_alignment", encoder=Angles(ANGLES), **fields).metrics["edits"] == 0.0
    given = scored("step_alignment", {"match_threshold": 0.95}, encoder=Angles(ANGLES), **fields)
    assert given.metrics["mismatches"] == 1.0
    assert given.evidence[0].score == pytest.approx(cosine(20), abs=1e-6)


@pytest.mark.parametrize(
    ("answer", "contexts", "counts"),
    [
        ("Do it.", chunks("1. Boil.\n2. Pour."), (2.0, 0.0)),
        ("1. Boil.", (), (0.0, 1.0)),
        ("1. A\n", chunks(""), (0, 1)),
    ],
)
def test_steps_of_one_side_alone_are_edits_and_need_no_encoder(
    answer: str, contexts: Any, counts: tuple[float, float]
) -> None:
    encoder = Angles({})
    given = scored("step_alignment", encoder=encoder, answer=answer, contexts=contexts)
    assert (given.metrics["insertions"], given.metrics["deletions"]) == counts
    assert given.metrics["edits"] == sum(counts)
    assert [place.score for place in given.evidence] == [None] * int(sum(counts))
    assert encoder.calls == []


@pytest.mark.parametrize(
    ("answer", "contexts", "reason"),
    [
        ("Do it.", chunks("Just do it."), "no_steps"),
        ("", (), "no_steps"),
        ("1. Boil.", chunks(None), "missing_contexts"),
        ("1. Boil.", None, "missing_contexts"),
        ("- x\n" * 600, chunks("- x\n" * 600), "too_long"),
    ],
)
def test_what_cannot_be_aligned_is_not_a_number(answer: str, contexts: Any, reason: str) -> None:
    assert outcome("step_alignment", answer=answer, contexts=contexts) == NotApplicable(reason)


def test_evidence_is_bounded() -> None:
    given = scored("step_alignment", answer="1. Boil.", contexts=chunks("- Pour.\n" * 50))
    assert given.metrics["insertions"] == 49.0
    assert len(given.evidence) == 11


def test_its_steps_are_embedded_by_minilm_unless_it_is_told_to_share() -> None:
    bge = EncoderSettings(model="BAAI/bge-small-en-v1.5")
    for params, embeds_by in (({}, "all-MiniLM-L6-v2"), ({"embedding_model": "shared"}, "shared")):
        given_settings = EvaluatorSettings(enabled=("step_alignment",), params={"step_alignment": params}, encoder=bge)
        assert wanted_encoders(load(), given_settings, None) == (embeds_by,)
    of_minilm = EvaluatorSettings(enabled=("step_alignment",), encoder=EncoderSettings(model="all-MiniLM-L6-v2"))
    assert wanted_encoders(load(), of_minilm, None) == ("shared",)
