"""Entailment between sentences by an NLI model: the pairs to score, and their probabilities."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Ask, ModelRef, Need, Shared, Vectors
from ragtide.evaluators.text.similarity import similarities

Places = npt.NDArray[np.intp]


def nli(name: str) -> ModelRef:
    """Return the NLI model of this name. Evaluators with the same name share answers."""
    return ModelRef(Need.NLI, name, ("entailment", "neutral", "contradiction"))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Each hypothesis with every premise, or with the `top_k` most similar premises. There is at least one of each.

    With `top_k`, premises with equal text count once.
    """

    hypotheses: tuple[str, ...]
    premises: tuple[str, ...]
    top_k: int = 0  # 0: every premise

    def characters(self) -> int:
        """Return an upper bound of the characters of all pairs, as their cost."""
        premises = sorted(map(len, self.premises), reverse=True)[: self.top_k or None]
        return len(self.hypotheses) * sum(premises) + len(premises) * sum(map(len, self.hypotheses))

    def embeds(self) -> Iterator[str]:
        """Yield the texts to embed to choose the pairs. Nothing if there is no choice."""
        distinct = self._distinct()
        if len(distinct) > self.top_k > 0:
            yield from self.hypotheses
            yield from distinct

    def premises_of(self, shared: Shared) -> Places:
        """Return the indices of the premises of each hypothesis, the most similar first if they are chosen.

        Shape [hypotheses, premises of each].
        """
        distinct = self._distinct()
        places = np.array(list(distinct.values()) if self.top_k else range(len(self.premises)))
        if not len(distinct) > self.top_k > 0:
            return np.tile(places, (len(self.hypotheses), 1))
        nearest = (-similarities(shared, self.hypotheses, list(distinct))).argsort(axis=1, kind="stable")
        chosen: Places = places[nearest[:, : self.top_k]]
        return chosen

    def asks(self, shared: Shared) -> list[Ask]:
        """Return the pairs as (premise, hypothesis), by hypothesis."""
        return [
            (self.premises[place], hypothesis)
            for hypothesis, places in zip(self.hypotheses, self.premises_of(shared), strict=True)
            for place in places
        ]

    def entailments(self, shared: Shared, model: ModelRef) -> Vectors:
        """Return the probability that the premise entails the hypothesis: float32, in the shape of `premises_of`.

        NaN if the model cannot read the whole hypothesis.
        """
        answers = shared.ask(model, self.asks(shared))
        return answers[:, model.labels.index("entailment")].reshape(len(self.hypotheses), -1)

    def _distinct(self) -> dict[str, int]:
        """Return the first index of each distinct premise."""
        places: dict[str, int] = {}
        for place, text in enumerate(self.premises):
            places.setdefault(text, place)
        return places
