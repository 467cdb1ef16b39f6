"""Ask the viewer for queries of a dashboard, as the browser does."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.dashboards.lint import panels
from tests.dashboards.macros import Choice
from tests.dashboards.viewer.serving import Served

Name = dict[str, str]


def names(document: Mapping[str, Any]) -> Iterator[Name]:
    """How the viewer names each query, in the order of `tests.dashboards.lint.queries`."""
    for panel in panels(dict(document)):
        for target in panel.get("targets", []):
            yield {"kind": "panel", "name": str(panel["id"]), "ref": target["refId"]}
    for variable in document["templating"]["list"]:
        if variable["type"] == "query":
            yield {"kind": "variable", "name": variable["name"]}
    for annotation in document["annotations"]["list"]:
        if "rawSql" in annotation["target"]:
            yield {"kind": "annotation", "name": annotation["name"]}


@dataclass(frozen=True, slots=True)
class Page:
    """A dashboard with a time range and choices."""

    served: Served
    uid: str
    since: datetime
    until: datetime
    interval_s: int
    chosen: Mapping[str, Choice]

    def ask(self, queries: Sequence[Name]) -> int:
        """Ask for the queries in one request; return how many have no rows. Raises ValueError if one fails."""
        asked = [{**one, "key": str(at), "interval_s": self.interval_s} for at, one in enumerate(queries)]
        start, end = (int(time.timestamp() * 1000) for time in (self.since, self.until))
        body = {"uid": self.uid, "from": start, "to": end, "variables": dict(self.chosen), "queries": asked}
        answer = self.served.post("/api/query", body)
        answer.raise_for_status()
        lines = [json.loads(line) for line in answer.content.splitlines()]
        if wrong := [line["error"] for line in lines if "error" in line]:
            raise ValueError(f"{self.uid}: {wrong[0]['says']}")
        return sum(not line["rows"] for line in lines)
