"""Which classes a record belongs to, which were predicted, and how sure the classifier was."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.parts import class_label, hidden_label
from ragtide.evaluators.trace import Labels

MOST_LABELS = 1_000
_EVEN = 0.5
_AROUND = " .,:;!?\"'`*"


class Classes(NamedTuple):
    """Expected and predicted classes of one record. One of each at most where it is not `multi`-label.

    `scores` are from 0 to 1, by class; empty where none were recorded or some lie outside, which `scores_usable` tells.
    """

    expected: frozenset[str]
    predicted: frozenset[str]
    multi: bool
    scores: Mapping[str, float] = MappingProxyType({})
    scores_usable: bool = True


def of_labels(labels: Labels) -> Classes | NotApplicable:
    """As recorded. An expected list is multi-label, also of one.

    A recorded prediction stands, whatever the scores say: it is what the application did. Where none was recorded,
    scores make it: the class with the highest, of equal ones the first by name; of multi-label records every class with
    0.5 or more.
    """
    if labels.expected is None:
        return NotApplicable("missing_expected")
    if labels.predicted is None and not labels.scores:
        return NotApplicable("missing_predicted")
    expected, predicted = _classes(labels.expected), _classes(labels.predicted or ())
    multi = isinstance(labels.expected, tuple) or len(predicted) > 1
    if not expected and not multi:
        return NotApplicable("empty_expected")
    scores = {class_label(label): score for label, score in (labels.scores or {}).items()}
    if not all(map(math.isfinite, scores.values())):
        return NotApplicable("scores_not_finite")
    if max(len(expected), len(predicted), len(scores)) > MOST_LABELS:
        return NotApplicable("too_many_labels")
    if labels.predicted is None and multi:
        predicted = frozenset(label for label, score in scores.items() if score >= _EVEN)
    elif labels.predicted is None:
        predicted = frozenset({min(scores, key=lambda label: (-scores[label], label))})
    usable = all(0 <= score <= 1 for score in scores.values())
    return Classes(expected, predicted, multi, scores if usable else {}, usable)


def of_answer(
    answer: str | None, expected: tuple[str, ...] | None, private: Callable[[str], bool]
) -> Classes | NotApplicable:
    """The answer is the predicted class, right where it is one of the expected ones; else the first was expected.

    Case, and punctuation around it, do not matter. A wrong answer is kept as `hidden_label`: it may be any text. So is
    an expected one that is `private`, which is asked of it as it was written, of 64 characters at most.
    """
    if answer is None or expected is None:
        return NotApplicable("missing_answer" if answer is None else "missing_expected")
    classes = [(label, written) for written in expected if (label := _label_of_answer(written))]
    if not classes:
        return NotApplicable("empty_expected")
    given = _label_of_answer(answer)
    right = [found for found in classes if found[0] == given]
    label, written = (right or classes)[0]
    true = frozenset({hidden_label(label) if private(class_label(_bare(written))) else label})
    return Classes(true, true if right else frozenset({hidden_label(given)} if given else ()), multi=False)


def _classes(written: str | tuple[str, ...]) -> frozenset[str]:
    """Empty labels are none."""
    labels = (written,) if isinstance(written, str) else written
    return frozenset(label for label in map(class_label, labels) if label)


def _label_of_answer(written: str) -> str:
    return class_label(_bare(written).casefold())


def _bare(written: str) -> str:
    return written.strip().strip(_AROUND)
