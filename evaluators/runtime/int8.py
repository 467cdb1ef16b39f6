"""Whether a model may run in int8: only where no score of a sample moves by more than the settings allow."""

import logging

import numpy as np

from ragtide.evaluators.runtime.int8_sample import PAIRS, TEXTS
from ragtide.evaluators.spec import Ask, Vectors

_log = logging.getLogger(__name__)


def revision_with_int8(revision: str, tolerance: float | None) -> str:
    """The revision as scores name it: by the tolerance alone, so that all machines' scores are one series, whatever
    each of them runs in.
    """
    return revision if tolerance is None else f"{revision}+int8~{tolerance:g}"


def is_within_tolerance(model: str, tolerance: float, exact: Vectors, quantized: Vectors) -> bool:
    """Whether no score differs by more than the tolerance; logged either way. NaN: a text that is not read at all."""
    off = np.where(np.isnan(exact), 0, np.abs(exact - quantized))
    worst = float(off.max())
    fits = worst <= tolerance
    _log.log(
        logging.INFO if fits else logging.WARNING,
        "model %s runs in %s: on a sample its int8 scores are off by %.2g at most, %.2g is allowed",
        *(model, "int8" if fits else "float32", worst, tolerance),
    )
    return fits


def asks(pairs_alone: bool) -> list[Ask]:
    """What a classifier is tried on: pairs, and texts unless its model reads pairs alone."""
    return [*PAIRS, *(() if pairs_alone else ((text,) for text in TEXTS))]


def similarities(vectors: Vectors) -> Vectors:
    """The cosines of all pairs of unit vectors."""
    return vectors @ vectors.T
