"""Expected and predicted classes of a record, with scores."""

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
    """Expected and predicted classes of one record, at most one of each unless `multi`.

    `scores` are from 0 to 1, by class. They are empty if none were recorded, or if some are out of range (then
    `scores_usable` is False).
    """

    expected: frozenset[str]
    predicted: frozenset[str]
    multi: bool
    scores: Mapping[str, float] = MappingProxyType({})
    scores_usable: bool = True


def classes_of_labels(labels: Labels) -> Classes | NotApplicable:
    """Read recorded labels. An expected list is multi-label, even with one item.

    A recorded prediction counts whatever the scores are: it is what the application did. Without one, the prediction is
    the class with the highest score, the first by name on ties; for multi-label records every class with 0.5 or more.
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


def classes_of_answer(
    answer: str | None, expected: tuple[str, ...] | None, private: Callable[[str], bool]
) -> Classes | NotApplicable:
    """Take the answer as the predicted class. It is correct if it is an expected one, else the first one was expected.

    Case and surrounding punctuation are ignored. A wrong answer becomes `hidden_label`, because it may be any text. So
    does an expected one that is `private`, which gets the label as written, at most 64 characters.
    """
    if answer is None or expected is None:
        return NotApplicable("missing_answer" if answer is None else "missing_expected")
    classes = [(label, written) for written in expected if (label := _label_of_answer(written))]
    if not classes:
        return NotApplicable("empty_expected")
    given = _label_of_answer(answer)
    right = [found for found in classes if found[0] == given]
    label, written = (right or classes)[0]
    true = frozenset({hidden_label(label) if private(class_label(_strip_punctuation(written))) else label})
    return Classes(true, true if right else frozenset({hidden_label(given)} if given else ()), multi=False)


def _classes(written: str | tuple[str, ...]) -> frozenset[str]:
    """Normalise labels, without empty ones."""
    labels = (written,) if isinstance(written, str) else written
    return frozenset(label for label in map(class_label, labels) if label)


def _label_of_answer(written: str) -> str:
    return class_label(_strip_punctuation(written).casefold())


def _strip_punctuation(written: str) -> str:
    return written.strip().strip(_AROUND)
