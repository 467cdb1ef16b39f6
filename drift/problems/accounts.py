"""Makes what is said of a problem, with the type, code, standards and actions that belong to its kind and metric."""

from collections.abc import Mapping, Sequence
from typing import Any

from drift.problems.actions import actions_for
from drift.problems.events import Account, Place
from drift.problems.problem import Kind
from drift.problems.taxonomy import code_of, standards_of, type_of
from drift.settings import RuleSettings, Severity
from drift.windows.metrics import WatchedMetric


def account_of(
    kind: Kind,
    place: Place,
    metric: WatchedMetric | None,
    description: str,
    attributes: Mapping[str, Any],
    settings: RuleSettings,
    *,
    wrong: int = 0,
    traffic: int = 0,
    severity: Severity | None = None,
    examples: Sequence[str] = (),
    rule_id: str = "",
) -> Account:
    """What a job says of trouble at a place; `metric` is None where it is of none, and `attributes` are its own.

    `wrong` of the app's `traffic` traces are touched, which makes the severity where none is given. `description` is
    one sentence that quotes no trace, `examples` are ids of traces, the worst first, `rule_id` says which rule saw it.
    """
    type_ = type_of(metric, kind, place.aspect)
    evaluator = "" if metric is None else metric.evaluator.id
    where = {name: value for name, value in place._asdict().items() if name != "aspect"}
    return Account(
        kind=kind,
        type=type_,
        severity=severity or severity_of(type_, wrong, traffic, settings.of(place.app)),
        code=code_of(metric, type_, kind),
        standards=standards_of(metric, kind),
        description=description,
        attributes={**where, "evaluator": evaluator, **attributes},
        actions=actions_for(type_, evaluator, place.aspect, kind, place.segment),
        rule_id=rule_id or kind,
        examples=examples,
    )


def part_wrong(wrong: int, records: int, limit: float | None) -> dict[str, Any]:
    """The attributes of a kind that asks how many of its records, at least one, are wrong; a limit of None is none."""
    return {"value": wrong / records, "limit": limit, "sample_size": records, "wrong": wrong}


def severity_of(type_: str, wrong: int, traffic: int, settings: RuleSettings) -> Severity:
    """Breaches of privacy and security are high; else the share of the app's traces on the wrong side says."""
    if type_ in ("privacy", "security"):
        return "high"
    share = wrong / max(traffic, wrong, 1)
    if share >= settings.severity_high:
        return "high"
    return "medium" if share >= settings.severity_medium else "low"
