"""`@evaluator(..., per_record=True)`: a function of one row, run as any other evaluator."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel

from ragtide.evaluators import check_evaluator
from ragtide.evaluators.outcome import Failed, NotApplicable, Outcome, Scored
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Evaluator, Metric, Shared, evaluator
from tests.evaluators.engine.examples import Answer, Limit, batch, brevity, ready, trace


@evaluator(
    "brief",
    version=1,
    domain="generation",
    method="rule",
    per_record=True,
    inputs=Answer,
    params=Limit,
    metrics=[Metric("brevity", primary=True)],
)
def brief(row: Answer, shared: Shared, params: Limit) -> Outcome:
    """One word scores 1, `limit` words or more 0."""
    words = len(row.answer.split())
    return Scored({"brevity": max(0.0, 1 - (words - 1) / params.limit)}) if words else NotApplicable("empty")


def per_record(function: Callable[[Answer], Any]) -> Evaluator:
    """An evaluator of the answer, as nobody type-checked it."""

    def value(row: Answer, shared: Shared, params: BaseModel) -> Any:
        """Given by a test."""
        return function(row)

    metrics = [Metric("value", primary=True)]
    return evaluator(
        "value", version=1, domain="generation", method="rule", per_record=True, inputs=Answer, metrics=metrics
    )(value)


def outcomes(one: Evaluator, answers: Sequence[str]) -> list[Outcome | None]:
    [found] = run_all(ready(one), [trace(i, answer) for i, answer in enumerate(answers)], batch())
    return found


def test_it_keeps_the_contract() -> None:
    check_evaluator(brief)


def test_it_scores_as_the_same_function_of_a_batch() -> None:
    answers = ["", "one", "one two", "three of them", " "]
    assert outcomes(brief, answers) == outcomes(brevity, answers)


def test_description_and_module_are_the_functions() -> None:
    assert brief.description == "One word scores 1, `limit` words or more 0."
    assert brief.score.__module__ == __name__


def test_a_row_that_raises_fails_alone() -> None:
    found = outcomes(per_record(lambda row: Scored({"value": 1 / int(row.answer)})), ["1", "2", "0", "4", "none"])
    assert found[:2] == [Scored({"value": 1.0}), Scored({"value": 0.5})]
    assert found[3] == Scored({"value": 0.25})
    for failed, error in ((found[2], "ZeroDivisionError"), (found[4], "ValueError")):
        assert isinstance(failed, Failed)
        assert failed.kind == "crashed"
        assert failed.detail.startswith(f"{error} at test_per_record.py:")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "gave a NoneType, not a Scored, NotApplicable or Failed"),
        (0.5, "gave a float, not a Scored, NotApplicable or Failed"),
        ([Scored({"value": 0.5})], "gave a list, not a Scored, NotApplicable or Failed"),
        (Scored({"value": 2.0}), "metric value is 2.0, outside [0.0, 1.0]"),
    ],
)
def test_a_bad_outcome_fails_that_row(given: Any, says: str) -> None:
    found = outcomes(per_record(lambda row: given if row.answer == "bad" else Scored({"value": 0.5})), ["a", "bad"])
    assert found == [Scored({"value": 0.5}), Failed("contract", says)]


def test_a_binary_metric_is_0_or_1() -> None:
    one = per_record(lambda row: Scored({"value": float(row.answer)}))
    found = outcomes(replace(one, metrics=(Metric("value", binary=True),)), ["0", "1", "0.5"])
    fault = Failed("contract", "metric value is 0.5, and is declared binary: 0 or 1")
    assert found == [Scored({"value": 0.0}), Scored({"value": 1.0}), fault]


def test_a_function_that_yields_is_refused_at_once() -> None:
    def yields(row: Answer, shared: Shared, params: BaseModel) -> Iterator[Outcome]:
        """Yields what it should return."""
        yield Scored({"value": 0.5})

    untyped: Any = yields
    with pytest.raises(TypeError, match=r"^evaluator 'value': with per_record=True .* return one outcome, not yield$"):
        evaluator("value", version=1, domain="generation", method="rule", per_record=True, inputs=Answer, metrics=[])(
            untyped
        )


@pytest.mark.parametrize("given", [Scored({"value": 0.5}), NotApplicable("never"), Failed("kind", "detail")])
@pytest.mark.parametrize("records", [1, 3])
def test_one_outcome_for_a_batch_is_told_how_to_become_per_record(given: Outcome, records: int) -> None:
    def single(rows: Sequence[Answer], shared: Shared, params: BaseModel) -> Any:
        """Returns what per_record would take."""
        return given

    one = evaluator("value", version=1, domain="generation", method="rule", inputs=Answer, metrics=[Metric("value")])(
        single
    )
    says = f"gave one {type(given).__name__} for a batch: declare it with per_record=True, or give one for each row"
    assert outcomes(one, ["a"] * records) == [Failed("contract", says)] * records
