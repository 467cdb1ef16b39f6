"""Decides whether a model may run in int8: only if no sample score changes by more than the tolerance."""

import logging

import numpy as np

from ragtide.evaluators.runtime.int8_sample import PAIRS, TEXTS
from ragtide.evaluators.spec import Ask, Vectors

_log = logging.getLogger(__name__)


def revision_with_int8(revision: str, tolerance: float | None) -> str:
    """Add the tolerance to the revision.

    All machines share it, whether they run in int8 or not, so that their scores are one series.
    """
    return revision if tolerance is None else f"{revision}+int8~{tolerance:g}"


def is_within_tolerance(model: str, tolerance: float, exact: Vectors, quantized: Vectors) -> bool:
    """Whether no score differs by more than the tolerance, with a log entry. NaN means a text that is not read."""
    off = np.where(np.isnan(exact), 0, np.abs(exact - quantized))
    worst = float(off.max())
    fits = worst <= tolerance
    _log.log(
        logging.INFO if fits else logging.WARNING,
        "model %s runs in %s: its int8 scores of a sample differ by at most %.2g (tolerance %.2g)",
        *(model, "int8" if fits else "float32", worst, tolerance),
    )
    return fits


def asks(pairs_alone: bool) -> list[Ask]:
    """Return the sample of a classifier: pairs, and texts unless the model reads pairs only."""
    return [*PAIRS, *(() if pairs_alone else ((text,) for text in TEXTS))]


def similarities(vectors: Vectors) -> Vectors:
    """Return the cosine similarity of all pairs of unit vectors."""
    return vectors @ vectors.T
