"""The files under deploy/grafana say the same as what `dashboards push` does over the API."""

import re
from pathlib import Path
from typing import Any

import yaml

from ragtide.dashboards.data_source import data_source
from ragtide.dashboards.settings import DashboardSettings
from ragtide.sinks.settings import ClickHouseSettings

FOLDER = Path(__file__).parents[2] / "deploy" / "grafana" / "provisioning"


def one(kind: str, name: str) -> dict[str, Any]:
    document = yaml.safe_load((FOLDER / kind / "ragtide.yaml").read_text())
    assert document["apiVersion"] == 1
    (entry,) = document[name]
    assert isinstance(entry, dict)
    return entry


def test_the_data_source_is_the_one_that_push_makes() -> None:
    entry = one("datasources", "datasources")
    pushed = data_source("http://clickhouse", "reader", "secret", ClickHouseSettings().database)
    assert {key: entry[key] for key in ("uid", "name", "type", "access")} == {
        key: pushed[key] for key in ("uid", "name", "type", "access")
    }
    assert set(entry["jsonData"]) == set(pushed["jsonData"]) - {"path"}
    for key in ("port", "protocol", "secure", "defaultDatabase"):
        assert entry["jsonData"][key] == pushed["jsonData"][key]
    assert entry["editable"] is False


def test_no_secret_is_in_the_file() -> None:
    entry = one("datasources", "datasources")
    assert set(entry["secureJsonData"]) == {"password"}
    for value in (entry["secureJsonData"]["password"], entry["jsonData"]["username"], entry["jsonData"]["host"]):
        assert re.fullmatch(r"\$[A-Z_]+", value)


def test_dashboards_come_from_files_into_the_folder_of_the_settings() -> None:
    entry = one("dashboards", "providers")
    assert (entry["type"], entry["folderUid"]) == ("file", DashboardSettings().folder_uid)
    assert entry["allowUiUpdates"] is False
    assert entry["options"]["path"].startswith("/")
