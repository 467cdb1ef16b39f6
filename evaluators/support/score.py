"""The probability that an answer says nothing that its contexts lack: a logistic model of a few features.

Coefficients and threshold are fitted by `benchmarks.support`, on people's labels of RAGTruth (Niu et al., ACL 2024),
where a little over a third of the answers have a hallucination. On data with another share the order of answers holds,
and the probability is shifted.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from math import exp, log1p

from ragtide.evaluators.support.reading import Support

FEATURES = ("weakest", "apart", "numbers", "names", "denied", "reversed")
WITH_VECTORS = (*FEATURES, "distant")
_SMOOTHING = 3.0  # weight added to that of a sentence: one word of a heading says little
_WEAKEST = 2  # sentences whose mean counts: one alone may be a slip of the splitter


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Of the log-odds of a hallucination: a constant, and a coefficient for each feature."""

    constant: float
    slopes: Mapping[str, float]

    def support(self, features: Mapping[str, float]) -> float:
        """Return the probability that there is no hallucination, from 0 to 1."""
        log_odds = self.constant + sum(slope * features[name] for name, slope in self.slopes.items())
        return 1.0 / (1.0 + exp(min(log_odds, 700.0)))


@lru_cache(maxsize=2)
def coefficients(name: str) -> Coefficients:
    """Read the fitted coefficients: `words`, or `vectors` for those with sentence vectors."""
    read = tomllib.loads((resources.files("ragtide.evaluators.support") / "coefficients.toml").read_text("utf-8"))[name]
    return Coefficients(read.pop("constant"), read)


def features_of(support: Support, nearest: Sequence[float] | None = None) -> dict[str, float]:
    """Return the features of an answer with at least one sentence. Its length is none of them, but among more sentences
    the weakest two are weaker, and a longer answer can have more errors.

    - weakest: share of the words by weight that the contexts lack, mean of the two sentences where it is highest
    - apart: share of the neighbouring words that no sentence of the contexts has together, in the same way
    - numbers, names: log(1 + count) of those that the contexts lack
    - denied: things that a record denies, per sentence
    - reversed: whether a clause has a negation more or less than its nearest sentence
    - distant: what is lacking of a sentence, times 1 - cosine similarity to the nearest context sentence, in the same
      way (with `nearest`); 0 where the contexts are records, whose sentences no vector is near
    """
    sentences = support.sentences
    lacking = [one.lacking / (one.weight + _SMOOTHING) for one in sentences]
    found = {
        "weakest": _weakest(lacking),
        "apart": _weakest([one.apart / (one.pairs + _SMOOTHING) for one in sentences]),
        "numbers": log1p(sum(len(one.numbers) for one in sentences)),
        "names": log1p(sum(len(one.names) for one in sentences)),
        "denied": sum(len(one.denied) for one in sentences) / len(sentences),
        "reversed": float(any(one.reversed for one in sentences)),
    }
    if nearest is not None:
        distant = [share * (1.0 - similarity) for share, similarity in zip(lacking, nearest, strict=True)]
        found["distant"] = 0.0 if support.from_records else _weakest(distant)
    return found


def _weakest(values: Sequence[float]) -> float:
    highest = sorted(values, reverse=True)[:_WEAKEST]
    return sum(highest) / len(highest)
