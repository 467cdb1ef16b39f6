"""Link to a trace: the page of the settings, or else its texts in Grafana's Explore."""

import json
from urllib.parse import quote, urlencode

from ragtide.dashboards.data_source import DATA_SOURCE_UID, PLUGIN
from ragtide.dashboards.variable_sql import literal
from ragtide.sinks.settings import GrafanaSettings

_RANGE = {"from": "now-90d", "to": "now"}


def trace_link(trace_id: str, app: str, settings: GrafanaSettings) -> str:
    """The link; empty without `grafana.trace_url` and `grafana.url`."""
    if settings.trace_url:
        return settings.trace_url.replace("{app}", quote(app, safe="")).replace("{trace_id}", quote(trace_id, safe=""))
    if not settings.url:
        return ""
    source = {"type": PLUGIN, "uid": DATA_SOURCE_UID}
    asked = f"SELECT * FROM trace_texts FINAL WHERE app = {literal(app)} AND trace_id = {literal(trace_id)}"
    query = {"refId": "A", "datasource": source, "editorType": "sql", "queryType": "table", "rawSql": asked}
    panes = {"trace": {"datasource": DATA_SOURCE_UID, "queries": [query], "range": _RANGE}}
    chosen = {"schemaVersion": 1, "orgId": settings.org_id, "panes": json.dumps(panes, separators=(",", ":"))}
    return f"{settings.url.rstrip('/')}/explore?{urlencode(chosen, quote_via=quote)}"
