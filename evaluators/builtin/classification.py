from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from ragtide.evaluators.classification.counts import combine, parts_of
from ragtide.evaluators.classification.labels import Classes, classes_of_answer, classes_of_labels
from ragtide.evaluators.leaks import scanner
from ragtide.evaluators.outcome import Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import class_label
from ragtide.evaluators.spec import Metric, Shared, evaluator
from ragtide.evaluators.trace import Labels

_HUNDREDTHS = 100
_UNUSABLE = Finding("scores_not_shares", "label scores below 0 or above 1: no ROC AUC and no curves")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Labels, or an answer that is a label and its references."""

    labels: Labels | None
    answer: str | None
    expected: tuple[str, ...] | None
    task: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """Source of the labels, and the curves on the dashboard."""

    labels_from: Literal["auto", "labels", "answer"] = Field(
        "auto",
        description="labels: the field labels. answer: the answer, compared with expected. auto: labels if recorded, "
        "else answer if the task is classification.",
    )
    positive: str | None = Field(
        None,
        min_length=1,
        description="Positive class. If unset, that of yes/no, true/false, 1/0, positive/negative or pos/neg, if a "
        "window has no other classes.",
    )
    curve_thresholds: tuple[float, float, float] = Field(
        (0.05, 0.95, 0.05), description="Score thresholds of the curves: first, last and step. Multiples of 0.01."
    )
    curve_max_examples: int = Field(
        1, ge=0, le=100, description="Maximum example traces for each kind of error and threshold."
    )

    @property
    def thresholds(self) -> tuple[int, ...]:
        """The thresholds of the curves, in hundredths."""
        first, last, step = (round(value * _HUNDREDTHS) for value in self.curve_thresholds)
        return tuple(range(first, last + 1, step))

    @model_validator(mode="after")
    def _hundredths(self) -> "Params":
        first, last, step = (value * _HUNDREDTHS for value in self.curve_thresholds)
        if not (1 <= first <= last <= _HUNDREDTHS and 1 <= step <= _HUNDREDTHS):
            raise ValueError("curve_thresholds must be 0.01 <= first <= last <= 1, and a step from 0.01 to 1")
        if any(abs(value - round(value)) > 1e-9 for value in (first, last, step)):
            raise ValueError("curve_thresholds must be multiples of 0.01")
        return self


def _metrics() -> Iterator[Metric]:
    yield Metric(
        "accuracy", threshold=0.75, primary=True, description="share of records with exactly the expected classes"
    )
    ratios = {
        "precision": "correct predictions / predictions",
        "recall": "correct predictions / expected labels",
        "f1": "harmonic mean of precision and recall",
    }
    for key, ratio in ratios.items():
        yield Metric(key, threshold=0.75, description=f"{ratio}, for the positive class; without one, macro_{key}")
    for average, over in (
        ("micro", "over the sums of all classes"),
        ("macro", "mean over the classes, with 0 / 0 = 0"),
    ):
        for key, ratio in ratios.items():
            yield Metric(f"{average}_{key}", threshold=0.8, description=f"{ratio}, {over}")
    yield Metric(
        "roc_auc",
        threshold=0.75,
        description="area under the ROC curve of the positive class; without one, mean over the classes",
    )
    for key, ratio in ratios.items():
        yield Metric(f"class_{key}", per=("class",), description=f"{ratio}, for each class")


@evaluator(
    "classification",
    version=2,
    domain="classification",
    method="window",
    per_record=True,
    inputs=Inputs,
    params=Params,
    metrics=_metrics(),
    combine=combine,
)
def classification(row: Inputs, shared: Shared, params: Params) -> Outcome:
    """Expected and predicted classes over a window of records: binary, multi-class or multi-label. A recorded
    prediction counts even if another class has a higher score. Without one, the prediction is the class with the
    highest score, or every class with a score of 0.5 or more if the record is multi-label. The metrics are those of
    scikit-learn, and absent if they are 0 / 0. ROC AUC compares one class with the rest, over the records with scores,
    which are rounded down to hundredths; a class without a score in such a record has 0. A wrong answer is stored as a
    hash, and so is an expected answer that contains personal data or a secret.
    """
    classes = _classes(row, params, lambda label: bool(shared.once(scanner(), label).hits))
    if isinstance(classes, NotApplicable):
        return classes
    positive = class_label(params.positive) if params.positive else None
    right = classes.expected == classes.predicted
    outcome = "correct" if right else "misclassification" if classes.predicted else "no_prediction"
    findings = () if classes.scores_usable else (_UNUSABLE,)
    return Scored({"accuracy": float(right)}, {"outcome": outcome}, parts_of(classes, positive), findings=findings)


def _classes(row: Inputs, params: Params, private: Callable[[str], bool]) -> Classes | NotApplicable:
    if params.labels_from != "answer" and row.labels is not None:
        return classes_of_labels(row.labels)
    if params.labels_from == "answer" or (params.labels_from == "auto" and row.task == "classification"):
        return classes_of_answer(row.answer, row.expected, private)
    return NotApplicable("missing_labels")
