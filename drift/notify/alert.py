"""Make the alert of a problem: labels that route it, and annotations that people read. Pure.

Alerts of one problem keep their labels as long as app, severity, type and owner stay the same. `problem_id` is a label,
so that two problems never become one alert.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from ragtide.drift.notify.alert_text import describe, summarize
from ragtide.drift.problems import Problem
from ragtide.drift.routes import Route, route_of
from ragtide.drift.text import number, one_line

ALERT_PREFIX = "Ragtide"
LONGEST_LABEL = 200  # characters of a value
_LONGEST_URL = 2000
_EXAMPLES = 3
_DIGEST = 12


@dataclass(frozen=True)
class Alert:
    """An alert, firing or resolved: the caller says which. `starts_at` is the onset, in event time if known."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime

    @property
    def problem_id(self) -> str:
        """The problem that it is about."""
        return self.labels["problem_id"]

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same labels, and for no others."""
        return fingerprint_of(self.labels)


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """Hash labels, in whatever order they are."""
    return hashlib.sha256(json.dumps(sorted(labels.items())).encode()).hexdigest()[:32]


def _no_link(*_: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class AlertContext:
    """What alerts need besides the problem: who owns it, and where its pages are.

    `trace_link` takes trace id and app, `problem_link` problem id, app and environment, `runbook_link` the kind of a
    problem; empty: there is no page.
    """

    routes: Sequence[Route] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    runbook_link: Callable[[str], str] = _no_link
    trace_link: Callable[[str, str], str] = _no_link
    problem_link: Callable[[str, str, str], str] = _no_link


def alert_of(problem: Problem, context: AlertContext, symptoms: Sequence[Problem] = ()) -> Alert:
    """Make the alert of a problem that explains these symptoms."""
    return Alert(_labels(problem, context), _annotations(problem, context, symptoms), _start(problem))


def kind_of(problem: Problem) -> str:
    """The kind that names the alert and the runbook: the one that opened it, so that it stays while others join."""
    return problem.opened_by or next(iter(problem.kinds), "threshold")


def alertname(kind: str) -> str:
    """Return the alertname of a kind, e.g. RagtideSloBurn."""
    return ALERT_PREFIX + "".join(part.capitalize() for part in kind.split("_"))


def label_value(text: str) -> str:
    """Make a text fit a label: on one line, shortened with a digest."""
    line = one_line(text)
    if len(line) <= LONGEST_LABEL:
        return line
    digest = hashlib.sha256(line.encode()).hexdigest()[:_DIGEST]
    return f"{line[: LONGEST_LABEL - _DIGEST - 1]}~{digest}"


def _labels(problem: Problem, context: AlertContext) -> dict[str, str]:
    route = route_of(context.routes, problem.app, problem.metric, problem.type)
    evaluator, dot, _ = problem.metric.partition(".")
    given = {**context.labels, **(route.labels if route else {})}
    own = {
        "alertname": alertname(kind_of(problem)),
        "app": problem.app,
        "environment": problem.environment,
        "severity": problem.severity,
        "type": problem.type,
        "metric": problem.metric,
        "evaluator": evaluator if dot else "",
        "segment": f"{problem.segment}={problem.segment_value}" if problem.segment else "",
        "model": problem.model,
        "owner": route.owner if route else "",
        "problem_id": problem.problem_id,
    }
    values = ((name, label_value(value)) for name, value in (given | own).items())
    return {name: value for name, value in values if value}


def _annotations(problem: Problem, context: AlertContext, symptoms: Sequence[Problem]) -> dict[str, str]:
    found = problem.evidence
    worst = problem.examples[0] if problem.examples else ""
    limit = found.threshold if found.limit is None else found.limit
    said = {
        "title": problem.title,
        "summary": summarize(problem),
        "description": describe(problem, symptoms),
        "runbook_url": context.runbook_link(kind_of(problem)),
        "dashboard_url": _url(context.problem_link(problem.problem_id, problem.app, problem.environment)),
        "trace_url": _url(context.trace_link(worst, problem.app)) if worst else "",
        "value": _number(found.value),
        "baseline": _number(found.baseline),
        "limit": _number(limit),
        "sample_size": "" if found.sample_size is None else str(found.sample_size),
        "examples": ", ".join(one_line(one) for one in problem.examples[:_EXAMPLES]),
    }
    return {name: text for name, text in said.items() if text}


def _number(value: float | None) -> str:
    return "" if value is None else number(value)


def _url(url: str) -> str:
    """A link that is cut leads nowhere."""
    return url if len(url) <= _LONGEST_URL else ""


def _start(problem: Problem) -> datetime:
    return min(problem.onset, problem.opened_at or problem.onset)
