"""Baselines as people see them: days of the week that are alike share a column, and what cannot be read is told."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from click.testing import CliRunner

from ragtide.drift.anomalies.baseline_view import BaselineView, ChannelView, TimeSlot, day_groups, time_slots
from ragtide.drift.detectors.time_of_day import DAY_GROUPS, TICKS_PER_DAY, RecurringTicks
from ragtide.drift.rules.model import Series
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.cli.baseline_render import draw
from tests.drift.anomalies.window_fixture import BASE, DAY, START, WindowFixture, window
from tests.infra.fresh_database import reached

LATENCY = "operations.latency_seconds"


def test_a_day_with_an_hour_of_its_own_stands_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """On Sundays at 2 it is 0.5 instead of 0.8: yesterday, at 0.5 from 2 to 4, was usual at 2 and was not at 3."""
    level = np.repeat([0.7, 0.8], [5 * 24, 2 * 24])
    assert [one.days for one in day_groups(level)] == ["Mon-Fri", "Sat-Sun"]
    level[6 * 24 + 2] = 0.5
    usual = day_groups(level)
    assert [one.days for one in usual] == ["Mon-Fri", "Sat", "Sun"]
    assert [one.level[2] for one in usual] == [0.7, 0.8, 0.5]
    last_day = (0.8, None, 0.5, 0.5, *[0.7] * 20)
    channel = ChannelView("mean", usual, 0.01, last_day)
    series = Series("docs-bot", "prod", "quality.good", "m1", "", "")
    draw([BaselineView(series, "history", datetime(2026, 1, 19, tzinfo=UTC), "", None, "", 100.0, False, (channel,))])
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
    clear, level = np.zeros((1, 1, DAY_GROUPS * TICKS_PER_DAY)), np.zeros((1, 1, DAY_GROUPS * TICKS_PER_DAY))
    for moment, is_usual in (
        (25, 0.25),
        (26, 0.5),
        (27, 0.75),
        ((DAY_GROUPS - 1) * TICKS_PER_DAY + TICKS_PER_DAY - 1, 0.5),
    ):
        clear[0, 0, moment], level[0, 0, moment] = 9, is_usual
    found = time_slots(RecurringTicks.from_clarity(clear, level, clear), 0, low=1.0, width=4.0)
    assert found == (TimeSlot("Mon-Fri", "02:05", "02:20", 3.0), TimeSlot("Sun", "23:55", "24:00", 3.0))
    channel = ChannelView("mean", day_groups(np.full(7 * 24, 1.0)), 0.01, tuple([1.0] * 24), found)
    series = Series("docs-bot", "prod", "quality.good", "m1", "", "")
    draw([BaselineView(series, "history", datetime(2026, 1, 19, tzinfo=UTC), "", None, "", 100.0, False, (channel,))])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[-3:] == [
        ["unlike", "its", "hour", "usual"],
        ["Mon-Fri", "02:05-02:20", "3"],
        ["Sun", "23:55-24:00", "3"],
    ]
    nothing = time_slots(RecurringTicks.none(1, 1), 0, low=0.0, width=1.0)
    assert nothing == ()


@pytest.mark.clickhouse
def test_a_baseline_of_another_release_is_learnt_again_at_the_next_look(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    planted, end = WindowFixture(database), START + 2 * DAY
    planted.store(window(LATENCY, at, np.full(40, 2.0), version=0) for at in range(end - DAY // 2, end + BASE, BASE))
    planted.scan(end)

    def shown(*options: str) -> str:
        variables = {"RAGTIDE_CONFIG": None, "RAGTIDE_WINDOWS__BASE_S": str(BASE), **reached(database)}
        variables["RAGTIDE_WINDOWS__SIZES_S"] = f"{BASE},3600,{DAY}"
        found = CliRunner().invoke(main, ["baseline", "show", "shop", LATENCY, *options], env=variables)
        assert found.exit_code == 0, found.output
        return found.output

    assert "warming up: less than a day of history" in shown()
    monkeypatch.setattr("ragtide.drift.anomalies.batch._BASELINES", 999)
    _, said = shown().splitlines()
    assert said.strip() == (
        "warming up: what is stored is of another release; the next run of the job drift learns the baseline again"
    )
    (one,) = json.loads(shown("--json"))
    assert [one[name] for name in ("learned_at", "records", "channels")] == [None, None, []]
    caplog.clear()
    planted.scan(end + BASE)
    assert "stored baselines (positive, lane fast) are unreadable" in caplog.text
    assert "warming up: less than a day of history" in shown()
