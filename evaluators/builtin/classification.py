from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field, model_validator

from ragtide.evaluators.classification.counts import combine, parts_of
from ragtide.evaluators.classification.labels import Classes, of_answer, of_labels
from ragtide.evaluators.leaks import scanner
from ragtide.evaluators.outcome import Finding, NotApplicable, Outcome, Scored
from ragtide.evaluators.parts import class_label
from ragtide.evaluators.spec import Metric, Shared, evaluator
from ragtide.evaluators.trace import Labels

_HUNDREDTHS = 100
_UNUSABLE = Finding("scores_not_shares", "label scores below 0 or above 1: no ROC AUC and no curves")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Labels, or an answer that is one and what it should have been."""

    labels: Labels | None
    answer: str | None
    expected: tuple[str, ...] | None
    task: str | None


class Params(BaseModel, frozen=True, extra="forbid"):
    """Where labels are from, and what the curves on the dashboard show."""

    labels_from: Literal["auto", "labels", "answer"] = Field(
        "auto",
        description="labels: field labels; answer: answer against expected; auto: labels where recorded, else answer "
        "where the trace's task is classification.",
    )
    positive: str | None = Field(
        None,
        min_length=1,
        description="The positive class. Unset: that of yes/no, true/false, 1/0, positive/negative or pos/neg, where a "
        "window has no other classes.",
    )
    curve_thresholds: tuple[float, float, float] = Field(
        (0.05, 0.95, 0.05), description="Score thresholds of curves, in hundredths: first, last, step."
    )
    curve_max_examples: int = Field(
        1, ge=0, le=100, description="Most example traces of a kind of error at a threshold."
    )

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Those of curves, in hundredths."""
        first, last, step = (round(value * _HUNDREDTHS) for value in self.curve_thresholds)
        return tuple(range(first, last + 1, step))

    @model_validator(mode="after")
    def _hundredths(self) -> "Params":
        first, last, step = (value * _HUNDREDTHS for value in self.curve_thresholds)
        if not (1 <= first <= last <= _HUNDREDTHS and 1 <= step <= _HUNDREDTHS):
            raise ValueError("curve_thresholds must be 0.01 <= first <= last <= 1, and a step from 0.01 to 1")
        if any(abs(value - round(value)) > 1e-9 for value in (first, last, step)):
            raise ValueError("curve_thresholds must be whole hundredths: counts are exact there")
        return self


def _metrics() -> Iterator[Metric]:
    yield Metric("accuracy", threshold=0.75, primary=True, description="records with exactly the expected classes")
    told = {
        "precision": "right ones of the predictions",
        "recall": "predicted ones of the records expected",
        "f1": "harmonic mean of precision and recall",
    }
    for key, what in told.items():
        yield Metric(key, threshold=0.75, description=f"{what}: of the positive class, else as macro_{key}")
    for average, over in (("micro", "of the sums over classes"), ("macro", "mean over classes, 0 / 0 being 0")):
        for key, what in told.items():
            yield Metric(f"{average}_{key}", threshold=0.8, description=f"{what}: {over}")
    yield Metric(
        "roc_auc", threshold=0.75, description="area under the ROC curve: of the positive class, else the mean"
    )
    for key, what in told.items():
        yield Metric(f"class_{key}", per=("class",), description=f"{what} of each class")


@evaluator(
    "classification",
    version=2,
    domain="classification",
    method="window",
    inputs=Inputs,
    params=Params,
    metrics=_metrics(),
    combine=combine,
)
def classification(rows: Sequence[Inputs], shared: Shared, params: Params) -> Iterator[Outcome]:
    """Expected against predicted classes of a window of records: binary, multi-class and multi-label. A recorded
    prediction counts as it is, even where another class has the highest score: it is what the application did. Where
    none was recorded, the class with the highest score is the prediction; of multi-label records, every class with 0.5
    or more. Metrics are those of scikit-learn, and absent where they are 0 / 0. ROC AUC is of scores in hundredths, of
    one class against the rest, over the records with scores; a class that such a record gives no score has 0 there. A
    wrong answer is kept as a hash, and so is an expected one in which personal data or a secret is found.
    """
    positive = class_label(params.positive) if params.positive else None
    scan = scanner()
    for row in rows:
        classes = _classes(row, params, lambda label: bool(shared.once(scan, label).hits))
        yield classes if isinstance(classes, NotApplicable) else _score(classes, positive)


def _score(classes: Classes, positive: str | None) -> Scored:
    right = classes.expected == classes.predicted
    outcome = "correct" if right else "misclassification" if classes.predicted else "no_prediction"
    findings = () if classes.scores_usable else (_UNUSABLE,)
    return Scored({"accuracy": float(right)}, {"outcome": outcome}, parts_of(classes, positive), findings=findings)


def _classes(row: Inputs, params: Params, private: Callable[[str], bool]) -> Classes | NotApplicable:
    if params.labels_from != "answer" and row.labels is not None:
        return of_labels(row.labels)
    if params.labels_from == "answer" or (params.labels_from == "auto" and row.task == "classification"):
        return of_answer(row.answer, row.expected, private)
    return NotApplicable("missing_labels")
