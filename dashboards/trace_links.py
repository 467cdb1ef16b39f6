"""Links to traces: the page of the settings, or else the dashboard of one trace, and templates of other tools."""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from ragtide.dashboards.settings import DEFAULT_PREFIX
from ragtide.dashboards.variable_sql import literal
from ragtide.sinks.settings import TRACE_FIELDS, GrafanaSettings

TRACE = "trace"  # name of the dashboard
_RANGE = "'&from=', toString(toUnixTimestamp($__fromTime)), '000&to=', toString(toUnixTimestamp($__toTime)), '000'"


def trace_link(trace_id: str, app: str, settings: GrafanaSettings, uid_prefix: str = DEFAULT_PREFIX) -> str:
    """Return the absolute link; empty without `grafana.trace_url` and `grafana.url`."""
    if settings.trace_url:
        return settings.trace_url.replace("{app}", quote(app, safe="")).replace("{trace_id}", quote(trace_id, safe=""))
    if not settings.url:
        return ""
    chosen = {"orgId": settings.org_id, "var-app": app, "var-run": "live", "var-trace_id": trace_id}
    return f"{settings.url.rstrip('/')}/d/{uid_prefix}{TRACE}?{urlencode(chosen, quote_via=quote)}"


def trace_link_sql(app: str, trace_id: str, trace_url: str, run: str = "'live'") -> str:
    """Write the same link as an expression over columns; `trace_url` is that of the settings, or empty.

    Without `trace_url` it is relative to Grafana and keeps the time range. Names are encoded, so none of them leads
    elsewhere.
    """
    if trace_url:
        link = filled_template_sql(trace_url, {"app": app, "trace_id": trace_id})
    else:
        names = {"var-app": app, "var-run": run, "var-trace_id": trace_id}
        query = ", '&', ".join(f"'{name}=', encodeURLComponent({sql})" for name, sql in names.items())
        link = f"concat('/d/{DEFAULT_PREFIX}{TRACE}?', {query}, {_RANGE})"
    return f"if({trace_id} = '', '', {link})"


def filled_template_sql(template: str, fields: Mapping[str, str]) -> str:
    """Write a URL template as an expression; each `{field}` becomes its SQL expression, percent-encoded."""
    split = re.split(rf"\{{({'|'.join(TRACE_FIELDS)})\}}", template)
    parts = [
        f"encodeURLComponent(toString({fields[part]}))" if number % 2 else literal(part)
        for number, part in enumerate(split)
        if part
    ]
    return f"concat({', '.join(parts)}, '')"
