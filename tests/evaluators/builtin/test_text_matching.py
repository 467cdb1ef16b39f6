import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.evaluators.builtin.text_matching import MOST_STEPS
from ragtide.evaluators.conditions import Malformed, Subject, from_constraints, holds, parse, steps
from ragtide.evaluators.outcome import Failed, NotApplicable
from tests.evaluators.builtin.scoring import chunks, outcome, scored

BRAZIL = '("Brazil" OR "brazil") AND regexp("15,?969 [Mm]illion") AND NOT "Real"'
CASES = [  # the worked examples of the product document that the catalogue was written from
    ('"15,969"', "revenue 15,969 million", True),
    ('"15,969"', "revenue 15969", False),
    ('regexp("15,?969")', "revenue 15969", True),
    ('"15,969" AND regexp("[Mm]illion")', "15,969 Million", True),
    (BRAZIL, "Brazil revenue was 15,969 million", True),
    (BRAZIL, "Brazil revenue was 15,969 million Real", False),
    ('regexp("^Brazil revenue was 15,969 million$")', "Brazil revenue was 15,969 million", True),
    ('regexp("^Brazil revenue was 15,969 million$")', "Brazil revenue was 15,969 million.", False),
    ('NOT "x" OR "y" AND "z"', "x y", False),  # (NOT x) OR (y AND z): no other reading gives this
    ('"Cat"', "cat", False),
    ('NOT NOT "a"', "a", True),
    ('NOT("a")AND"b"', "b", True),
    (r'"say \"hi\""', 'they say "hi" loudly', True),
    (r'"a\\b"', r"a\b", True),
    (r'"C:\temp"', r"in C:\temp today", True),
    (r'regexp("\d{3}")', "abc 123", True),
    (r'regexp("\"\w+\"")', 'the "word"', True),
    ('regexp ( "ü" )', "für", True),
    ('"AND"', "AND", True),
]


@pytest.mark.parametrize(("expression", "text", "expected"), CASES)
def test_worked_examples(expression: str, text: str, expected: bool) -> None:
    assert holds(parse(expression), Subject(text)) is expected
    assert scored("text_matching", answer=text, condition=expression).metrics["passes"] == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("15,969 million either", True), ("15,969 million", False), ("15,969 billion or", False)],
)
def test_the_older_constraints(answer: str, expected: bool) -> None:
    constraints = ("15,969", "REGEXP:[Mm]illion", ["either", "or"])
    assert scored("text_matching", answer=answer, constraints=constraints).metrics["passes"] == expected


@pytest.mark.parametrize(
    ("expression", "position", "reason"),
    [
        ('"a" AND', 7, "expected"),
        ('"a" "b"', 4, "expected AND, OR or the end"),
        ('("a"', 4, "expected )"),
        ('"a" and "b"', 4, "expected AND, OR or the end"),
        ('"open', 0, "string without an end"),
        ('"a" OR "open\\"', 7, "string without an end"),
        ('regexp "a"', 7, "expected ("),
        ("regexp(a)", 7, "expected a string"),
        ("NOT", 3, "expected"),
        ("secret", 0, "expected"),
        ("(" * 51 + '"a"' + ")" * 51, 51, "parentheses deep"),
        ('regexp("(?=secret)")', 7, "look-around has no linear time"),
        ('regexp("(?<!a)b")', 7, "look-around has no linear time"),
        (r'regexp("(a)\1")', 7, "back-references have no linear time"),
        ('"a" AND regexp("[")', 15, "refused"),
        ('regexp("(a{900}){900}")', 7, "refused"),
        ('regexp("' + "(a|b){0,99}" * 30 + '")', 7, "too large"),
    ],
)
def test_a_malformed_condition_says_where_and_why_and_never_what(expression: str, position: int, reason: str) -> None:
    given = outcome("text_matching", answer="the answer", condition=expression)
    assert isinstance(given, Failed)
    assert given.kind == "condition"
    assert given.detail.startswith(f"position {position}: ")
    assert reason in given.detail
    assert "secret" not in given.detail


@pytest.mark.parametrize(
    ("expression", "reason"), [("a{2000}", "invalid repetition size"), ("(", "missing )"), ("[(?=]{2000}", "invalid")]
)
def test_linear_time_is_not_blamed_where_it_is_not_why(expression: str, reason: str) -> None:
    given = outcome("text_matching", answer="the answer", condition=f'regexp("{expression}")')
    assert isinstance(given, Failed)
    assert reason in given.detail
    assert "linear" not in given.detail


@pytest.mark.parametrize(("expression", "holds"), [("end$", 0.0), (r"\bété\b", 0.0), (r"\bend\b", 1.0)])
def test_expressions_are_re2s(expression: str, holds: float) -> None:
    given = scored("text_matching", answer="\u00e9t\u00e9 end\n", condition=f'regexp("{expression}")')
    assert given.metrics["passes"] == holds


@pytest.mark.parametrize("constraints", [(1,), ([],), (["a", ["b"]],), ("REGEXP:(",), ("fine", {"secret": 1})])
def test_a_malformed_constraint_says_which(constraints: tuple[object, ...]) -> None:
    given = outcome("text_matching", answer="the answer", constraints=constraints)
    assert isinstance(given, Failed)
    assert given.detail.startswith(f"constraint {len(constraints) - 1}: ")
    assert "secret" not in given.detail


def test_a_condition_has_a_longest_length() -> None:
    assert isinstance(outcome("text_matching", answer="a", condition='"a" OR ' * 2_000 + '"a"'), Failed)


def test_constraints_have_a_greatest_number() -> None:
    assert scored("text_matching", answer="a", constraints=("a",) * 1_000).metrics["passes"] == 1.0
    for constraints in (("a",) * 1_001, (["a"] * 600, ["a"] * 401)):
        assert outcome("text_matching", answer="a", constraints=constraints) == Failed(
            "condition", "more than 1,000 constraints"
        )


def test_more_work_than_the_budget_is_too_long() -> None:
    slow = 'regexp("[ab]*a[ab]{200}c")'  # some 200 states, and no automaton small enough for them
    states = steps(parse(slow))
    fits = "ab" * (MOST_STEPS // states // 2)
    assert scored("text_matching", answer=fits, condition=slow).metrics["passes"] == 0.0
    assert outcome("text_matching", answer=fits + "abab", condition=slow) == NotApplicable("too_long")
    assert outcome("text_matching", answer=fits, contexts=chunks("abab"), condition=slow) == NotApplicable("too_long")
    assert scored("text_matching", answer=fits + "abab", condition='"c"').metrics["passes"] == 0.0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "missing_condition"),
        ({"condition": " "}, "empty_condition"),
        ({"constraints": ()}, "empty_condition"),
    ],
)
def test_without_a_condition_there_is_nothing_to_say(fields: dict[str, Any], reason: str) -> None:
    assert outcome("text_matching", answer="a", **fields) == NotApplicable(reason)


def test_answer_and_contexts_are_told_apart() -> None:
    def metrics(answer: str, *texts: str) -> tuple[float, ...]:
        given = scored("text_matching", answer=answer, contexts=chunks(*texts), condition='"x" AND "y"').metrics
        return given["passes"], given["failures"], given["generation_failures"], given["retrieval_failures"]

    assert metrics("x y", "x", "y") == (1, 0, 0, 0)  # the chunks' concatenation satisfies it
    assert metrics("x", "x y") == (0, 1, 1, 0)
    assert metrics("x y", "x") == (0, 1, 0, 1)
    assert metrics("", "x") == (0, 1, 1, 1)


@pytest.mark.parametrize("contexts", [None, (), chunks(None, None)])
def test_retrieval_is_absent_where_no_text_was_retrieved(contexts: object) -> None:
    metrics = scored("text_matching", answer="x", contexts=contexts, condition='"x"').metrics
    assert metrics == {"passes": 1.0, "failures": 0.0, "generation_failures": 0.0}


def test_the_condition_wins_over_the_older_form() -> None:
    assert scored("text_matching", answer="x", condition='"x"', constraints=("y",)).metrics["passes"] == 1.0


def test_evidence_points_at_the_terms_to_blame() -> None:
    condition = '"here" AND ("gone" OR regexp("al[s]o gone")) AND NOT "secret"'
    given = scored("text_matching", answer="here is a secret", condition=condition)
    blamed = [condition[place.start : place.end] for place in given.evidence]
    assert blamed == ['"gone"', 'regexp("al[s]o gone")', '"secret"']
    assert {(place.field, place.kind) for place in given.evidence} == {("condition", "answer")}


def test_evidence_of_constraints_is_their_index() -> None:
    given = scored("text_matching", answer="a", contexts=chunks("b"), constraints=("a", ["b", "c"]))
    assert [(place.field, place.start, place.kind) for place in given.evidence] == [
        ("constraints", 1, "answer"),
        ("constraints", 1, "answer"),
        ("constraints", 0, "contexts"),
    ]


TERMS = st.sampled_from("abc")
TREES = st.recursive(
    TERMS.map(lambda term: (f'"{term}"', f"('{term}' in text)")),
    lambda inner: st.one_of(
        inner.map(lambda one: (f"NOT ({one[0]})", f"(not {one[1]})")),
        st.lists(inner, min_size=2, max_size=3).map(
            lambda many: (" AND ".join(f"({one[0]})" for one in many), f"({' and '.join(one[1] for one in many)})")
        ),
        st.lists(inner, min_size=2, max_size=3).map(
            lambda many: (" OR ".join(one[0] for one in many), f"({' or '.join(one[1] for one in many)})")
        ),
    ),
    max_leaves=8,
)


@given(TREES, st.text("abc", max_size=3))
def test_means_what_python_means(tree: tuple[str, str], text: str) -> None:
    expression, python = tree
    assert holds(parse(expression), Subject(text)) is eval(python, {"text": text})


@given(st.text('"()ANDORT regexp\\a\ud800', max_size=40))
def test_any_string_is_a_condition_or_malformed(expression: str) -> None:
    try:
        condition = parse(expression)
    except Malformed as error:
        reason = str(error)
    else:
        reason = f"position 0: {holds(condition, Subject('text'))}"
    assert re.match(r"position \d+: ", reason)


def test_lone_surrogates_match_as_replacement_characters() -> None:
    assert holds(from_constraints(("\ud800x", "REGEXP:\ud800.")), Subject("\udfffx"))
