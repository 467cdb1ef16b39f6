"""Links to problems on the dashboard of problems."""

from urllib.parse import quote, urlencode

from ragtide.dashboards.settings import DEFAULT_PREFIX
from ragtide.sinks.settings import GrafanaSettings

PROBLEMS = "problems"  # name of the dashboard


def problem_link(
    problem_id: str, app: str, environment: str, settings: GrafanaSettings, uid_prefix: str = DEFAULT_PREFIX
) -> str:
    """Return the absolute link to a problem; empty without `grafana.url`."""
    if not settings.url:
        return ""
    chosen = {"orgId": settings.org_id, "var-problem": problem_id}
    chosen |= {"var-app": app} if app else {}
    chosen |= {"var-environment": environment} if environment else {}
    return f"{settings.url.rstrip('/')}/d/{uid_prefix}{PROBLEMS}?{urlencode(chosen, quote_via=quote)}"
