"""Tell whether users' questions differ from earlier ones, by their vectors.

`InputDriftCheck` learns a reference for each application, and reports groups of questions whose share changed and days
that a classifier can tell from the reference.
"""

from ragtide.drift.input_drift.check import (
    INPUT_DRIFT,
    STALE_AFTER_S,
    InputDriftCheck,
    SourceProcessor,
    input_drift_detection,
)
from ragtide.drift.input_drift.messages import QUESTION_METRIC, shift_onset, source_key
from ragtide.drift.input_drift.reference import TICK_S, InputDriftState
from ragtide.drift.input_drift.source import ClickHouseQuestionStore, QuestionSource, active_sources
from ragtide.drift.input_drift.view import pin_coverage, reference_views

__all__ = [
    "INPUT_DRIFT",
    "QUESTION_METRIC",
    "STALE_AFTER_S",
    "TICK_S",
    "ClickHouseQuestionStore",
    "InputDriftCheck",
    "InputDriftState",
    "QuestionSource",
    "SourceProcessor",
    "active_sources",
    "input_drift_detection",
    "pin_coverage",
    "reference_views",
    "shift_onset",
    "source_key",
]
