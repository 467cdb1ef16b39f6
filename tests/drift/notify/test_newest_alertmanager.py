"""Alerts at the newest Alertmanager, which reads names and matchers as UTF-8."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragtide.drift.problems import load_silences
from ragtide.sinks.alertmanager import AlertmanagerGateway
from ragtide.sinks.clickhouse.database import Database
from tests.drift.notify.alert_scene import Scene
from tests.infra.alertmanager import Receiver, config_for, running, wait_for
from tests.infra.go_programs import GO
from tests.infra.newest_alertmanager import VERSION, program

pytestmark = [
    pytest.mark.alertmanager,
    pytest.mark.clickhouse,
    pytest.mark.skipif(GO is None, reason="Go is missing"),
    pytest.mark.timeout(900),
]
APP = 'Größe 東京 🦊 "quoted" {a,b}'


def test_alerts_with_any_name_are_notified_silenced_and_ended(database: Database, tmp_path: Path) -> None:
    strict = ("--cluster.listen-address=", "--enable-feature=utf8-strict-mode")
    with (
        Receiver() as receiver,
        running(tmp_path, config_for(receiver), *strict, program=str(program())) as alertmanager,
    ):
        scene = Scene(database, alertmanager.url)
        assert AlertmanagerGateway(alertmanager.url, scene.settings).status().version_info.version == VERSION
        scene.opens("p1", app=APP, severity="critical")
        scene.opens("p2", app=APP, segment="Mandant", segment_value="Müller & Söhne")
        assert scene.run().begun == 2
        wait_for(lambda: receiver.firing() == {"p1", "p2"}, "both notifications")
        assert {one["labels"]["app"] for one in alertmanager.alerts()} == {APP}
        alertmanager.silence((datetime.now(UTC) + timedelta(hours=1)).isoformat(), app=APP, problem_id="p2")
        scene.run(later_s=16)
        silences = load_silences(database, scene.now(), ["p1", "p2"])
        assert {problem: [one.created_by for one in some] for problem, some in silences.items()} == {"p2": ["kim"]}
        scene.resolves("p1", app=APP, severity="critical")
        assert scene.run(later_s=20).ended == 1
        wait_for(lambda: receiver.firing() == {"p2"}, "the resolution")
        scene.close()
