"""What a baseline rests on: pins and accepted changes, and what `ragtide baseline` says of them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from ragtide.drift.anomalies.scanner import ScanResult
from ragtide.drift.problems.report import ProblemKey
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.stream.cli import main
from tests.drift.anomalies.window_fixture import BASE, DAY, START, WindowFixture, WindowRow, accepted, window
from tests.infra.fresh_database import fresh_database

FIRST = START + 3 * DAY + 1800
METRIC = "operations.error"


def windows(first: int, end: int, share: float, run_id: str = "live") -> Iterator[WindowRow]:
    """Errors of one app: by a metric that is installed, since the commands know no other."""
    for at in range(first, end, BASE):
        yes = np.random.default_rng(at - START).random(60) < share
        yield window(METRIC, at, yes, version=0, run_id=run_id)


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[WindowFixture]:
    with fresh_database(clickhouse_server) as database:
        planted = WindowFixture(database)
        planted.store(windows(START + DAY, FIRST, 0.02))
        planted.store(windows(START, START + DAY, 0.2, "release-7"))
        planted.scan(FIRST)
        yield planted


@pytest.fixture
def ragtide(planted: WindowFixture, tmp_path: Path) -> "Ragtide":
    return Ragtide(planted, tmp_path / "ragtide.toml")


class Ragtide:
    """The command, on the planted database."""

    def __init__(self, planted: WindowFixture, config: Path) -> None:
        settings = planted.database.settings
        config.write_text(
            f'[clickhouse]\nurl = "{settings.url}"\ndatabase = "{settings.database}"\nuser = "{settings.user}"\n'
            f'password = "{settings.password.get_secret_value()}"\n[windows]\nbase_s = 300\n'
            "sizes_s = [300, 3600, 86400]\n[drift]\nhistory_days = 2\n"
        )
        self.config = config

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(main, ["baseline", *words, "--config", str(self.config)])


def level(looked: ScanResult) -> float:
    (one,) = (one for one in looked.snapshots if METRIC in {series.metric for series in one.batch.series})
    return float(one.baseline.level[0, 0].mean())


def test_a_pin_holds_until_it_is_taken_out(planted: WindowFixture, ragtide: Ragtide) -> None:
    assert level(planted.scan(FIRST)) == pytest.approx(0.02, abs=0.01)
    said = ragtide("pin", "shop", "--run", "release-7", "--why", "what we shipped", "--by", "ann")
    assert said.output.startswith("shop: all metrics judged by run release-7")
    assert said.output.endswith("\n  1 of 1 monitored series\n")
    assert level(planted.scan(FIRST)) == pytest.approx(0.2, abs=0.01)
    shown = json.loads(ragtide("show", "shop", METRIC, "--json").output)
    assert shown[0]["rests_on"] == "the pinned reference"
    assert ragtide("unpin", "shop", "--metric", METRIC, "--why", "x", "--by", "ann").exit_code == 2
    assert ragtide("unpin", "shop", "--why", "over", "--by", "bob").exit_code == 0
    assert level(planted.scan(FIRST)) == pytest.approx(0.02, abs=0.01)
    last, first = ragtide("pins", "shop").output.splitlines()
    assert "bob: shop: all metrics unpinned from run release-7" in last
    assert first.endswith("(what we shipped)")
    words = json.loads(ragtide("pins", "--json").output)
    assert [(word["actor"], word["why"]) for word in words] == [("bob", "over"), ("ann", "what we shipped")]


def test_what_is_not_there_is_no_reference(ragtide: Ragtide) -> None:
    for words in (["--run", "nobody"], ["--from", "2001-01-01", "--to", "2001-01-02"], ["--from", "2001-01-01"]):
        said = ragtide("pin", "shop", *words, "--why", "x", "--by", "ann")
        assert said.exit_code == 2, words
    unknown = ragtide("show", "nobody", METRIC)
    assert (unknown.exit_code, "nobody" in unknown.output) == (2, True)


def test_an_accepted_change_moves_the_baseline(planted: WindowFixture, ragtide: Ragtide) -> None:
    since = datetime.fromtimestamp(FIRST - DAY // 2, UTC)
    planted.database.insert("problem_events", [accepted(ProblemKey("shop", "prod", "m1", "level", METRIC), since)])
    looked = planted.scan(FIRST)
    assert looked.warming_up == 0
    shown = json.loads(ragtide("show", "shop", METRIC, "--json").output)
    assert shown[0]["warming"] == ""
    assert shown[0]["rests_on"] == (
        f"history since the change accepted at {since:%Y-%m-%d %H:%M} UTC; hours of the day and noise are those of the "
        "days before"
    )


def test_a_baseline_is_drawn(planted: WindowFixture, ragtide: Ragtide) -> None:
    planted.database.command("TRUNCATE TABLE problem_events")
    planted.scan(FIRST)
    lines = ragtide("show", "shop", METRIC).output.splitlines()
    assert lines[0] == f"shop (prod, model m1): {METRIC}"
    hours = [line.split() for line in lines if line[:2].isdigit()]
    assert [hour[0] for hour in hours] == [f"{hour:02}" for hour in range(24)]
    assert all(0 < float(hour[1]) < 0.05 for hour in hours)
    errors = planted.database.rows(
        "SELECT sum(sum) / sum(scored) AS share FROM windows FINAL WHERE run_id = 'live' AND toHour(start) = 5 "
        f"AND start >= toDateTime({FIRST - DAY}, 'UTC') AND start < toDateTime({FIRST}, 'UTC')"
    )[0]["share"]
    assert float(hours[5][-1].rstrip("!")) == pytest.approx(errors, rel=1e-3)


def test_learning_beside_the_jobs_overwrites_nothing(planted: WindowFixture, ragtide: Ragtide) -> None:
    before = planted.database.rows("SELECT * FROM detector_states FINAL ORDER BY ALL")
    said = ragtide("learn")
    assert "series" in said.output
    assert before == planted.database.rows("SELECT * FROM detector_states FINAL WHERE version >= 1 ORDER BY ALL")
