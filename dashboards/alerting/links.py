"""Links of alerts in Grafana, as templates over their labels."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ragtide.sinks.alertmanager_settings import RUNBOOK_FIELD

# The kind of an alertname: RagtideSloBurn is slo_burn. Braces after a dollar sign would be a variable of Grafana's.
_KIND = (
    '{{ $labels.problem | reReplaceAll "^Ragtide" "" | reReplaceAll "([A-Z])" "_$1" | reReplaceAll "^_" "" | toLower }}'
)


@dataclass(frozen=True, slots=True)
class Links:
    """Where dashboards and runbooks are.

    `url` is Grafana's; without it there is no link to a dashboard. `runbook_url` has {kind} in it, or is empty.
    `dashboards` are the names of those that exist.
    """

    url: str
    org_id: int
    uid_prefix: str
    runbook_url: str
    dashboards: Collection[str]

    def of_problem(self) -> Mapping[str, str]:
        """Return the runbook of the alert's kind, and the page of the problem."""
        return self._links(_KIND, "problems", {"problem": "problem_id", "app": "app", "environment": "environment"})

    def of_budget(self, kind: str) -> Mapping[str, str]:
        """Return the runbook of a kind, and the application's dashboard."""
        return self._links(kind, "application", {"app": "app", "environment": "environment"})

    def of_pipeline(self) -> Mapping[str, str]:
        """Return the runbook of rules about ragtide itself, and the dashboard of the pipeline."""
        return self._links("pipeline", "pipeline", {})

    def _links(self, kind: str, dashboard: str, chosen: Mapping[str, str]) -> Mapping[str, str]:
        runbook = self.runbook_url.replace(RUNBOOK_FIELD, kind)
        query = "".join(
            f"{{{{ with $labels.{label} }}}}&var-{variable}={{{{ urlquery . }}}}{{{{ end }}}}"
            for variable, label in chosen.items()
        )
        page = f"{self.url.rstrip('/')}/d/{self.uid_prefix}{dashboard}?orgId={self.org_id}{query}"
        has_page = bool(self.url) and dashboard in self.dashboards
        found = {"runbook_url": runbook, "dashboard_url": page if has_page else ""}
        return {name: link for name, link in found.items() if link}
