"""Render every dashboard from the evaluators' specs and the rules: same input, same bytes."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from ragtide.dashboards.application import NAME as APPLICATION
from ragtide.dashboards.application import application
from ragtide.dashboards.classification import NAME as CLASSIFICATION
from ragtide.dashboards.classification import classification
from ragtide.dashboards.classification_sql import CLASSIFICATION as CLASSIFIER
from ragtide.dashboards.objects import NAME as OBJECTS
from ragtide.dashboards.objects import objects
from ragtide.dashboards.objects_sql import DETECTION
from ragtide.dashboards.rule_lines import rule_lines
from ragtide.dashboards.sdk import JSONEncoder, dashboard
from ragtide.dashboards.sql import Tables
from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.builtin.classification import Params as ClassificationParams
from ragtide.evaluators.builtin.object_detection import Params as DetectionParams
from ragtide.evaluators.plan import parameters
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
) -> dict[str, Json]:
    """Every dashboard by name. Database, sizes of windows (s), rules, evaluators and `trace_url` are the settings'."""
    tables = Tables(database, tuple(sizes_s))
    lines, chosen = rule_lines(registry, rules or RuleSettings()), evaluators or EvaluatorSettings()
    made = {APPLICATION: application(registry, tables, lines, trace_url)}
    # Where a plug-in has taken a name, there is no such dashboard.
    if (classifier := registry.get(CLASSIFIER)) is not None:
        params = parameters(classifier, chosen)
        if isinstance(params, ClassificationParams):
            made[CLASSIFICATION] = classification(classifier, params, tables, lines, trace_url)
    if (detector := registry.get(DETECTION)) is not None:
        params = parameters(detector, chosen)
        if isinstance(params, DetectionParams):
            made[OBJECTS] = objects(detector, params, tables, lines, trace_url)
    return {name: finish(view) for name, view in made.items()}


def write(dashboards: Mapping[str, Json], directory: Path) -> list[Path]:
    """One file per dashboard for Grafana's file provisioning; returns the files."""
    directory.mkdir(parents=True, exist_ok=True)
    files = []
    for name, document in sorted(dashboards.items()):
        file = directory / f"ragtide-{name}.json"
        file.write_text(to_json(document), encoding="utf-8")
        files.append(file)
    return files


def to_json(document: Json) -> str:
    """The document as text: sorted, indented, ending with a newline."""
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def finish(view: dashboard.Dashboard) -> Json:
    """Correct the SDK's output: stable panel ids, and links outside the menu."""
    document: Json = json.loads(JSONEncoder(sort_keys=True).encode(view))
    taken: dict[int, str] = {}
    for where, panel in _panels(document):
        panel["id"] = crc32(where.encode()) >> 1  # annotations and links to a panel name it by this
        if taken.setdefault(panel["id"], where) != where:
            raise ValueError(f"panels {where!r} and {taken[panel['id']]!r} have one id: rename one")
    for shown in [*document["links"], *document["annotations"]["list"]]:
        shown.pop("placement", None)
    return document


def _panels(document: Json) -> Iterator[tuple[str, Json]]:
    """Each panel and row with a name of its own."""
    for panel in document["panels"]:
        yield f"{panel['type']}: {panel['title']}", panel
        yield from (
            (f"{panel['title']}: {inner['type']}: {inner['title']}", inner) for inner in panel.get("panels", [])
        )
