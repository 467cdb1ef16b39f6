"""Baselines as people see them: days of the week that are alike share a column, and what cannot be read is told."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from click.testing import CliRunner

from drift.detectors.recurring import A_DAY, GROUPS, Recurring
from drift.rules.series import Series
from drift.watching.shown import Channel, Moment, Shown, alike, moments
from sinks.clickhouse.database import Database
from stream.cli import main
from stream.cli.baseline_drawn import draw
from tests.drift.watching.planted import BASE, DAY, START, Planted, window
from tests.infra.fresh_database import reached

LATENCY = "operations.latency_seconds"


def test_a_day_with_an_hour_of_its_own_stands_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """On Sundays at 2 it is 0.5 instead of 0.8: yesterday, at 0.5 from 2 to 4, was usual at 2 and was not at 3."""
    level = np.repeat([0.7, 0.8], [5 * 24, 2 * 24])
    assert [one.days for one in alike(level)] == ["Mon-Fri", "Sat-Sun"]
    level[6 * 24 + 2] = 0.5
    usual = alike(level)
    assert [one.days for one in usual] == ["Mon-Fri", "Sat", "Sun"]
    assert [one.level[2] for one in usual] == [0.7, 0.8, 0.5]
    last_day = (0.8, None, 0.5, 0.5, *[0.7] * 20)
    channel = Channel("mean", usual, 0.01, last_day)
    series = Series("docs-bot", "prod", "quality.good", "m1", "", "")
    draw([Shown(series, "history", datetime(2026, 1, 19, tzinfo=UTC), "", None, "", 100.0, False, (channel,))])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[4] == ["hour", "Mon-Fri", "Sat", "Sun", "last", "day"]
    assert lines[5:9] == [
        ["00", "0.7", "0.8", "0.8", "0.8"],
        ["01", "0.7", "0.8", "0.8"],
        ["02", "0.7", "0.8", "0.5", "0.5"],
        ["03", "0.7", "0.8", "0.8", "0.5!"],
    ]


def test_minutes_of_their_own_are_drawn_beneath_the_hours(capsys: pytest.CaptureFixture[str]) -> None:
    """A quarter of an hour on weekdays from 2:05 on, and the last five minutes of Sundays."""
    clear, level = np.zeros((1, 1, GROUPS * A_DAY)), np.zeros((1, 1, GROUPS * A_DAY))
    for moment, is_usual in ((25, 0.25), (26, 0.5), (27, 0.75), ((GROUPS - 1) * A_DAY + A_DAY - 1, 0.5)):
        clear[0, 0, moment], level[0, 0, moment] = 9, is_usual
    found = moments(Recurring.clearest(clear, level, clear), 0, low=1.0, span=4.0)
    assert found == (Moment("Mon-Fri", "02:05", "02:20", 3.0), Moment("Sun", "23:55", "24:00", 3.0))
    channel = Channel("mean", alike(np.full(7 * 24, 1.0)), 0.01, tuple([1.0] * 24), found)
    series = Series("docs-bot", "prod", "quality.good", "m1", "", "")
    draw([Shown(series, "history", datetime(2026, 1, 19, tzinfo=UTC), "", None, "", 100.0, False, (channel,))])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[-3:] == [
        ["unlike", "its", "hour", "usual"],
        ["Mon-Fri", "02:05-02:20", "3"],
        ["Sun", "23:55-24:00", "3"],
    ]
    nothing = moments(Recurring.none(1, 1), 0, low=0.0, span=1.0)
    assert nothing == ()


@pytest.mark.clickhouse
def test_a_baseline_of_another_release_is_learnt_again_at_the_next_look(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    planted, end = Planted(database), START + 2 * DAY
    planted.store(window(LATENCY, at, np.full(40, 2.0), version=0) for at in range(end - DAY // 2, end + BASE, BASE))
    planted.look(end)

    def shown(*options: str) -> str:
        variables = {"RAGWATCH_CONFIG": None, "RAGWATCH_WINDOWS__BASE_S": str(BASE), **reached(database)}
        variables["RAGWATCH_WINDOWS__SIZES_S"] = f"{BASE},3600,{DAY}"
        found = CliRunner().invoke(main, ["baseline", "show", "shop", LATENCY, *options], env=variables)
        assert found.exit_code == 0, found.output
        return found.output

    assert "warming up: less than a day of history" in shown()
    monkeypatch.setattr("drift.watching.batch._FITTED", 999)
    _, said = shown().splitlines()
    assert said.strip() == (
        "warming up: what is stored is of another release; the next run of the job drift learns the baseline again"
    )
    (one,) = json.loads(shown("--json"))
    assert [one[name] for name in ("learned_at", "records", "channels")] == [None, None, []]
    caplog.clear()
    planted.look(end + BASE)
    assert "baselines of positive of lane fast are learned anew" in caplog.text
    assert "warming up: less than a day of history" in shown()
