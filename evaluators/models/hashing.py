"""A model without weights, for tests only."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors

_WORD = re.compile(r"\w+")


class HashingModel:
    """Gives the same answer to the same words, in every process. Texts that entail each other share words."""

    def __init__(self, ref: ModelRef) -> None:
        self.revision = f"hashing-{ref.name}@1"
        self._ref = ref

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        """Return one row per ask, with the columns of `ModelRef`."""
        rows = [self._row(*(_WORD.findall(text.lower()) for text in ask)) for ask in asks]
        return np.array(rows, np.float32).reshape(len(asks), self._ref.columns)

    def _row(self, words: list[str], others: list[str] | None = None) -> list[float]:
        if self._ref.need is Need.LM:
            before, tail = ([], words) if others is None else (words, others)
            seen = str(_part("nll", *before))
            return [sum(3 * _part(seen, word) for word in tail), float(len(tail))]
        if self._ref.need is Need.NLI:
            shared = len({*words} & {*(others or ())}) / max(1, len({*(others or ())}))
            entailed = {"entailment": shared, "contradiction": (1 - shared) / 4, "neutral": (1 - shared) * 3 / 4}
            return [entailed[label] for label in self._ref.labels]
        said = " ".join((*words, "/", *(others or ())))
        return [_part(label, said) for label in self._ref.labels or ("",)]


def _part(*texts: str) -> float:
    """Return a number in [0, 1) that depends on the texts only."""
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=4).digest(), "little") / (1 << 32)
