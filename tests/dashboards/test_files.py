"""Files of dashboards: what is under deploy/grafana is what the command writes; manifests for Git Sync and gcx."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from ragtide.dashboards.build import build
from ragtide.dashboards.files import provider, resource, source
from ragtide.dashboards.settings import DashboardSettings
from ragtide.evaluators.registry import load
from ragtide.sinks.settings import ClickHouseSettings
from ragtide.stream.cli import main

REPOSITORY = Path(__file__).parents[2]
COMMITTED = REPOSITORY / "deploy" / "grafana" / "provisioning"


def built(*options: str, **settings: str) -> Result:
    environment = {f"RAGTIDE_DASHBOARDS__{name}": value for name, value in settings.items()}
    return CliRunner().invoke(main, ["dashboards", "build", *options], env=environment)


def files(folder: Path) -> dict[str, Any]:
    read: dict[str, Callable[[str], Any]] = {".json": json.loads, ".yaml": yaml.safe_load}
    found = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): read[file.suffix](file.read_text()) for file in found}


def test_committed_files_are_those_that_the_command_writes() -> None:
    names = DashboardSettings()
    assert (COMMITTED / "dashboards" / "ragtide.yaml").read_text() == provider(names)
    assert (COMMITTED / "datasources" / "ragtide.yaml").read_text() == source(names, ClickHouseSettings().database)


def test_no_dashboard_is_committed_that_could_become_stale() -> None:
    """Dashboards follow from the installed evaluators, so the command writes them where they are needed."""
    found = [file for file in REPOSITORY.glob("deploy/**/*.json") if "schemaVersion" in file.read_text()]
    assert found == []


def test_the_tree_for_provisioning_is_complete(tmp_path: Path) -> None:
    assert built("--format", "provisioning", "--out", str(tmp_path), "--path", "/srv/boards").exit_code == 0
    written = files(tmp_path)
    boards = [name for name in written if name.startswith("dashboards/")]
    assert len(boards) == len(build(load()))
    [entry] = written["provisioning/dashboards/ragtide.yaml"]["providers"]
    assert (entry["options"]["path"], entry["folderUid"], entry["allowUiUpdates"]) == ("/srv/boards", "ragtide", False)
    [database] = written["provisioning/datasources/ragtide.yaml"]["datasources"]
    assert database["uid"] == written["dashboards/ragtide-trace.json"]["templating"]["list"][0]["current"]["value"]
    rules = written["provisioning/alerting/ragtide.yaml"]["groups"][0]["rules"]
    assert {query["datasourceUid"] for rule in rules for query in rule["data"]} == {database["uid"], "__expr__"}


def test_manifests_name_dashboard_and_folder_and_hold_the_same_dashboard(tmp_path: Path) -> None:
    made = built("--format", "resource", "--out", str(tmp_path / "made"), FOLDER_UID="team-a", FOLDER_TITLE="Team A")
    assert made.exit_code == 0, made.output
    written = files(tmp_path / "made")
    folder = written.pop("team-a-folder.json")
    assert (folder["apiVersion"], folder["kind"]) == ("folder.grafana.app/v1beta1", "Folder")
    assert (folder["metadata"], folder["spec"]) == ({"name": "team-a"}, {"title": "Team A"})
    assert built("--out", str(tmp_path / "plain")).exit_code == 0
    plain = files(tmp_path / "plain")
    assert set(plain) == {f"ragtide-{name}.json" for name in build(load())}
    for file, document in plain.items():
        manifest = written[file]
        assert (manifest["apiVersion"], manifest["kind"]) == ("dashboard.grafana.app/v1beta1", "Dashboard")
        uid = document.pop("uid")
        assert manifest["metadata"] == {"name": uid, "annotations": {"grafana.app/folder": "team-a"}}
        assert manifest["spec"] == document
    assert set(written) == set(plain)


def test_a_manifest_repeats_no_identity_in_its_spec() -> None:
    made = resource({"uid": "a", "title": "A", "id": 7, "version": 3}, "f")
    assert made["spec"] == {"title": "A"}


@pytest.mark.parametrize("format_", ["json", "resource", "provisioning"])
def test_the_same_settings_give_the_same_bytes(tmp_path: Path, format_: str) -> None:
    for folder in ("first", "second"):
        assert built("--format", format_, "--out", str(tmp_path / folder)).exit_code == 0
    first, second = ({f.name: f.read_bytes() for f in (tmp_path / n).rglob("*.*")} for n in ("first", "second"))
    assert first == second
