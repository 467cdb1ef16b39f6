"""Record what checks report: problem keys, details, and the events that follow from them.

A check brings its own evidence and hysteresis, and may report the same thing as often as it likes: a repeated report
adds no event. Several kinds that detect the same key share one problem; it resolves when all of them have cleared."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ragtide.drift.attributes import evidence_of
from ragtide.drift.leadership import Term
from ragtide.drift.problems.classification import LEAK_TYPES, code_of, standards_of, type_of
from ragtide.drift.problems.kinds import Aspect, Kind
from ragtide.drift.problems.model import EventRow, Problem, problem_id
from ragtide.drift.problems.remediation import actions_for
from ragtide.drift.problems.store import last_episode, load_events, load_problems
from ragtide.drift.problems.title import title_of
from ragtide.drift.problems.transitions import Transition, cleared_by, opened_by, updated_by
from ragtide.drift.settings import RuleSettings, Severity
from ragtide.drift.windows import MetricRef
from ragtide.sinks.clickhouse.database import Database


class ProblemKey(NamedTuple):
    """What makes two detections the same problem; in the order of `problem_id`."""

    app: str
    environment: str
    model: str
    aspect: Aspect
    metric: str
    segment: str = ""
    segment_value: str = ""

    @classmethod
    def of(cls, problem: Problem) -> "ProblemKey":
        """Return the key of a known problem."""
        return cls(**{name: getattr(problem, name) for name in cls._fields})

    @classmethod
    def of_system(cls, aspect: Aspect, segment: str, value: str) -> "ProblemKey":
        """Return the key of a part of the system itself: it has no application."""
        return cls(app="", environment="", model="", aspect=aspect, metric="", segment=segment, segment_value=value)

    def is_of_system(self, aspect: Aspect, segment: str) -> bool:
        """Tell whether `of_system` makes such keys."""
        return not self.app and self.aspect == aspect and self.segment == segment


class Details(NamedTuple):
    """Details of a problem from this event on."""

    kind: Kind
    type: str
    severity: Severity
    code: str
    standards: Sequence[str]
    description: str
    attributes: Mapping[str, Any]
    actions: Sequence[str]
    rule_id: str
    examples: Sequence[str] = ()


def event_row(key: ProblemKey, transition: Transition, details: Details, epoch: int, actor: str = "") -> EventRow:
    """Make the row of an event; the same transition and details make the same row. Empty `actor`: a job."""
    attributes = json.dumps({**details.attributes, **transition.attributes}, sort_keys=True)
    detail_columns = details._asdict() | {"attributes": attributes}
    transition_columns = {name: getattr(transition, name) for name in ("event", "event_id", "episode", "at")}
    row = EventRow(
        problem_id=problem_id(*key), **key._asdict(), **transition_columns, **detail_columns, actor=actor, epoch=epoch
    )
    return row._replace(title=title_of(row))


def last_details(problem: Problem, kind: str, **attributes: object) -> Details:
    """Return the last details of a kind, with these attributes added."""
    kind_state = problem.by_kind[kind]
    known = {name: getattr(kind_state, name) for name in Details._fields if name != "attributes"}
    return Details(attributes={**kind_state.attributes, **attributes}, **known)


class Detection(NamedTuple):
    """A check detects a problem; the evidence is of [since, until) in event time."""

    key: ProblemKey
    details: Details
    since: datetime
    until: datetime


class Clear(NamedTuple):
    """A kind is clear at a key, by evidence up to `until`. Without an active problem nothing follows."""

    key: ProblemKey
    kind: Kind
    until: datetime


class CheckResult(NamedTuple):
    """Windows, records or runs that a check read, and the events that followed."""

    read: int
    events: Sequence[EventRow]


def report_detections(
    database: Database, reports: Sequence[Detection | Clear], settings: RuleSettings, term: Term, now: datetime
) -> list[EventRow]:
    """Store and return the events that follow from reports, at most one per key and kind.

    A repeated detection updates an open problem at most every `update_every_s` per kind, and only if `until` is later.
    `now` is the server's time.
    """
    if not reports:
        return []
    with term.problem_lock:
        known: dict[str, list[EventRow]] = {}
        for row in load_events(database, ids={problem_id(*one.key) for one in reports}):
            known.setdefault(row.problem_id, []).append(row)
        events = transitions_for(reports, known, settings, term.epoch, now)
        database.insert("problem_events", events)
    return events


def transitions_for(
    reports: Sequence[Detection | Clear],
    known: Mapping[str, Sequence[EventRow]],
    settings: RuleSettings,
    epoch: int,
    now: datetime,
) -> list[EventRow]:
    """Return the events that follow from reports, given the known events by problem. Pure."""
    rows = {id_: list(some) for id_, some in known.items()}
    events = []
    # Clears come last: otherwise one kind would resolve a problem that another one detects.
    for one in sorted(reports, key=lambda one: isinstance(one, Clear)):
        own = rows.setdefault(problem_id(*one.key), [])
        if isinstance(one, Clear):
            event = _clear_event(one, own, settings.of(one.key.app), epoch, now)
        else:
            event = _detection_event(one, own, settings.of(one.key.app), epoch, now)
        if event is not None:
            own.append(event)
            events.append(event)
    return events


def open_detections(database: Database, kind: Kind) -> Mapping[ProblemKey, Problem]:
    """Load open problems in which this kind is active."""
    return {ProblemKey.of(one): one for one in load_problems(database, states=("open",)) if kind in one.active_kinds}


def _detection_event(
    one: Detection, rows: Sequence[EventRow], settings: RuleSettings, epoch: int, now: datetime
) -> EventRow | None:
    kind = one.details.kind
    before = last_episode(rows)
    if before is not None and kind in before.active_kinds:
        transition = _update(one, before, settings, now)
    elif _is_accepted(one, rows):
        transition = None
    else:
        transition = opened_by(problem_id(*one.key), kind, before, settings, now)
    interval = {"since": one.since.isoformat(), "until": one.until.isoformat()}
    details = one.details._replace(attributes={**one.details.attributes, **interval})
    return None if transition is None else event_row(one.key, transition, details, epoch)


def _update(one: Detection, before: Problem, settings: RuleSettings, now: datetime) -> Transition | None:
    kind = one.details.kind
    last_until = before.by_kind[kind].evidence.until
    is_news = last_until is None or one.until > last_until
    return updated_by(kind, before, settings, now, kind, one.until) if is_news else None


def _clear_event(
    one: Clear, rows: Sequence[EventRow], settings: RuleSettings, epoch: int, now: datetime
) -> EventRow | None:
    before = last_episode(rows)
    transition = None if before is None else cleared_by(one.kind, before, settings, now)
    if before is None or transition is None:
        return None
    return event_row(one.key, transition, last_details(before, one.kind, until=one.until.isoformat()), epoch)


def _is_accepted(one: Detection, rows: Sequence[EventRow]) -> bool:
    """Tell whether an operator accepted the change after this evidence."""
    return any(
        row.event == "accepted" and one.details.kind in evidence_of(row.attributes).kinds and one.until <= row.at
        for row in rows
    )


def build_details(
    kind: Kind,
    key: ProblemKey,
    metric: MetricRef | None,
    description: str,
    attributes: Mapping[str, Any],
    settings: RuleSettings,
    *,
    bad: int = 0,
    traffic: int = 0,
    type_: str | None = None,
    severity: Severity | None = None,
    examples: Sequence[str] = (),
    rule_id: str = "",
) -> Details:
    """Build the details of a detection; `metric` is None if the key has none.

    Without a type, it is that of the kind or the metric.
    Without a severity, it follows from the share of `bad` among the application's `traffic` traces. `description` is
    one or more sentences that quote no trace; `examples` are ids of traces, the worst first; `rule_id` names the rule.
    """
    type_ = type_ or type_of(metric, kind, key.aspect)
    evaluator = "" if metric is None else metric.evaluator.id
    where = {name: value for name, value in key._asdict().items() if name != "aspect"}
    return Details(
        kind=kind,
        type=type_,
        severity=severity or severity_of(type_, bad, traffic, settings.of(key.app)),
        code=code_of(metric, type_, kind),
        standards=standards_of(metric, kind),
        description=description,
        attributes={**where, "evaluator": evaluator, **attributes},
        actions=actions_for(type_, evaluator, key.aspect, kind, key.segment),
        rule_id=rule_id or kind,
        examples=examples,
    )


def bad_share_attributes(bad: int, records: int, limit: float | None) -> dict[str, Any]:
    """Return the attributes of a share of bad records; needs at least one record."""
    return {"value": bad / records, "limit": limit, "sample_size": records, "wrong": bad}


def severity_of(type_: str, bad: int, traffic: int, settings: RuleSettings) -> Severity:
    """Return critical for privacy and security; otherwise decide by the share of bad traces."""
    if type_ in LEAK_TYPES:
        return "critical"
    share = bad / max(traffic, bad, 1)
    if share >= settings.severity_critical:
        return "critical"
    return "warning" if share >= settings.severity_warning else "info"
