"""The alert job ended by kill -9 at every step: each problem is notified once per state, and none after its end."""

import signal
from pathlib import Path

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.drift.notify.alert_process import POINTS, exit_status
from tests.drift.notify.alert_scene import Scene
from tests.infra.alertmanager import Receiver, config_for, running, wait_for

pytestmark = [pytest.mark.alertmanager, pytest.mark.clickhouse, pytest.mark.chaos]


def test_kill_9_at_any_step_loses_nothing_and_notifies_of_nothing_twice(database: Database, tmp_path: Path) -> None:
    with Receiver() as receiver, running(tmp_path, config_for(receiver)) as alertmanager:
        scene = Scene(database, alertmanager.url)
        names = [point.replace(" ", "-").replace(",", "") for point in POINTS]
        scene.opens(*(f"{name}-ends" for name in names))
        scene.run()
        wait_for(lambda: len(receiver.firing()) == len(names), "all that will end")
        for name, point in zip(names, POINTS, strict=True):
            scene.opens(f"{name}-opens")
            scene.resolves(f"{name}-ends")
            assert exit_status(database.settings, scene.settings, point) == -signal.SIGKILL, point
            assert exit_status(database.settings, scene.settings) == 0, point
        wait_for(lambda: receiver.firing() == {f"{name}-opens" for name in names}, "all that opened")
        for name in names:
            assert receiver.states(f"{name}-opens") == [("search-team", "firing")]
            assert receiver.states(f"{name}-ends") == [("search-team", "firing"), ("search-team", "resolved")]
        assert receiver.repeats() == []
        states = database.rows("SELECT state, count() AS n FROM alerts_posted FINAL GROUP BY state ORDER BY state")
        assert [(row["state"], row["n"]) for row in states] == [("ended", len(names)), ("firing", len(names))]
        scene.close()
