"""The rules of Grafana's dashboard-linter that fit ClickHouse dashboards, and ours."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from tests.dashboards.macros import VARIABLE, Choice

Json = dict[str, Any]

_WITHOUT_UNIT = {"table"}
_OVER_TIME = {"timeseries", "state-timeline", "heatmap"}
_SAFE = re.compile(r"decodeURLComponent\('\$\{(\w+):percentencode\}'\)")
_CONDITION = re.compile(r", \$(\w+)\)")  # the second argument of $__conditionalAll: only its name is read
_BOUND = re.compile(r"\$__(timeFilter\(|fromTime\b|toTime\b)")


def panels(dashboard: Json) -> Iterator[Json]:
    """Every panel and row, those inside collapsed rows too."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def shown_number(dashboard: Json, where: str, row: dict[str, Any]) -> Any:
    """What a panel of one number shows of the only row of its query."""
    [panel] = [panel for panel in panels(dashboard) if where == f"{panel['type']} {panel['title']} A"]
    column = panel["options"]["reduceOptions"].get("fields", "").strip("/^$")
    [only] = [row[column]] if column else row.values()
    return only


def linked_columns(panel: Json) -> dict[str, str]:
    """The URL of each column of a table whose cells are links."""
    overrides = {each["matcher"]["options"]: each["properties"] for each in panel["fieldConfig"]["overrides"]}
    return {
        column: property_["value"][0]["url"]
        for column, properties in overrides.items()
        for property_ in properties
        if property_["id"] == "links"
    }


def queries(dashboard: Json) -> Iterator[tuple[str, str]]:
    """Every SQL a dashboard asks, with where it stands: panels, variables, annotations."""
    for panel in panels(dashboard):
        for target in panel.get("targets", []):
            yield f"{panel['type']} {panel['title']} {target['refId']}", target["rawSql"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]["rawSql"]
    for annotation in dashboard["annotations"]["list"]:
        if "rawSql" in annotation["target"]:
            yield f"annotation {annotation['name']}", annotation["target"]["rawSql"]


def defaults(dashboard: Json) -> dict[str, Choice]:
    """What each variable has before anybody chooses; a name that its query would offer first is empty."""
    found: dict[str, Choice] = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query" and not variable.get("current"):
            found[variable["name"]] = ["$__all"] if variable.get("multi") else ""
        elif variable["type"] != "datasource":
            found[variable["name"]] = variable["current"]["value"]
    return found


def faults(dashboard: Json) -> Iterator[str]:
    """What the linter would say."""
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    if any(queries(dashboard)) and not any(each["type"] == "datasource" for each in variables.values()):
        yield "template-datasource: there is no data source variable"
    if dashboard.get("editable", True):
        yield "uneditable-dashboard"
    if not dashboard.get("uid") or not dashboard.get("tags"):
        yield "uid and tags are needed"
    for each in variables.values():
        if each["type"] == "query" and each.get("refresh") != 2:
            yield f"template-on-time-change-reload: {each['name']}"
        if each["type"] == "query" and each["datasource"]["uid"] != "${datasource}":
            yield f"variable-datasource: {each['name']}"
    ids = [panel.get("id") for panel in panels(dashboard)]
    if None in ids or len(set(ids)) != len(ids):
        yield "panel-id: every panel needs an id of its own"
    for panel in panels(dashboard):
        if panel["type"] != "row":
            yield from _of_panel(panel)
    for where, sql in queries(dashboard):
        if not _BOUND.search(sql):
            yield f"sql-time-bound: {where}"
        yield from references(where, sql, variables)
    yield from _overlaps(dashboard["panels"])
    for panel in dashboard["panels"]:
        yield from _overlaps(panel.get("panels", []))


def references(where: str, sql: str, variables: Collection[str]) -> Iterator[str]:
    """Every variable of a query that it does not know, or that is not in the one form that lets no name be SQL."""
    for match in VARIABLE.finditer(_CONDITION.sub("", _SAFE.sub("", sql))):
        if not match[0].startswith("$__"):
            yield f"sql-quoting: {where}: {match[0]}: use ragtide.dashboards.variable_sql"
    for name in [*_SAFE.findall(sql), *_CONDITION.findall(sql)]:
        if name not in variables and not name.startswith("__"):
            yield f"sql-unknown-variable: {where}: {name}"


def _of_panel(panel: Json) -> Iterator[str]:
    title = panel.get("title")
    if panel["type"] == "text":
        yield from () if title and panel["options"]["content"] else (f"panel-text: {title}",)
        return
    if not title or not panel.get("description"):
        yield f"panel-title-description: {title}"
    if panel.get("datasource", {}).get("uid") != "${datasource}":
        yield f"panel-datasource: {title}"
    if panel["type"] not in _WITHOUT_UNIT and not panel["fieldConfig"]["defaults"].get("unit"):
        yield f"panel-units: {title}"
    if not panel.get("targets"):
        yield f"panel-no-targets: {title}"
    for target in panel.get("targets", []):
        if target["datasource"]["uid"] != "${datasource}":
            yield f"target-datasource: {title}"
        if target["format"] != (0 if panel["type"] in _OVER_TIME else 1):
            yield f"sql-format: {title}"


def _overlaps(shown: list[Json]) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for panel in shown:
        place = panel["gridPos"]
        if place["x"] + place["w"] > 24:
            yield f"grid: {panel['title']} is too wide"
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if taken.setdefault((x, y), panel["title"]) != panel["title"]:
                    yield f"grid: {panel['title']} lies on {taken[x, y]}"
