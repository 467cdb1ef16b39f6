"""What receivers read of a problem or an insight: the data of webhooks and topics, and its JSON Schema.

Version 1. A field may be added within a version; a field that changes its meaning or goes away makes a new version.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from ragtide.drift.attributes import evidence_of, read_attributes
from ragtide.drift.insights import InsightRow
from ragtide.drift.notify.channel import Change
from ragtide.drift.problems import group_key
from ragtide.drift.routes import Route, route_of
from ragtide.drift.settings import Severity

VERSION = 1
SCHEMA_ID = f"urn:ragtide:notification:{VERSION}"
ProblemType = Literal["ragtide.problem.opened", "ragtide.problem.updated", "ragtide.problem.resolved"]
InsightType = Literal["ragtide.insight.found", "ragtide.insight.withdrawn"]


def _about(description: str) -> Meta:
    return Meta(description=description)


class ProblemData(msgspec.Struct, frozen=True, kw_only=True):
    """A problem after the change. Texts never quote what users wrote; examples point at traces."""

    problem_id: Annotated[str, _about("Identifier of the problem; the same in every episode.")]
    episode: Annotated[int, _about("Number of the episode, from 1. A problem that returns later starts a new one.")]
    state: Annotated[Literal["open", "resolved"], _about("State after the change.")]
    severity: Annotated[Severity, _about("Highest severity of the kinds that see it.")]
    type: Annotated[str, _about("Type, such as accuracy or privacy.")]
    code: Annotated[str, _about("Code of the AVID taxonomy and its words; empty: none.")]
    standards: Annotated[Sequence[str], _about("Compliance principles that the problem concerns.")]
    kind: Annotated[str, _about("Kind of the latest report, such as threshold. Its runbook is docs/runbooks/KIND.md.")]
    kinds: Annotated[Sequence[str], _about("Every kind that has seen it in this episode.")]
    app: Annotated[str, _about("Application; empty: the system itself.")]
    environment: Annotated[str, _about("Deployment environment; empty: none named.")]
    model: Annotated[str, _about("Model; empty: all models.")]
    aspect: Annotated[str, _about("Level, coverage, missing, error or another aspect.")]
    metric: Annotated[str, _about("Metric as evaluator.metric, or what else it is about; empty: no metric.")]
    evaluator: Annotated[str, _about("Evaluator of the metric; empty: no metric.")]
    segment: Annotated[str, _about("Name of the segment; empty: all traces.")]
    segment_value: Annotated[str, _about("Value of the segment; empty: all traces.")]
    description: Annotated[str, _about("What happened, in sentences for people, with the likely cause if it is known.")]
    explanation: Annotated[str, _about("Likely cause, in sentences; empty: not known.")]
    actions: Annotated[Sequence[str], _about("Suggested next steps.")]
    examples: Annotated[Sequence[str], _about("Ids of example traces, worst first.")]
    value: Annotated[float | None, _about("Value of the metric; null: not known.")]
    baseline: Annotated[float | None, _about("Value before; null: not known.")]
    threshold: Annotated[float | None, _about("Limit that the value is compared with; null: none.")]
    sample_size: Annotated[int | None, _about("Number of records that the value rests on; null: not known.")]
    onset: Annotated[datetime, _about("When it began, in event time if that is known.")]
    opened_at: Annotated[datetime | None, _about("When it first opened in this episode; null: not known.")]
    resolved_at: Annotated[datetime | None, _about("When it resolved; null: it is open.")]
    acked_by: Annotated[str, _about("Operator who acknowledged it; empty: nobody.")]
    muted_by: Annotated[str, _about("Operator who muted it; empty: it is not muted.")]
    muted_until: Annotated[datetime | None, _about("End of the mute; null: none, or without end.")]
    parent: Annotated[str, _about("Id of the problem that explains it, at the time of the message; empty: none.")]
    group: Annotated[str, _about("Application, environment, model and type: problems of one group fit one message.")]
    owner: Annotated[str, _about("Owner by the routes of the settings; empty: none.")]
    labels: Annotated[Mapping[str, str], _about("Labels of that route.")]


class InsightData(msgspec.Struct, frozen=True, kw_only=True):
    """An insight: a finding about a period that never pages."""

    insight_id: Annotated[str, _about("Identifier of the insight; the same as long as its period lasts.")]
    state: Annotated[Literal["found", "withdrawn"], _about("Withdrawn: a later run no longer finds it.")]
    type: Annotated[str, _about("Type of the insight.")]
    app: Annotated[str, _about("Application; empty: all.")]
    environment: Annotated[str, _about("Deployment environment; empty: none named.")]
    description: Annotated[str, _about("The finding in one sentence, for people.")]
    figures: Annotated[Mapping[str, Any], _about("Figures behind it, by name.")]
    actions: Annotated[Sequence[str], _about("Suggested next steps.")]
    examples: Annotated[Sequence[str], _about("Ids of example traces.")]
    period_start: Annotated[datetime, _about("Start of its period.")]
    period_end: Annotated[datetime, _about("End of its period, exclusive.")]
    owner: Annotated[str, _about("Owner by the routes of the settings; empty: none.")]
    labels: Annotated[Mapping[str, str], _about("Labels of that route.")]


def problem_data(change: Change, routes: Sequence[Route]) -> dict[str, Any]:
    """Return the JSON object of a problem as it is after a change."""
    event, problem = change.event, change.problem
    evidence = evidence_of(event.attributes)
    route = route_of(routes, event.app, event.metric, event.type)
    is_resolved = event.event == "resolved" or (
        problem.state == "resolved" and event.event not in ("opened", "reopened")
    )
    data = ProblemData(
        **{name: getattr(event, name) for name in _OF_EVENT},
        kind=event.kind or next(iter((*problem.active_kinds, *problem.kinds)), ""),
        state="resolved" if is_resolved else "open",
        severity=event.severity,  # type: ignore[arg-type]  # stored by ProblemData's own type
        kinds=problem.kinds,
        evaluator=event.metric.partition(".")[0],
        explanation=problem.explanation,
        value=evidence.value,
        baseline=evidence.baseline,
        threshold=evidence.threshold,
        sample_size=evidence.sample_size,
        onset=min(evidence.since or event.at, problem.onset),
        opened_at=problem.opened_at,
        resolved_at=(event.at if event.event == "resolved" else problem.resolved_at) if is_resolved else None,
        acked_by=problem.acked_by,
        muted_by=problem.muted_by,
        muted_until=problem.muted_until,
        parent=change.parent,
        group=group_key(event),
        owner="" if route is None else route.owner,
        labels={} if route is None else route.labels,
    )
    return _plain(data)


def insight_data(insight: InsightRow, routes: Sequence[Route]) -> dict[str, Any]:
    """Return the JSON object of an insight as it is stored."""
    route = route_of(routes, insight.app, type_=insight.type)
    data = InsightData(
        **{name: getattr(insight, name) for name in _OF_INSIGHT},
        state="withdrawn" if insight.withdrawn else "found",
        figures=read_attributes(insight.attributes),
        owner="" if route is None else route.owner,
        labels={} if route is None else route.labels,
    )
    return _plain(data)


def notification_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a notification: a CloudEvent with a problem or an insight."""
    _, definitions = msgspec.json.schema_components((ProblemData, InsightData), ref_template="#/$defs/{name}")
    text = {"type": "string", "minLength": 1}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Notification",
        "description": "A CloudEvent 1.0 in structured JSON. Topics hold `data` alone.",
        "type": "object",
        "properties": {
            "specversion": {"const": "1.0"},
            "id": {**text, "description": "The same each time the message is sent. Ignore an id that was processed."},
            "source": {**text, "description": "The deployment, as the webhook's setting `source` names it."},
            "type": {"enum": [*get_args(ProblemType), *get_args(InsightType)]},
            "time": {"type": "string", "format": "date-time", "description": "When it changed."},
            "subject": {**text, "description": "problems/ID or insights/ID."},
            "datacontenttype": {"const": "application/json"},
            "dataschema": {"const": SCHEMA_ID},
            "data": True,
        },
        "required": ["specversion", "id", "source", "type", "time", "subject", "dataschema", "data"],
        "oneOf": [
            _data_of("ProblemData", get_args(ProblemType)),
            _data_of("InsightData", get_args(InsightType)),
        ],
        "$defs": msgspec.to_builtins(definitions),
    }


def _data_of(definition: str, types: Sequence[str]) -> dict[str, Any]:
    return {"properties": {"type": {"enum": list(types)}, "data": {"$ref": f"#/$defs/{definition}"}}}


def _plain(data: msgspec.Struct) -> dict[str, Any]:
    """As JSON has it: numbers that JSON cannot hold are null."""
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_finite(msgspec.to_builtins(data))))
    return plain


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, (list, tuple)) else value


_OF_EVENT = (
    *("problem_id", "episode", "type", "code", "standards", "app", "environment", "model", "aspect", "metric"),
    *("segment", "segment_value", "description", "actions", "examples"),
)
_OF_INSIGHT = (
    *("insight_id", "type", "app", "environment", "description", "actions", "examples"),
    *("period_start", "period_end"),
)
