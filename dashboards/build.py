"""Render every dashboard from the evaluators' specs, the rules and the settings: same input, same bytes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragtide.dashboards.application import NAME as APPLICATION
from ragtide.dashboards.application import application
from ragtide.dashboards.classification import NAME as CLASSIFICATION
from ragtide.dashboards.classification import classification
from ragtide.dashboards.classification_sql import CLASSIFICATION as CLASSIFIER
from ragtide.dashboards.fleet import NAME as FLEET
from ragtide.dashboards.fleet import fleet
from ragtide.dashboards.fleet_sql import Fleet
from ragtide.dashboards.metric import NAME as METRIC
from ragtide.dashboards.metric import metric
from ragtide.dashboards.metric_sql import OneMetric
from ragtide.dashboards.models import NAME as MODELS
from ragtide.dashboards.models import models
from ragtide.dashboards.models_sql import Models
from ragtide.dashboards.naming import apply_settings, panel_id
from ragtide.dashboards.objects import NAME as OBJECTS
from ragtide.dashboards.objects import objects
from ragtide.dashboards.objects_sql import DETECTION
from ragtide.dashboards.pipeline import NAME as PIPELINE
from ragtide.dashboards.pipeline import pipeline
from ragtide.dashboards.problems import NAME as PROBLEMS
from ragtide.dashboards.problems import problems
from ragtide.dashboards.rule_lines import rule_lines
from ragtide.dashboards.runbooks import NAME as RUNBOOKS
from ragtide.dashboards.runbooks import runbooks
from ragtide.dashboards.sdk import JSONEncoder, dashboard
from ragtide.dashboards.settings import DashboardSettings
from ragtide.dashboards.sql import TRAFFIC, Tables
from ragtide.dashboards.trace import NAME as TRACE
from ragtide.dashboards.trace import trace
from ragtide.drift.routes import Route
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows import metrics_by_name, traffic_metrics
from ragtide.evaluators.builtin.classification import Params as ClassificationParams
from ragtide.evaluators.builtin.object_detection import Params as DetectionParams
from ragtide.evaluators.plan import is_on, parameters
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Evaluator

Json = dict[str, Any]


def build(
    registry: Mapping[str, Evaluator],
    *,
    database: str = "ragtide",
    sizes_s: Sequence[int] = (60, 3600, 86400),
    rules: RuleSettings | None = None,
    evaluators: EvaluatorSettings | None = None,
    trace_url: str = "",
    trace_links: Mapping[str, str] | None = None,
    prometheus_uid: str = "",
    heartbeat_timeout_s: float = 30.0,
    live_after_s: float = 120.0,
    names: DashboardSettings | None = None,
    routes: Sequence[Route] = (),
) -> dict[str, Json]:
    """Return every dashboard by name.

    Database, sizes of windows (s), rules, evaluators, routes, links of traces and the uid of a Prometheus data source
    are the settings'. `names` are those of section `dashboards`: names, selectors, and what is left out.
    """
    rules, chosen = rules or RuleSettings(), evaluators or EvaluatorSettings()
    few, every = traffic_metrics(one for one in registry.values() if is_on(one, chosen))
    tables = Tables(database, tuple(sizes_s), few or every or (TRAFFIC,))
    lines = rule_lines(registry, rules)
    metrics, judged = metrics_by_name(registry), list(lines.values())
    links = {**({"Trace": trace_url} if trace_url else {}), **(trace_links or {})}
    made = {
        FLEET: fleet(Fleet(tables, judged, metrics, rules.objectives, routes), trace_url),
        APPLICATION: application(registry, tables, lines, trace_url),
        METRIC: metric(OneMetric(tables, judged, metrics), trace_url),
        MODELS: models(Models(tables, judged, metrics), rules, classifier=CLASSIFIER in registry),
        TRACE: trace(registry, tables, lines, links),
        PROBLEMS: problems(tables, lines, trace_url),
        PIPELINE: pipeline(registry, tables, prometheus_uid, heartbeat_timeout_s, live_after_s),
        RUNBOOKS: runbooks(),
    }
    # Where a plug-in has taken a name, there is no such dashboard.
    if (classifier := registry.get(CLASSIFIER)) is not None:
        params = parameters(classifier, chosen)
        if isinstance(params, ClassificationParams):
            made[CLASSIFICATION] = classification(classifier, params, tables, lines, trace_url)
    if (detector := registry.get(DETECTION)) is not None:
        params = parameters(detector, chosen)
        if isinstance(params, DetectionParams):
            made[OBJECTS] = objects(detector, params, tables, lines, trace_url)
    named = names or DashboardSettings()
    return {name: apply_settings(finish(view), named) for name, view in made.items() if name not in named.leave_out}


def to_json(document: Json) -> str:
    """Write the document as text: sorted, indented, ending with a newline."""
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def finish(view: dashboard.Dashboard) -> Json:
    """Correct the SDK's output: stable panel ids, and links outside the menu."""
    document: Json = json.loads(JSONEncoder(sort_keys=True).encode(view))
    taken: dict[int, str] = {}
    for where, panel in _panels(document):
        panel["id"] = panel_id(where)
        if taken.setdefault(panel["id"], where) != where:
            raise ValueError(f"panels {where!r} and {taken[panel['id']]!r} have one id: rename one")
    annotations = document["annotations"].setdefault("list", [])
    for shown in [*document["links"], *annotations]:
        shown.pop("placement", None)
    return document


def _panels(document: Json) -> Iterator[tuple[str, Json]]:
    """Each panel and row with a name of its own."""
    for panel in document["panels"]:
        yield f"{panel['type']}: {panel['title']}", panel
        yield from (
            (f"{panel['title']}: {inner['type']}: {inner['title']}", inner) for inner in panel.get("panels", [])
        )
