"""Wrong declarations and crashing functions: each gets a sentence that says what to write, and its own line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.spec import Evaluator, Metric, NoParams, Shared, evaluator


@dataclass(frozen=True, slots=True)
class Inputs:
    """The answer."""

    answer: str


class Plain:
    answer: str


@dataclass(frozen=True)
class Misspelt:
    anwser: str


NOTHING: dict[str, dict[str, float]] = {}
GIVEN: dict[str, Any] = {
    **{"version": 1, "domain": "generation", "method": "rule", "inputs": Inputs},
    "metrics": [Metric("value", primary=True)],
}


def declared(function: Any, **given: Any) -> Evaluator:
    declare: Any = evaluator  # mistakes are what is tested
    made: Evaluator = declare("value", **{**GIVEN, **given})(function)
    return made


def of_record(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    """Sound."""
    return Scored({"value": 1.0})


def of_batch(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Iterator[Outcome]:
    """Sound."""
    return (Scored({"value": 1.0}) for _ in rows)


async def waiting(row: Inputs, shared: Shared, params: NoParams) -> Outcome:
    return Scored({"value": 1.0})


async def waiting_for_each(rows: Sequence[Inputs], shared: Shared, params: NoParams) -> Any:
    yield Scored({"value": 1.0})


def of_row_alone(row: Inputs) -> Outcome:
    return Scored({"value": 1.0})


def test_sound_ones_pass() -> None:
    check_evaluator(declared(of_record, per_record=True))
    check_evaluator(declared(of_batch))
    check_evaluator(declared(of_batch, metrics=iter([Metric("value", primary=True)])))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"params": dict}, "params must be a pydantic model, not the class dict: write class Params(BaseModel, "),
        ({"params": {"limit": 3}}, "params must be a pydantic model, not a dict: write class Params(BaseModel, "),
        ({"params": NoParams()}, "params must be a pydantic model, not a NoParams: write class Params(BaseModel, "),
        ({"metrics": Metric("value")}, "metrics must be a tuple of Metric, not a Metric: write metrics=(Metric(...),)"),
        ({"metrics": ["value"]}, "metrics must be a tuple of Metric, not a list: write metrics=(Metric(...),)"),
        ({"metrics": "value"}, "metrics must be a tuple of Metric, not a str: write metrics=(Metric(...),)"),
        ({"inputs": Plain}, "inputs must be a dataclass, not the class Plain: write @dataclass(frozen=True) above a"),
        ({"inputs": "answer"}, "inputs must be a dataclass, not a str: write @dataclass(frozen=True) above a class"),
        ({"inputs": Inputs("a")}, "inputs must be a dataclass, not a Inputs: write @dataclass(frozen=True) above a"),
        ({"inputs": Misspelt}, "inputs must be a dataclass of Trace fields; a Trace has no anwser"),
    ],
)
def test_a_wrong_declaration_says_what_to_write(given: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as error:
        declared(of_record, per_record=True, **given)
    assert str(error.value).startswith(f"evaluator 'value': {says}")


@pytest.mark.parametrize(
    ("function", "per_record", "says"),
    [
        (waiting, True, "the function must not be async: write def instead of async def, and await nothing"),
        (waiting, False, "the function must not be async: write def instead of async def, and await nothing"),
        (waiting_for_each, False, "the function must not be async: write def instead of async def, and await nothing"),
        (of_record, False, "the function takes one row: declare it with per_record=True, or take a batch of rows"),
        (of_batch, True, "the function takes a batch of rows: leave out per_record=True, or take one row"),
        (of_row_alone, True, "the function must take three arguments: row, shared, params"),
        (of_row_alone, False, "the function must take three arguments: rows, shared, params"),
    ],
)
def test_a_function_of_another_form_is_refused(function: Any, per_record: bool, says: str) -> None:
    with pytest.raises(TypeError) as error:
        declared(function, per_record=per_record)
    assert str(error.value) == f"evaluator 'value': {says}"


def crashes_on(made: Evaluator) -> tuple[str, BaseException | None]:
    with pytest.raises(AssertionError) as error:
        check_evaluator(made)
    return str(error.value), error.value.__cause__


def test_an_error_shows_its_own_traceback_and_line() -> None:
    def crashing(row: Any, shared: Any, params: Any) -> Outcome:
        """Crash."""
        return Scored(NOTHING["here"])

    said, cause = crashes_on(declared(crashing, per_record=True))
    line = crashing.__code__.co_firstlineno + 2
    assert f"crashed: KeyError at test_declaration.py:{line}\n" in said
    assert f'File "{__file__}", line {line}, in crashing' in said
    assert said.count('return Scored(NOTHING["here"])') == 1
    assert "KeyError: 'here'" in said
    assert "run.py" not in said
    assert isinstance(cause, KeyError)


def test_an_error_of_a_generator_and_of_embeds_shows_it_too() -> None:
    def crashing(rows: Any, shared: Any, params: Any) -> Iterator[Outcome]:
        """Crash."""
        for _ in rows:
            yield Scored({"value": float("high")})

    def embeds(row: Any, shared: Any, params: Any) -> Iterator[str]:
        raise LookupError("no text")

    said, cause = crashes_on(declared(crashing))
    assert "ValueError: could not convert string to float: 'high'" in said
    assert isinstance(cause, ValueError)
    said, _ = crashes_on(declared(of_batch, embeds=embeds, needs={"embedding"}))
    assert "LookupError: no text" in said


def test_a_function_that_takes_a_batch_for_a_row_is_told_so() -> None:
    def of_one(row: Any, shared: Any, params: Any) -> Any:
        """Take a row."""
        return [Scored({"value": float(len(row.answer))})]

    def of_many(rows: Any, shared: Any, params: Any) -> Any:
        """Take a batch."""
        return [Scored({"value": 1.0}) for _ in rows]

    said, _ = crashes_on(declared(of_one))
    assert "the function got a batch and takes one row: declare it with per_record=True" in said
    said, _ = crashes_on(declared(of_many, per_record=True))
    assert "the function got one row and takes a batch: leave out per_record=True" in said


def test_a_model_of_parameters_is_one() -> None:
    class Params(BaseModel):
        limit: int = 3

    assert declared(of_record, per_record=True, params=Params).params is Params
