"""The kinds of problems: how one was found, and what follows from that for its type, code and remediation."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Aspect = Literal[  # what of an application, or of the system, a problem is about
    "level", "coverage", "flip", "inconsistency", "missing", "error", "inputs", "finding", "storage", "jobs", "judge",
    "fleet",
]  # fmt: skip
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
    "early_change",
    "judge_shift",
    "fleet_change",
]


class KindInfo(NamedTuple):
    """Properties of all problems of a kind.

    `type` and `code` are None if the metric has them. `about_figures`: a figure is missing or unreliable.
    `actions_suffice`: actions of the evaluator and the type are left out. `can_rebaseline`: an operator may accept the
    change as the new baseline.
    """

    type: str | None = None
    code: str | None = None
    actions: tuple[str, ...] = ()
    about_figures: bool = False
    actions_suffice: bool = False
    can_rebaseline: bool = False


_DRIFT_ACTIONS = (
    "Find out what changed at the onset: prompt or model version, index, traffic. Then read the examples.",
    "If the change is intended, accept it: `ragtide problems accept ID --why …` starts a new baseline.",
)
KINDS: Mapping[str, KindInfo] = {
    "threshold": KindInfo(),
    "drift": KindInfo(code="P0102 Concept drift", actions=_DRIFT_ACTIONS, can_rebaseline=True),
    "change_point": KindInfo(code="P0102 Concept drift", actions=_DRIFT_ACTIONS, can_rebaseline=True),
    "failure_rate": KindInfo(
        actions=(
            "Read the examples by cause (attributes) to decide what to fix first: retrieval, generation or parsing.",
        )
    ),
    "finding": KindInfo(
        type="data_quality",
        actions=("Open the examples to see the finding and its start, then fix its source.",),
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
            "Find out why {evaluator} failed: reasons in the attributes, the worker's logs, and table scores.",
            "Check that workers of its lane run, and the model or endpoint that the evaluator needs.",
        ),
        about_figures=True,
        actions_suffice=True,
    ),
    "missing_data": KindInfo(
        type="data_quality",
        actions=(
            "Check that the application runs and sends traces, and read its producer's errors.",
            "Check the topic and the dead letters: unreadable traces are not counted.",
        ),
        about_figures=True,
        actions_suffice=True,
    ),
    "evaluator_error": KindInfo(
        type="runtime",
        actions=(
            "Read the reasons in the attributes and the worker's logs; run `ragtide check` where the workers run.",
            "Check the model or endpoint of {evaluator}: files, memory, quota, time limits.",
        ),
        about_figures=True,
        actions_suffice=True,
    ),
    "input_drift": KindInfo(
        type="data_quality",
        code="P0101 Data drift",
        actions=(
            "Read what users ask now (new topics, languages or clients), and check that the index covers it.",
            "If the new traffic is intended, accept it: `ragtide problems accept ID --why …` starts a new baseline.",
        ),
        can_rebaseline=True,
        actions_suffice=True,
    ),
    "early_change": KindInfo(
        actions=("Look for what changed at the onset: model, prompt, provider, load. No baseline exists yet.",)
    ),
    "judge_shift": KindInfo(
        type="data_quality",
        actions=(
            "Ask the endpoint's provider what changed at the onset: model, version, quantisation, filter.",
            "Name a fixed version of the model. If the new judge is right, accept it: "
            "`ragtide problems accept ID --why …` makes its scores the new reference.",
        ),
        about_figures=True,
        can_rebaseline=True,
        actions_suffice=True,
    ),
    "fleet_change": KindInfo(
        type="runtime",
        actions=(
            "Look for what the applications share: model provider, gateway, index, network, deployment.",
            "If it was a holiday, a change of clocks or a planned event, name it in the calendar: [[drift.calendar]].",
        ),
        actions_suffice=True,
    ),
    "slo_burn": KindInfo(
        actions=(
            "See how much of the error budget is left (attributes), and which of the app's metrics burns it.",
            "Roll back the newest change of the application until the burn rate is back below 1.",
        )
    ),
}
REBASELINABLE = tuple(name for name, info in KINDS.items() if info.can_rebaseline)
