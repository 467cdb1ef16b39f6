"""The message templates for Grafana, rendered by Alertmanager's engine, on which Grafana's is built."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from ragtide.dashboards.alerting.build import AlertingContext
from ragtide.dashboards.alerting.files import provisioning
from ragtide.dashboards.alerting.rule import Json
from tests.dashboards.alert_rules import rules
from tests.dashboards.test_alert_files import made
from tests.infra.alertmanager import AMTOOL

pytestmark = pytest.mark.alertmanager

_OF_GRAFANA = "{{ with .SilenceURL }}Silence: {{ . }}\n{{ end }}"  # a field that Alertmanager's alerts have not


def alert(title: str, status: str = "firing", **labels: str) -> Json:
    known = {"app": "docs-bot", "environment": "prod", "severity": "critical", "type": "accuracy", **labels}
    annotations = {
        "title": title,
        "description": f"{title} on 400 traces.\nWhy: since release 7.\nTo do: Roll back.",
        "dashboard_url": "https://grafana.example.org/d/p",
    }
    return {"status": status, "labels": known, "annotations": annotations}


def rendered(name: str, alerts: Sequence[Json], folder: Path) -> str:
    """What a receiver gets of these alerts."""
    [template] = yaml.safe_load(provisioning(made()))["templates"]
    assert _OF_GRAFANA in template["template"]
    (folder / "ragtide.tmpl").write_text(template["template"].replace(_OF_GRAFANA, ""))
    common = {
        f"common{kind.capitalize()}": dict(set.intersection(*({*one[kind].items()} for one in alerts)))
        for kind in ("labels", "annotations")
    }
    (folder / "data.json").write_text(json.dumps({"alerts": list(alerts), **common}))
    return evaluated(f'{{{{ template "ragtide.{name}" . }}}}', folder)


def evaluated(text: str, folder: Path) -> str:
    command = [AMTOOL, "template", "render", f"--template.glob={folder}/*.tmpl", f"--template.data={folder}/data.json"]
    found = subprocess.run([*command, f"--template.text={text}"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_one_alert_says_what_happened_and_where_to_look(tmp_path: Path) -> None:
    fell = alert("docs-bot (prod): groundedness fell from 0.91 to 0.42")
    assert (
        rendered("title", [fell], tmp_path)
        == "1 firing, critical: docs-bot (prod): groundedness fell from 0.91 to 0.42"
    )
    assert rendered("message", [fell], tmp_path).splitlines()[:4] == [
        "CRITICAL docs-bot (prod): groundedness fell from 0.91 to 0.42 on 400 traces.",
        "Why: since release 7.",
        "To do: Roll back.",
        "Dashboard: https://grafana.example.org/d/p",
    ]


def test_several_alerts_are_named_by_what_they_share(tmp_path: Path) -> None:
    some = [alert("a"), alert("b", severity="warning"), alert("over", "resolved", severity="warning")]
    assert rendered("title", some, tmp_path) == "2 firing: docs-bot (prod) accuracy"
    message = rendered("message", some, tmp_path)
    assert ("CRITICAL a on" in message, "WARNING b on" in message) == (True, True)
    assert message.splitlines()[-2:] == ["Resolved:", "- over"]
    assert rendered("title", [alert("over", "resolved")], tmp_path) == "resolved, critical: over"


@pytest.mark.parametrize("status", ["firing", "resolved"])
def test_a_message_shows_ten_alerts_of_a_storm(tmp_path: Path, status: str) -> None:
    storm = [alert(f"number {n:02}", status) for n in range(25)]
    message = rendered("message", storm, tmp_path)
    assert [f"number {n:02}" in message for n in range(25)] == [True] * 10 + [False] * 15
    assert message.splitlines()[-1] == "… and 15 more"


def test_a_title_without_the_problem_s_own_has_eighty_characters_at_most(tmp_path: Path) -> None:
    """Of a thousand and more alerts, the rest have no texts."""
    title = rules(AlertingContext())["problems"].annotations["title"]
    otherwise = title[title.rindex("{{ else }}{{ with $labels.app }}") + len("{{ else }}") : title.rindex("{{ end }}")]

    def shown(**labels: str) -> str:
        data = {"alerts": [], "commonLabels": labels}
        (tmp_path / "ragtide.tmpl").write_text("")
        (tmp_path / "data.json").write_text(json.dumps(data))
        return evaluated("{{ $labels := .CommonLabels }}" + otherwise, tmp_path)

    assert shown(app="docs-bot", type="accuracy", metric="groundedness.groundedness") == (
        "docs-bot: accuracy, groundedness.groundedness"
    )
    assert shown(type="storage") == "ragtide: storage"
    assert len(shown(app="é" * 200, type="t" * 200, metric="m" * 200)) == 80
