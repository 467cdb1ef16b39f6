"""A golden file tells every case that differs, and shows what to put there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ragtide.evaluators import Evidence, Scored, check_golden, golden_traces
from ragtide.evaluators.errors import ConfigError
from tests.evaluators.engine.examples import Limit, brevity, nearness

# brevity: 1 - (words - 1) / 10
TWO_WORDS = {"trace": {"answer": "two words"}, "scored": {"metrics": {"brevity": 0.9}}}
NONE = {"trace": {"answer": " "}, "not_applicable": {"reason": "empty"}}
NOT_RECORDED = {"trace": {"question": "?"}, "not_applicable": {"reason": "missing_answer"}}


def golden(folder: Path, version: Any = 1, **cases: Any) -> Path:
    file = folder / "brevity.golden.json"
    file.write_text(json.dumps({"version": version, "cases": cases}))
    return file


def test_what_is_right_passes(tmp_path: Path) -> None:
    check_golden(brevity, golden(tmp_path, two=TWO_WORDS, none=NONE, not_recorded=NOT_RECORDED))


def test_rounding_is_no_difference_and_a_hundredth_is(tmp_path: Path) -> None:
    near = {**TWO_WORDS, "scored": {"metrics": {"brevity": 0.9000001}}}
    check_golden(brevity, golden(tmp_path, two=near))
    with pytest.raises(AssertionError, match=r"two: the evaluator says .*0\.9.*the file .*0\.91"):
        check_golden(brevity, golden(tmp_path, two={**TWO_WORDS, "scored": {"metrics": {"brevity": 0.91}}}))


def test_parameters_are_the_callers(tmp_path: Path) -> None:
    file = golden(tmp_path, two={**TWO_WORDS, "scored": {"metrics": {"brevity": 0.5}}})
    check_golden(brevity, file, Limit(limit=2))
    with pytest.raises(AssertionError):
        check_golden(brevity, file)


def test_an_embedding_evaluator_is_given_a_fake_encoder(tmp_path: Path) -> None:
    trace = {"question": "the router", "contexts": [{"id": "c", "text": "the router"}]}
    check_golden(nearness, golden(tmp_path, 3, equal={"trace": trace, "scored": {"metrics": {"nearness": 1.0}}}))


def test_what_is_shown_leaves_out_what_the_file_may(tmp_path: Path) -> None:
    pointing = replace(brevity, score=lambda rows, shared, params: [pointed for _ in rows])
    pointed = Scored({"brevity": 0.0}, evidence=(Evidence("answer", 0, 3, score=0.0),))
    with pytest.raises(AssertionError) as error:
        check_golden(pointing, golden(tmp_path, two={"trace": {"answer": "two words"}}))
    shown = '{"scored":{"metrics":{"brevity":0.0},"evidence":[{"field":"answer","start":0,"end":3,"score":0.0}]}}'
    assert f"two: the evaluator says {shown}, the file nothing" in str(error.value)
    check_golden(pointing, golden(tmp_path, two={"trace": {"answer": "two words"}, **json.loads(shown)}))


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ({}, "it has no cases"),
        (
            {"two": {"trace": {"answer": "two words"}}},
            'two: the evaluator says {"scored":{"metrics":{"brevity":0.9}}}, the file nothing',
        ),
        ({"none": {**NONE, "not_applicable": {"reason": "other"}}}, 'says {"not_applicable":{"reason":"empty"}}'),
        ({"none": {**TWO_WORDS, "trace": {"answer": ""}}}, "the file {"),
    ],
)
def test_a_difference_is_told_with_what_to_put_there(tmp_path: Path, cases: dict[str, Any], says: str) -> None:
    with pytest.raises(AssertionError) as error:
        check_golden(brevity, golden(tmp_path, **cases))
    assert says in str(error.value)


def test_every_case_that_differs_is_told(tmp_path: Path) -> None:
    wrong = {**TWO_WORDS, "scored": {"metrics": {"brevity": 0.1}}}
    with pytest.raises(AssertionError) as error:
        check_golden(brevity, golden(tmp_path, one=wrong, right=TWO_WORDS, other=wrong))
    assert "\n- one: " in str(error.value)
    assert "\n- other: " in str(error.value)
    assert "right" not in str(error.value)


def test_evidence_that_the_file_leaves_out_must_not_be_there(tmp_path: Path) -> None:
    pointed = {"metrics": {"brevity": 0.9}, "evidence": [{"field": "answer", "start": 0, "end": 3}]}
    with pytest.raises(AssertionError, match="two: "):
        check_golden(brevity, golden(tmp_path, two={**TWO_WORDS, "scored": pointed}))


def test_another_version_is_told_even_where_no_score_moved(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="it is of version 1, the evaluator is 2"):
        check_golden(replace(brevity, version=2), golden(tmp_path, two=TWO_WORDS))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "cannot be read"),
        ('{"version": 1}', "missing required field `cases`"),
        ('{"version": "1", "cases": {}}', "Expected `int`, got `str`"),
        ('{"version": 1, "cases": {"a": {"trace": {}, "score": {}}}}', "unknown field `score`"),
        (
            '{"version": 1, "cases": {"a": {"trace": {}, '
            '"scored": {"metrics": {}}, "not_applicable": {"reason": "empty"}}}}',
            "a case has one outcome",
        ),
        ('{"version": 1, "cases": {"a": {"trace": {"anwser": "x"}}}}', "no sound trace in 'a'.*unknown field `anwser`"),
    ],
)
def test_a_file_that_says_nothing_sound_is_an_error(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "g.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=says):
        check_golden(brevity, file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json cannot be read"):
        golden_traces(tmp_path / "nowhere.json")


def test_its_traces_can_be_had(tmp_path: Path) -> None:
    [two, none] = golden_traces(golden(tmp_path, two=TWO_WORDS, none=NONE))
    assert (two.trace_id, two.answer, none.answer) == ("two", "two words", " ")
