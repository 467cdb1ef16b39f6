"""Titles of problems: app, metric, and values before and after, in a line that a phone shows whole. Pure."""

from collections.abc import Mapping

from ragtide.drift.attributes import Evidence, evidence_of
from ragtide.drift.problems.model import EventRow
from ragtide.drift.rules import RULE_KINDS
from ragtide.drift.text import cut, number, one_line, percent

LONGEST_TITLE = 80  # characters
_LONGEST_APP = 28

# Kinds whose value is a share of records: what is said of them. {metric} is the metric, {evaluator} its evaluator.
_SHARES: Mapping[str, str] = {
    "failure_rate": "{metric} failed",
    "early_change": "{metric} high",
    "slo_burn": "{metric} outside its objective",
    "evaluator_error": "{evaluator} evaluator errors",
    "coverage": "traces without {evaluator}",
    "finding": "{evaluator} finding",
    "flip": "{metric} flips",
    "inconsistency": "answers disagree",
}
_SUBJECTS: Mapping[str, str] = {  # of the other kinds, where there is no metric
    "input_drift": "questions changed",
    "missing_data": "no traces",
    "inconsistency": "answers disagree",
}


def title_of(event: EventRow) -> str:
    """Say app, subject, and figures before and after, in at most `LONGEST_TITLE` characters.

    Without figures or app it is the beginning of the description, else the subject.
    """
    evidence = evidence_of(event.attributes)
    subject = subject_of(event.metric, event.segment_value, event.type, event.kind, evidence)
    figures = figures_of(event.kind, evidence)
    name = one_line(event.app)
    app = cut(name, _LONGEST_APP) or "ragtide"
    if not figures or not event.app:
        return cut(f"{app}: {_without_scope(one_line(event.description), name) or subject}", LONGEST_TITLE)
    room = LONGEST_TITLE - len(f"{app}: ") - len(f" {figures}")
    return f"{app}: {cut(subject, room)} {figures}"


def subject_of(metric: str, segment_value: str, type_: str, kind: str, evidence: Evidence) -> str:
    """Name what the problem is about: metric and segment value, what a kind says of them, or the type."""
    name = one_line(metric)
    evaluator, _, key = name.partition(".")
    short = evaluator if evaluator == key else name
    if not short:
        return _SUBJECTS.get(kind, type_.replace("_", " "))
    if kind in _SHARES:
        said = _SHARES[kind].format(metric=short, evaluator=evaluator)
    else:
        said = f"{short} failed" if _is_share(kind, evidence) else short
    value = one_line(segment_value)
    return f"{said} ({value})" if value else said


def figures_of(kind: str, evidence: Evidence) -> str:
    """Say the values before and after, e.g. `0.91 → 0.42`; only the latter if before is not known; may be empty."""
    values = [figure(value, kind, evidence) for value in (evidence.baseline, evidence.value) if value is not None]
    return " → ".join(values) if evidence.value is not None else ""


def figure(value: float, kind: str, evidence: Evidence) -> str:
    """Format a figure of this evidence: a share of records, or a value of the metric."""
    return percent(value) if _is_share(kind, evidence) else number(value)


def _is_share(kind: str, evidence: Evidence) -> bool:
    """Whether value and baseline are shares of records."""
    rule = RULE_KINDS.get(evidence.rule)
    return rule.value_type == "share" if rule is not None else kind in _SHARES


def _without_scope(description: str, app: str) -> str:
    """Leave out application, environment and model, with which descriptions begin."""
    scope, colon, rest = description.partition(": ")
    return rest if colon and app and (scope == app or scope.startswith(f"{app} (")) else description
