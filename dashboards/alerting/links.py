"""Links of alerts in Grafana, as templates over their labels."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import get_args

from ragtide.dashboards.runbook_links import PANEL_FIELD, fill, runbook_panel
from ragtide.drift.problems import Kind
from ragtide.sinks.alertmanager_settings import RUNBOOK_FIELD

# The kind of an alertname: RagtideSloBurn is slo_burn. Braces after a dollar sign would be a variable of Grafana's.
_KIND = '$labels.problem | reReplaceAll "^Ragtide" "" | reReplaceAll "([A-Z])" "_$1" | reReplaceAll "^_" "" | toLower'
_PANEL = " | ".join([_KIND, *(f'reReplaceAll "^{kind}$" "{runbook_panel(kind)}"' for kind in get_args(Kind))])


@dataclass(frozen=True, slots=True)
class Links:
    """Where dashboards and runbooks are.

    `url` is Grafana's; without it there is no link to a dashboard. `runbook` is a template, see `runbook_template`.
    `dashboards` are the names of those that exist.
    """

    url: str
    org_id: int
    uid_prefix: str
    runbook: str
    dashboards: Collection[str]

    def of_problem(self) -> Mapping[str, str]:
        """Return the runbook of the alert's kind, and the page of the problem."""
        filled = self.runbook.replace(RUNBOOK_FIELD, f"{{{{ {_KIND} }}}}").replace(PANEL_FIELD, f"{{{{ {_PANEL} }}}}")
        return self._links(filled, "problems", {"problem": "problem_id", "app": "app", "environment": "environment"})

    def of_budget(self, kind: str) -> Mapping[str, str]:
        """Return the runbook of a kind, and the application's dashboard."""
        return self._links(fill(self.runbook, kind), "application", {"app": "app", "environment": "environment"})

    def of_pipeline(self) -> Mapping[str, str]:
        """Return the runbook of rules about ragtide itself, and the dashboard of the pipeline."""
        return self._links(fill(self.runbook, "pipeline"), "pipeline", {})

    def _links(self, runbook: str, dashboard: str, chosen: Mapping[str, str]) -> Mapping[str, str]:
        query = "".join(
            f"{{{{ with $labels.{label} }}}}&var-{variable}={{{{ urlquery . }}}}{{{{ end }}}}"
            for variable, label in chosen.items()
        )
        page = f"{self.url.rstrip('/')}/d/{self.uid_prefix}{dashboard}?orgId={self.org_id}{query}"
        has_page = bool(self.url) and dashboard in self.dashboards
        found = {"runbook_url": runbook, "dashboard_url": page if has_page else ""}
        return {name: link for name, link in found.items() if link}
