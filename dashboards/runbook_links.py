"""Links to runbooks: the address of the settings, or else the panels of the dashboard of runbooks."""

from ragtide.dashboards.naming import panel_id
from ragtide.dashboards.settings import DashboardSettings
from ragtide.sinks.alertmanager_settings import RUNBOOK_FIELD
from ragtide.sinks.settings import GrafanaSettings

RUNBOOKS = "runbooks"  # name of the dashboard
PANEL_FIELD = "{panel}"
_PATH = f"docs/runbooks/{RUNBOOK_FIELD}.md"


def runbook_template(address: str | None, grafana: GrafanaSettings, names: DashboardSettings) -> str:
    """Return a runbook's address, with {kind} or {panel} for `fill`; empty: alerts have no link.

    `address` is `alertmanager.runbook_url`. If it is None, the link leads to a panel of the dashboard of runbooks;
    without `grafana.url`, or if that dashboard is left out, it is a path in ragtide's repository.
    """
    if address is not None:
        return address
    if not grafana.url or RUNBOOKS in names.leave_out:
        return _PATH
    return f"{grafana.url.rstrip('/')}{runbook_path(names.uid_prefix)}&orgId={grafana.org_id}"


def runbook_path(uid_prefix: str) -> str:
    """Return the path of a runbook below Grafana's address, with {panel} for `fill`."""
    return f"/d/{uid_prefix}{RUNBOOKS}?viewPanel={PANEL_FIELD}"


def fill(template: str, kind: str) -> str:
    """Return the address of the runbook of a kind of problem, or of `pipeline`."""
    return template.replace(RUNBOOK_FIELD, kind).replace(PANEL_FIELD, str(runbook_panel(kind)))


def runbook_panel(kind: str) -> int:
    """Return the id of a runbook's panel."""
    return panel_id(f"text: {kind}")


def runbook_panel_sql(kind: str) -> str:
    """Write SQL for the id of a runbook's panel; `kind` is an SQL expression."""
    return f"bitShiftRight(CRC32(concat('text: ', {kind})), 1)"
