"""Details and messages of input drift: classifier test, changed groups, examples."""

import math
from collections import Counter
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from ragtide.drift.array_types import Integers
from ragtide.drift.input_drift.day_test import MARGIN, DayComparison
from ragtide.drift.input_drift.reference import InputDriftState, QuestionGroups
from ragtide.drift.input_drift.source import QuestionSource
from ragtide.drift.problems import Details, ProblemKey, build_details
from ragtide.drift.rules import Series
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import calendar
from ragtide.drift.text import percent, scope_label, timestamp
from ragtide.drift.topics import OTHER_TOPIC

QUESTION_METRIC = "inputs.question_meaning"
RULE = "questions"
_SIGMAS = 3.0  # standard errors
_MIN_SHIFT = 0.02  # of a group's share
_MAX_GROUPS = 3
_MAX_EXAMPLES = 10
_LN_10 = float(np.log(10))


class GroupShift(NamedTuple):
    """A group whose share changed from `before` to `now`."""

    name: str
    before: float
    now: float


def group_shifts(state: InputDriftState, found: DayComparison) -> list[GroupShift]:
    """Return the group in alarm, then others with significant changes, largest first; three at most."""
    groups = state.reference.groups
    new, old = groups.assign(found.new.vectors), groups.assign(found.old.vectors)
    shares: dict[int, tuple[float, float]] = {}
    if state.groups_in_alarm:
        status = state.status
        shares[int(status.channel[0])] = float(status.expected[0]), float(status.observed[0])
    if len(new):
        now, before = (np.bincount(some, minlength=groups.outlier + 1) / len(some) for some in (new, old))
        error = np.sqrt((now * (1 - now) + before * (1 - before)) / len(new))
        for group in np.argsort(-np.abs(now - before), kind="stable").tolist():
            if abs(now[group] - before[group]) >= max(_SIGMAS * error[group], _MIN_SHIFT):
                shares.setdefault(group, (float(before[group]), float(now[group])))
    return [
        GroupShift(group_label(group, new, found.new.topics, groups), *share)
        for group, share in list(shares.items())[:_MAX_GROUPS]
    ]


def group_label(group: int, of: Integers, topics: tuple[str, ...], groups: QuestionGroups) -> str:
    """Name a group by the topic of most of its new questions, if known, else by number."""
    if group > groups.outlier:
        return "groups that were rare"
    if group == groups.outlier:
        return "questions unlike all before"
    known = Counter(topics[place] for place in np.flatnonzero(of == group).tolist() if topics[place])
    name, most = known.most_common(1)[0] if known else ("", 0)
    is_about = name not in ("", OTHER_TOPIC) and most > math.floor(known.total() / 2)
    return f"questions about {name}" if is_about else f"questions of group {group + 1}"


def source_key(source: QuestionSource) -> ProblemKey:
    """Return the key of the problem; it has no model, since questions come before answers."""
    return ProblemKey(source.app, source.environment, "", "inputs", QUESTION_METRIC)


def series_of(source: QuestionSource) -> Series:
    """Return the series that pins and accepted changes refer to."""
    return Series(source.app, source.environment, QUESTION_METRIC, model="", segment="", segment_value="")


def shift_onset(state: InputDriftState) -> int:
    """Return the onset of drift: of the alarm, or the start of the last whole day."""
    day = calendar.floor(state.until, calendar.DAY_S) - calendar.DAY_S
    if not state.groups_in_alarm:
        return day
    began = int(state.status.onset[0])
    return min(began, day) if state.day_drifted else began


def input_drift_details(
    source: QuestionSource,
    state: InputDriftState,
    found: DayComparison,
    since: datetime,
    rules: RuleSettings,
    margin: float,
) -> Details:
    """Build the details of drift since then; they quote no question. `margin`: multiple of the default tolerance."""
    groups, key, number = group_shifts(state, found), source_key(source), len(found.new.at)
    return build_details(
        "input_drift",
        key,
        None,
        _message(key, state, found, groups, since),
        _attributes(source, state, found, groups) | {"margin": margin * MARGIN},
        rules,
        bad=round(_changed_share(found, groups) * number),
        traffic=number,
        examples=found.most_unusual(_MAX_EXAMPLES),
        rule_id=RULE,
    )


def _message(
    key: ProblemKey, state: InputDriftState, found: DayComparison, groups: list[GroupShift], since: datetime
) -> str:
    first, last = (f"{calendar.utc(at):%Y-%m-%d}" for at in (state.reference.since, state.reference.until - 1))
    sentences = [
        f"{scope_label(key.app, key.environment)}: users' questions since {timestamp(since)} differ from those of "
        f"{first} to {last}."
    ]
    if (test := found.test) is not None:
        sentences.append(
            f"A classifier separates new from old questions in {percent(test.auc)} of pairs "
            f"({percent(test.low)} to {percent(test.high)}; by chance 50 %)."
        )
    for one in groups:
        change = f"{'rose' if one.now > one.before else 'fell'} from {percent(one.before)} to {percent(one.now)}"
        sentences.append(f"{one.name[:1].upper()}{one.name[1:]} {change}.")
    return " ".join([*sentences, f"Sample size: {len(found.new.at):,} questions."])


def _attributes(
    source: QuestionSource, state: InputDriftState, found: DayComparison, groups: list[GroupShift]
) -> dict[str, Any]:
    reference = state.reference
    attributes: dict[str, Any] = {
        "encoder": source.encoder,
        "groups": [one._asdict() for one in groups],
        "moved_share": _changed_share(found, groups),
        "reference": reference.run_id,
        "reference_since": calendar.utc(reference.since).isoformat(),
        "reference_until": calendar.utc(reference.until).isoformat(),
        "sample_size": len(found.new.at),
        "log10_e_value": float(state.status.evidence[0]) / _LN_10,
    }
    if (test := found.test) is not None:
        attributes |= {"value": test.auc, "baseline": 0.5, "effect_size": 2 * test.auc - 1}
        attributes |= {"low": test.low, "high": test.high}
    if (usual := reference.usual_aucs[np.isfinite(reference.usual_aucs)]).size:
        attributes |= {"usual_low": float(usual.min()), "usual_high": float(usual.max()), "days": usual.size}
    return attributes


def _changed_share(found: DayComparison, groups: list[GroupShift]) -> float:
    """Return a lower bound of the share of changed questions: 2 AUC - 1, or the largest change of a group."""
    by_area = 0.0 if found.test is None else max(2 * found.test.auc - 1, 0.0)
    return max([by_area, *(abs(one.now - one.before) for one in groups)])
