"""The kinds of problems: how one was found, and what follows from that for its type, code and remediation."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Aspect = Literal[  # what of an application, or of the system, a problem is about
    "level", "coverage", "flip", "inconsistency", "missing", "error", "inputs", "finding", "storage", "jobs"
]
Kind = Literal[
    "threshold",
    "drift",
    "change_point",
    "failure_rate",
    "finding",
    "flip",
    "inconsistency",
    "coverage",
    "missing_data",
    "evaluator_error",
    "input_drift",
    "slo_burn",
]


class KindInfo(NamedTuple):
    """What holds for all problems of a kind.

    `type` and `code` are None where the metric says, `about_figures` where the problem is that a figure is missing or
    means little, `actions_suffice` where those of the evaluator and the type add nothing, `can_rebaseline` where an
    operator may accept the change as the new baseline.
    """

    type: str | None = None
    code: str | None = None
    actions: tuple[str, ...] = ()
    about_figures: bool = False
    actions_suffice: bool = False
    can_rebaseline: bool = False


_DRIFT_ACTIONS = (
    "Look for what changed at the onset: prompt or model version, index, traffic; then read the examples.",
    "Where the change is meant, accept it: ragtide problems accept ID --why … starts a new baseline.",
)
KINDS: Mapping[str, KindInfo] = {
    "threshold": KindInfo(),
    "drift": KindInfo(code="P0102 Concept drift", actions=_DRIFT_ACTIONS, can_rebaseline=True),
    "change_point": KindInfo(code="P0102 Concept drift", actions=_DRIFT_ACTIONS, can_rebaseline=True),
    "failure_rate": KindInfo(
        actions=("Read the examples by their cause (attributes): mend retrieval, generation or parsing first?",)
    ),
    "finding": KindInfo(
        type="data_quality",
        actions=("Open the examples and look at what the evaluator found, and since when; mend it at its source.",),
    ),
    "flip": KindInfo(
        type="robustness",
        actions=(
            "Compare the answers to the question and to its perturbed form, the worst first.",
            "Make the prompt and the retrieval less sensitive to the wording named in the segment.",
        ),
    ),
    "inconsistency": KindInfo(
        type="stability",
        actions=(
            "Compare the answers to the same question: do contexts differ, or the model at the same contexts?",
            "Lower the temperature, and check that the order of chunks and the index are stable.",
        ),
    ),
    "coverage": KindInfo(
        type="data_quality",
        actions=(
            "Look at why {evaluator} failed (reasons in the attributes), in the worker's logs and in table scores.",
            "Check that workers of its lane run, and the model or endpoint that the evaluator needs.",
        ),
        about_figures=True,
        actions_suffice=True,
    ),
    "missing_data": KindInfo(
        type="data_quality",
        actions=(
            "Ask whether the application runs and still sends its traces, and look at its producer's errors.",
            "Look at the topic, and at the dead letters: traces that cannot be read are not counted.",
        ),
        about_figures=True,
        actions_suffice=True,
    ),
    "evaluator_error": KindInfo(
        type="runtime",
        actions=(
            "Look at the reasons in the attributes and at the worker's logs; run `ragtide check` "
            "where the workers run.",
            "Check the model or endpoint of {evaluator}: files, memory, quota, time limits.",
        ),
        about_figures=True,
        actions_suffice=True,
    ),
    "input_drift": KindInfo(
        type="data_quality",
        code="P0101 Data drift",
        actions=(
            "Look at what users ask now: new topics, languages or clients; check that the index covers them.",
            "Where the traffic is meant to be so, accept it: ragtide problems accept ID --why … starts a new baseline.",
        ),
        can_rebaseline=True,
        actions_suffice=True,
    ),
    "slo_burn": KindInfo(
        actions=(
            "See how much of the error budget is left (attributes), and which of the app's metrics burns it.",
            "Undo the newest change of the application until the rate is back.",
        )
    ),
}
REBASELINABLE = tuple(name for name, info in KINDS.items() if info.can_rebaseline)
