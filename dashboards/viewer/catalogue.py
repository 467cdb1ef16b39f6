"""Dashboards by uid, as the browser gets them, and their queries by name.

The browser never sees a place where it could put SQL: it names a panel and a query of it, a variable or an annotation.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragtide.dashboards.data_source import PLUGIN
from ragtide.dashboards.viewer.queries import variables_of

Json = dict[str, Any]


class QueryName(NamedTuple):
    """A query of a dashboard: of a panel with its refId, of a variable or of an annotation."""

    kind: str  # panel, variable or annotation
    name: str
    ref: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard: its document without SQL, and the SQL by name."""

    uid: str
    title: str
    description: str
    document: bytes  # JSON; each query names the variables that it reads instead of its SQL
    queries: Mapping[QueryName, str]
    defaults: Mapping[str, str | list[str]]


class Catalogue:
    """All dashboards of the viewer, in the order of their names."""

    def __init__(self, documents: Mapping[str, Json]) -> None:
        boards = [_board(document) for document in documents.values()]
        self.boards: Mapping[str, Board] = {board.uid: board for board in boards}

    def listing(self) -> list[Json]:
        """What menus show: uid, title, description and names of variables."""
        return [
            {
                "uid": board.uid,
                "title": board.title,
                "description": board.description,
                "variables": list(board.defaults),
            }
            for board in self.boards.values()
        ]


def _board(document: Json) -> Board:
    """Take the SQL out of a copy of the document."""
    shown = copy.deepcopy(document)
    queries: dict[QueryName, str] = {}
    for panel in _panels(shown):
        for target in panel.get("targets", []):
            sql = target.pop("rawSql", None)
            if sql is None:  # of another data source, which only Grafana asks
                continue
            target["variables"] = variables_of(sql)
            queries[QueryName("panel", str(panel["id"]), target["refId"])] = sql
    defaults: dict[str, str | list[str]] = {}
    for variable in shown["templating"]["list"]:
        name = variable["name"]
        if variable["type"] == "query":
            sql = variable.pop("query")["rawSql"]
            variable.pop("definition", None)
            variable["variables"] = variables_of(sql)
            queries[QueryName("variable", name)] = sql
        defaults[name] = _default(variable)
    for annotation in shown["annotations"]["list"]:
        target = annotation.get("target") or {}
        if annotation["datasource"].get("type") == PLUGIN:
            sql = target.pop("rawSql")
            annotation.pop("rawQuery", None)
            annotation["variables"] = variables_of(sql)
            queries[QueryName("annotation", annotation["name"])] = sql
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()
    return Board(document["uid"], document["title"], document.get("description", ""), text, queries, defaults)


def _panels(document: Json) -> Iterator[Json]:
    for panel in document["panels"]:
        yield panel
        yield from panel.get("panels", [])


def _default(variable: Json) -> str | list[str]:
    """The value that a dashboard starts with; empty: the first one that its query finds."""
    value = (variable.get("current") or {}).get("value")
    if value is None and variable["type"] == "textbox":
        value = variable.get("query", "")
    if isinstance(value, list):
        return [str(one) for one in value]
    return "" if value is None else str(value)
