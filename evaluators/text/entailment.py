"""Which sentences entail which, by an NLI model: the pairs it is asked, and what it says of them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragtide.evaluators.spec import Ask, ModelRef, Need, Shared, Vectors
from ragtide.evaluators.text.similarity import similarities

Places = npt.NDArray[np.intp]


def nli(name: str) -> ModelRef:
    """The NLI model of this name: every evaluator that names it shares its answers."""
    return ModelRef(Need.NLI, name, ("entailment", "neutral", "contradiction"))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Each hypothesis with every premise, or with the `top_k` premises most similar to it; one of each at least.

    Where pairs are pruned, premises that read the same are one: the first.
    """

    hypotheses: tuple[str, ...]
    premises: tuple[str, ...]
    top_k: int = 0  # 0: every premise

    def characters(self) -> int:
        """No fewer than all pairs together have: what they cost a model."""
        premises = sorted(map(len, self.premises), reverse=True)[: self.top_k or None]
        return len(self.hypotheses) * sum(premises) + len(premises) * sum(map(len, self.hypotheses))

    def embeds(self) -> Iterator[str]:
        """The texts that choosing the pairs embeds: none where there is nothing to choose."""
        distinct = self._distinct()
        if len(distinct) > self.top_k > 0:
            yield from self.hypotheses
            yield from distinct

    def premises_of(self, shared: Shared) -> Places:
        """The premises of each hypothesis by their places, the most similar first where they are pruned.

        Shape [hypotheses, pairs of each].
        """
        distinct = self._distinct()
        places = np.array(list(distinct.values()) if self.top_k else range(len(self.premises)))
        if not len(distinct) > self.top_k > 0:
            return np.tile(places, (len(self.hypotheses), 1))
        nearest = (-similarities(shared, self.hypotheses, list(distinct))).argsort(axis=1, kind="stable")
        kept: Places = places[nearest[:, : self.top_k]]
        return kept

    def asks(self, shared: Shared) -> list[Ask]:
        """The pairs as (premise, hypothesis), hypothesis by hypothesis."""
        return [
            (self.premises[place], hypothesis)
            for hypothesis, places in zip(self.hypotheses, self.premises_of(shared), strict=True)
            for place in places
        ]

    def entailments(self, shared: Shared, model: ModelRef) -> Vectors:
        """Probability that the premise entails the hypothesis: float32, in the shape of `premises_of`.

        NaN where the model cannot take the hypothesis whole.
        """
        answers = shared.ask(model, self.asks(shared))
        return answers[:, model.labels.index("entailment")].reshape(len(self.hypotheses), -1)

    def _distinct(self) -> dict[str, int]:
        """The place where each text among the premises stands first."""
        places: dict[str, int] = {}
        for place, text in enumerate(self.premises):
            places.setdefault(text, place)
        return places
