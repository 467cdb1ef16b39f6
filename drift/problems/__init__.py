"""Define problems: their identity, life cycle, storage and words. Events of jobs and of operators fold to a state.

A job calls `report_detections` with a `Detection` of each bad key and a `Clear` of each good one; `load_problems` reads
the result, and `group` tells which have one cause. `rule_lifecycle` and `evidence` are modules of functions for those
who go on from there.

>>> key = ProblemKey.of_system("storage", "disk", "default")
>>> key.is_of_system("storage", "disk")
True
"""

from ragtide.drift.problems import evidence, rule_lifecycle
from ragtide.drift.problems.chart import ChartPoint, chart_points, chart_series
from ragtide.drift.problems.classification import LEAK_TYPES, type_of
from ragtide.drift.problems.group_store import record_groups
from ragtide.drift.problems.groups import (
    FLEET_STAGES,
    LONGEST_EXPECTED,
    EpisodeKey,
    Groups,
    group,
    is_leak,
    parents,
    speaks_for,
    stage_of,
)
from ragtide.drift.problems.inhibition import INHIBITED_BY_APP, INHIBITED_BY_EVALUATOR, OBJECTIVE, group_key
from ragtide.drift.problems.kinds import REBASELINABLE, Aspect, Kind
from ragtide.drift.problems.model import EventRow, KindState, Problem, State, event_id, problem_id
from ragtide.drift.problems.operator_actions import (
    Acceptance,
    OperatorAction,
    accept,
    acceptances,
    problem_history,
    record_action,
)
from ragtide.drift.problems.raise_from_rules import Raiser
from ragtide.drift.problems.report import (
    CheckResult,
    Clear,
    Details,
    Detection,
    ProblemKey,
    bad_share_attributes,
    build_details,
    open_detections,
    report_detections,
    transitions_for,
)
from ragtide.drift.problems.silences import ProblemSilence, load_silences
from ragtide.drift.problems.store import (
    UNRESOLVED,
    fold_events,
    last_episode,
    latest_episodes,
    load_events,
    load_problems,
    load_recent_problems,
)
from ragtide.drift.problems.title import LONGEST_TITLE, figure, figures_of, subject_of

__all__ = [
    "FLEET_STAGES",
    "INHIBITED_BY_APP",
    "INHIBITED_BY_EVALUATOR",
    "LEAK_TYPES",
    "LONGEST_EXPECTED",
    "LONGEST_TITLE",
    "OBJECTIVE",
    "REBASELINABLE",
    "UNRESOLVED",
    "Acceptance",
    "Aspect",
    "ChartPoint",
    "CheckResult",
    "Clear",
    "Details",
    "Detection",
    "EpisodeKey",
    "EventRow",
    "Groups",
    "Kind",
    "KindState",
    "OperatorAction",
    "Problem",
    "ProblemKey",
    "ProblemSilence",
    "Raiser",
    "State",
    "accept",
    "acceptances",
    "bad_share_attributes",
    "build_details",
    "chart_points",
    "chart_series",
    "event_id",
    "evidence",
    "figure",
    "figures_of",
    "fold_events",
    "group",
    "group_key",
    "is_leak",
    "last_episode",
    "latest_episodes",
    "load_events",
    "load_problems",
    "load_recent_problems",
    "load_silences",
    "open_detections",
    "parents",
    "problem_history",
    "problem_id",
    "record_action",
    "record_groups",
    "report_detections",
    "rule_lifecycle",
    "speaks_for",
    "stage_of",
    "subject_of",
    "transitions_for",
    "type_of",
]
