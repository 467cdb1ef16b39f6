"""A model that says what a test tells it to."""

from collections.abc import Callable, Mapping, Sequence
from math import nan

import numpy as np

from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors

TOO_LONG = nan


class Answers:
    """The given probability of each ask for the first label, which the second label halves and so on; 0 for others."""

    revision = "answers@1"

    def __init__(self, ref: ModelRef, given: Mapping[Ask, float]) -> None:
        self.asked: list[Ask] = []
        self._ref = ref
        self._given = given

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        self.asked += asks
        first = np.array([self._given.get(ask, 0.0) for ask in asks], np.float32)
        return first[:, None] / 2.0 ** np.arange(self._ref.columns, dtype=np.float32)


def answers(given: Mapping[Ask, float]) -> Callable[[ModelRef], Answers]:
    """Makes the model of any evaluator that asks one."""
    return lambda ref: Answers(ref, given)


def entails(given: Mapping[Ask, float]) -> Callable[[ModelRef], Answers]:
    """As `answers`, for an NLI model: (premise, hypothesis) to the probability of entailment."""

    def made(ref: ModelRef) -> Answers:
        assert ref.need is Need.NLI
        assert ref.labels[0] == "entailment"
        return Answers(ref, given)

    return made
