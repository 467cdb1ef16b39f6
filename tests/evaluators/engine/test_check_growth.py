"""The law of growth finds what a record can stall a worker with, and lets all else pass."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from ragtide.evaluators.checks import check_evaluator
from ragtide.evaluators.checks.dense_traces import dense_traces
from ragtide.evaluators.checks.growth import LARGEST, growth_faults
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.spec import Budget, Evaluator, Metric, NoParams, Shared, evaluator
from tests.evaluators.engine.examples import Answer, brevity, nearness, scoring

SHAPES = dict(dense_traces())


@dataclass(frozen=True)
class References:
    expected: tuple[str, ...]


def of_answers(work: Any, budget: Budget | None = None) -> Evaluator:
    def score(rows: Sequence[Answer]) -> Iterable[Outcome]:
        for row in rows:
            work(row.answer)
            yield Scored({"value": 0.5})

    return replace(scoring(score), budget=budget or Budget())


def of_references(work: Any, budget: Budget | None = None) -> Evaluator:
    @evaluator(
        "r", version=1, domain="generation", method="rule", inputs=References, metrics=[Metric("value")], budget=budget
    )
    def made(rows: Sequence[References], shared: Shared, params: NoParams) -> Iterable[Outcome]:
        """Works on the references of each record."""
        for row in rows:
            work(row.expected)
            yield Scored({"value": 0.5})

    return made


def every_rest(text: str) -> None:
    """Quadratic: what follows each comma is copied, as the scan of leaks once did."""
    for at, character in enumerate(text):
        if character == ",":
            len(text[at:].replace(",", "")[:1])


def every_pair(texts: Sequence[str]) -> int:
    return sum(one == other for one in texts for other in texts)


@pytest.mark.parametrize("sound", [brevity, nearness, of_answers(str.split), of_references(set)])
def test_linear_time_passes(sound: Evaluator) -> None:
    assert growth_faults(sound, sound.params()) == []


@pytest.mark.parametrize("slow", [of_answers(every_rest), of_references(every_pair)])
def test_quadratic_time_is_a_fault(slow: Evaluator) -> None:
    assert any(" times as long" in fault for fault in growth_faults(slow, slow.params()))


def test_a_budget_that_bounds_the_time_passes() -> None:
    small = of_references(every_pair, Budget(items=500))
    assert growth_faults(small, small.params()) == []


def test_linear_time_is_a_fault_where_the_budget_lets_too_much_in() -> None:
    def dear(text: str) -> None:
        for character in text:
            repr([character] * 20)

    within = of_answers(dear, Budget(characters=20_000))
    assert growth_faults(within, within.params()) == []
    beyond = of_answers(dear, Budget(characters=8_000_000))
    assert any("as long as a record may" in fault for fault in growth_faults(beyond, beyond.params()))


def test_check_evaluator_asks_it() -> None:
    with pytest.raises(AssertionError, match=r"a trace full of .* times as long"):
        check_evaluator(of_answers(every_rest))


@pytest.mark.parametrize("name", SHAPES)
def test_a_trace_grows_as_the_size_does(name: str) -> None:
    small, large = (len(msgspec.json.encode(SHAPES[name](size))) for size in (10_000, 100_000))
    assert 8 < large / small < 13
    assert small < LARGEST
