"""Link to a trace: the page of the settings, or else its texts in Grafana's Explore."""

import json
import re
from urllib.parse import quote, urlencode

from ragtide.dashboards.data_source import DATA_SOURCE_UID, PLUGIN
from ragtide.dashboards.variable_sql import literal
from ragtide.drift.sql import text
from ragtide.sinks.settings import GrafanaSettings

_RANGE = {"from": "now-90d", "to": "now"}
_APP, _ID = "__app__", "__trace_id__"  # where names are put in


def trace_link(trace_id: str, app: str, settings: GrafanaSettings) -> str:
    """The link; empty without `grafana.trace_url` and `grafana.url`."""
    if settings.trace_url:
        return settings.trace_url.replace("{app}", quote(app, safe="")).replace("{trace_id}", quote(trace_id, safe=""))
    if not settings.url:
        return ""
    query = _explore_query(literal(app), literal(trace_id))
    panes = {"trace": {"datasource": DATA_SOURCE_UID, "queries": [query], "range": _RANGE}}
    chosen = {"schemaVersion": 1, "orgId": settings.org_id, "panes": json.dumps(panes, separators=(",", ":"))}
    return f"{settings.url.rstrip('/')}/explore?{urlencode(chosen, quote_via=quote)}"


def trace_link_sql(app: str, trace_id: str, trace_url: str) -> str:
    """Write the same link as an expression over two columns; `trace_url` is that of the settings, or empty.

    It is relative to Grafana. Names are encoded before they enter the statement, so none of them is SQL or JSON.
    """
    app_part, id_part = (f"encodeURLComponent({column})" for column in (app, trace_id))
    if trace_url:
        parts = re.split(r"(\{app\}|\{trace_id\})", trace_url)
        fields = {"{app}": app_part, "{trace_id}": id_part}
        return f"concat({', '.join(fields.get(part) or literal(part) for part in parts)}, '')"
    query = _explore_query(f"decodeURLComponent('{_APP}')", f"decodeURLComponent('{_ID}')")
    panes = {"trace": {"datasource": DATA_SOURCE_UID, "queries": [query], "range": _RANGE}}
    panes_text = text(json.dumps(panes, separators=(",", ":")))
    filled = f"replaceOne(replaceOne({panes_text}, '{_APP}', {app_part}), '{_ID}', {id_part})"
    return f"if({trace_id} = '', '', concat('/explore?schemaVersion=1&panes=', encodeURLComponent({filled})))"


def _explore_query(app: str, trace_id: str) -> dict[str, object]:
    """Query of Explore for the texts of a trace; both are SQL expressions."""
    sql = f"SELECT * FROM trace_texts FINAL WHERE app = {app} AND trace_id = {trace_id}"
    source = {"type": PLUGIN, "uid": DATA_SOURCE_UID}
    return {"refId": "A", "datasource": source, "editorType": "sql", "queryType": "table", "rawSql": sql}
