"""Files of dashboards: plain JSON, a tree for Grafana's provisioning, or resources for Git Sync and gcx."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from ragtide.dashboards.build import Json, to_json
from ragtide.dashboards.data_source import PLUGIN
from ragtide.dashboards.settings import DashboardSettings

DASHBOARD_API = "dashboard.grafana.app/v1beta1"
FOLDER_API = "folder.grafana.app/v1beta1"
_FOLDER_OF = "grafana.app/folder"
_PRIVATE = 0o600
DASHBOARDS_PATH = "/var/lib/grafana/dashboards/ragtide"
_PROVIDER = """\
# Written by `ragtide dashboards build --format provisioning`. JSON, which YAML includes. The path is that of the
# dashboards' files as Grafana sees them. Where Grafana's API may be used instead: `ragtide dashboards push`.
"""
_SOURCE = """\
# Written by `ragtide dashboards build --format provisioning`. JSON, which YAML includes.
#
# The ClickHouse that holds ragtide's tables, for the plug-in grafana-clickhouse-datasource (4.x). Give the user of
# this data source rights to read only; docs/grafana.md says which.
#
# Grafana takes $NAME from its own environment; write $$ where a value itself holds a dollar sign.
"""


class File(NamedTuple):
    """A file to write, by its path below the chosen folder."""

    path: PurePosixPath
    text: str


def plain_files(dashboards: Mapping[str, Json]) -> Iterator[File]:
    """Yield one JSON file per dashboard, for file provisioning and for import by hand."""
    for _, document in sorted(dashboards.items()):
        yield File(PurePosixPath(f"{document['uid']}.json"), to_json(document))


def resource_files(dashboards: Mapping[str, Json], names: DashboardSettings) -> Iterator[File]:
    """Yield one manifest per dashboard and one for their folder, as Git Sync and gcx read them.

    The name of a resource is the dashboard's uid, so pushing and provisioning meet in one dashboard.
    """
    folder = {
        "apiVersion": FOLDER_API,
        "kind": "Folder",
        "metadata": {"name": names.folder_uid},
        "spec": {"title": names.folder_title},
    }
    yield File(PurePosixPath(f"{names.folder_uid}-folder.json"), to_json(folder))
    for _, document in sorted(dashboards.items()):
        yield File(PurePosixPath(f"{document['uid']}.json"), to_json(resource(document, names.folder_uid)))


def resource(document: Json, folder_uid: str) -> Json:
    """Return the manifest of a dashboard; its uid is the resource's name, and not repeated in the spec."""
    return {
        "apiVersion": DASHBOARD_API,
        "kind": "Dashboard",
        "metadata": {"name": document["uid"], "annotations": {_FOLDER_OF: folder_uid}},
        "spec": {key: value for key, value in document.items() if key not in ("uid", "id", "version")},
    }


def provisioning_files(
    dashboards: Mapping[str, Json], names: DashboardSettings, alerts: str, database: str, path: str = DASHBOARDS_PATH
) -> Iterator[File]:
    """Yield a tree: `provisioning/` for Grafana's folder of that name, and `dashboards/` to put at `path`.

    `alerts` is the text of `ragtide.dashboards.alerting.provisioning`.
    """
    provisioning = PurePosixPath("provisioning")
    yield File(provisioning / "dashboards" / "ragtide.yaml", provider(names, path))
    yield File(provisioning / "datasources" / "ragtide.yaml", source(names, database))
    yield File(provisioning / "alerting" / "ragtide.yaml", alerts)
    for file in plain_files(dashboards):
        yield File(PurePosixPath("dashboards") / file.path, file.text)


def provider(names: DashboardSettings, path: str = DASHBOARDS_PATH) -> str:
    """Return the YAML of Grafana's file provider of the dashboards."""
    entry = {
        "name": names.folder_uid,
        "type": "file",
        "folder": names.folder_title,
        "folderUid": names.folder_uid,
        "allowUiUpdates": False,
        "disableDeletion": False,
        "updateIntervalSeconds": 60,
        "options": {"path": path},
    }
    return _PROVIDER + to_json({"apiVersion": 1, "providers": [entry]})


def source(names: DashboardSettings, database: str) -> str:
    """Return the YAML of the data source; address, user and password come from Grafana's environment."""
    entry = {
        "uid": names.data_source_uid,
        "name": names.data_source_name,
        "type": PLUGIN,
        "access": "proxy",
        "editable": False,
        "jsonData": {
            "host": "$RAGTIDE_CLICKHOUSE_HOST",
            "port": 8123,
            "protocol": "http",
            "secure": False,
            "username": "$RAGTIDE_CLICKHOUSE_USER",
            "defaultDatabase": database,
        },
        "secureJsonData": {"password": "$RAGTIDE_CLICKHOUSE_PASSWORD"},
    }
    return _SOURCE + to_json({"apiVersion": 1, "datasources": [entry]})


def write(files: Iterator[File], directory: Path, *, is_private: bool = False) -> list[Path]:
    """Write the files below the folder, and return their paths. Nobody else may read private ones."""
    written = []
    for file in files:
        target = directory / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_private:
            target.touch(mode=_PRIVATE)
            target.chmod(_PRIVATE)  # it may have been there
        target.write_text(file.text, encoding="utf-8")
        written.append(target)
    return written
