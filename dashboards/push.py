"""Push dashboards to a Grafana; a second push does nothing."""

from collections.abc import Mapping
from dataclasses import dataclass

from ragtide.sinks.grafana import GrafanaGateway, Json

_OF_GRAFANA = ("id", "version")  # what Grafana adds when it stores a dashboard


@dataclass(frozen=True, slots=True)
class PushResult:
    """Names of dashboards, by what was done."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]


def push(
    grafana: GrafanaGateway,
    dashboards: Mapping[str, Json],
    *,
    folder_uid: str = "ragtide",
    data_source: Json | None = None,
) -> PushResult:
    """Push the folder, the data source (if given) and every dashboard.

    An unchanged dashboard gets no new version. Raises the gateway's errors; dashboards pushed before stay.
    """
    grafana.ensure_folder(folder_uid, "ragtide")
    if data_source is not None:
        grafana.put_data_source(data_source)
    done: dict[str, list[str]] = {"created": [], "changed": [], "unchanged": []}
    for name, document in sorted(dashboards.items()):
        stored = grafana.dashboard(document["uid"])
        if stored is not None and _own(stored) == _own(document):
            done["unchanged"].append(name)
            continue
        grafana.put_dashboard(document, folder_uid, "ragtide dashboards push")
        done["created" if stored is None else "changed"].append(name)
    return PushResult(*(tuple(names) for names in done.values()))


def _own(document: Json) -> Json:
    return {key: value for key, value in document.items() if key not in _OF_GRAFANA}
