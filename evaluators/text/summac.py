"""SummaC: how well a source entails its summary (Laban et al. 2022, "SummaC: Re-Visiting NLI-based Models for
Inconsistency Detection in Summarization", TACL 10).

Both scores start from a matrix of entailments, one row per summary sentence and one column per source sentence.
"""

import math
from typing import Annotated

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat

from ragtide.evaluators.spec import Vectors

# Edges of the published convolution's 23 bins ("percentile"): close where entailments are, which is at both ends.
EDGES = (
    *(0.0, 0.01, 0.02, 0.03, 0.04, 0.07, 0.13, 0.37, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.955, 0.96, 0.965, 0.97),
    *(0.975, 0.98, 0.985, 0.99, 0.995, 1.0),
)
BINS = len(EDGES) - 1


class Convolution(BaseModel, frozen=True, extra="forbid"):
    """Trained weights of SummaC-Conv: one per bin, and the map from the mean of a summary to log-odds.

    The published model ends in two classes over three pooled features. With mean pooling, as in training, the features
    are equal, so that the log-odds are linear: `slope` and `offset`.
    """

    weights: Annotated[tuple[FiniteFloat, ...], Field(min_length=BINS, max_length=BINS)]
    bias: FiniteFloat
    slope: FiniteFloat
    offset: FiniteFloat

    def score(self, entailments: Vectors) -> float:
        """Return the probability that the source supports the summary. All summary sentences have equal weight.

        The authors' code reads only ten summary sentences and 100 source sentences; this reads all.
        """
        histograms = [np.histogram(row, bins=EDGES)[0] for row in entailments]
        return _sigmoid(self.slope * float(np.mean(histograms @ np.array(self.weights) + self.bias)) + self.offset)


def zero_shot(entailments: Vectors) -> float:
    """Return SummaC-ZS without contradictions: the mean over summary sentences of their highest entailment, 0 to 1."""
    return float(entailments.max(axis=1).mean(dtype=np.float64))


def _sigmoid(log_odds: float) -> float:
    return 0.5 * (1.0 + math.tanh(log_odds / 2.0))
