"""What a baseline rests on: pins and accepted changes, and what `ragwatch baseline` says of them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from drift.problems.events import Place
from drift.watching.look import Looked
from sinks.clickhouse.embedded import EmbeddedClickHouse
from stream.cli import main
from tests.drift.watching.planted import BASE, DAY, START, Planted, WindowRow, accepted, window
from tests.infra.fresh_database import fresh_database

FIRST = START + 3 * DAY + 1800
METRIC = "operations.error"


def windows(first: int, end: int, share: float, run_id: str = "live") -> Iterator[WindowRow]:
    """Errors of one app: by a metric that is installed, since the commands know no other."""
    for at in range(first, end, BASE):
        yes = np.random.default_rng(at - START).random(60) < share
        yield window(METRIC, at, yes, version=0, run_id=run_id)


@pytest.fixture(scope="module")
def planted(clickhouse_server: EmbeddedClickHouse) -> Iterator[Planted]:
    with fresh_database(clickhouse_server) as database:
        planted = Planted(database)
        planted.store(windows(START + DAY, FIRST, 0.02))
        planted.store(windows(START, START + DAY, 0.2, "release-7"))
        planted.look(FIRST)
        yield planted


@pytest.fixture
def ragwatch(planted: Planted, tmp_path: Path) -> "Ragwatch":
    return Ragwatch(planted, tmp_path / "ragwatch.toml")


class Ragwatch:
    """The command, on the planted database."""

    def __init__(self, planted: Planted, config: Path) -> None:
        settings = planted.database.settings
        config.write_text(
            f'[clickhouse]\nurl = "{settings.url}"\ndatabase = "{settings.database}"\nuser = "{settings.user}"\n'
            f'password = "{settings.password.get_secret_value()}"\n[windows]\nbase_s = 300\n'
            "sizes_s = [300, 3600, 86400]\n[drift]\nhistory_days = 2\n"
        )
        self.config = config

    def __call__(self, *words: str) -> Result:
        return CliRunner().invoke(main, ["baseline", *words, "--config", str(self.config)])


def level(looked: Looked) -> float:
    (one,) = (one for one in looked.seen if METRIC in {series.metric for series in one.batch.series})
    return float(one.baseline.level[0, 0].mean())


def test_a_pin_holds_until_it_is_taken_out(planted: Planted, ragwatch: Ragwatch) -> None:
    assert level(planted.look(FIRST)) == pytest.approx(0.02, abs=0.01)
    said = ragwatch("pin", "shop", "--run", "release-7", "--why", "what we shipped", "--by", "ann")
    assert said.output.startswith("shop: all metrics judged by run release-7")
    assert said.output.endswith("\n  1 of 1 series that are watched\n")
    assert level(planted.look(FIRST)) == pytest.approx(0.2, abs=0.01)
    shown = json.loads(ragwatch("show", "shop", METRIC, "--json").output)
    assert shown[0]["rests_on"] == "what was pinned"
    assert ragwatch("unpin", "shop", "--metric", METRIC, "--why", "x", "--by", "ann").exit_code == 2
    assert ragwatch("unpin", "shop", "--why", "over", "--by", "bob").exit_code == 0
    assert level(planted.look(FIRST)) == pytest.approx(0.02, abs=0.01)
    last, first = ragwatch("pins", "shop").output.splitlines()
    assert "bob: shop: all metrics unpinned from run release-7" in last
    assert first.endswith("(what we shipped)")
    words = json.loads(ragwatch("pins", "--json").output)
    assert [(word["actor"], word["why"]) for word in words] == [("bob", "over"), ("ann", "what we shipped")]


def test_what_is_not_there_is_no_reference(ragwatch: Ragwatch) -> None:
    for words in (["--run", "nobody"], ["--from", "2001-01-01", "--to", "2001-01-02"], ["--from", "2001-01-01"]):
        said = ragwatch("pin", "shop", *words, "--why", "x", "--by", "ann")
        assert said.exit_code == 2, words
    assert "no series" in ragwatch("show", "nobody", METRIC).output


def test_an_accepted_change_moves_the_baseline(planted: Planted, ragwatch: Ragwatch) -> None:
    since = datetime.fromtimestamp(FIRST - DAY // 2, UTC)
    planted.database.insert("problem_events", [accepted(Place("shop", "prod", "m1", "level", METRIC), since)])
    looked = planted.look(FIRST)
    assert looked.warming == 0
    shown = json.loads(ragwatch("show", "shop", METRIC, "--json").output)
    assert shown[0]["warming"] == ""
    assert shown[0]["rests_on"] == (
        f"history since {since:%Y-%m-%d %H:%M} UTC, which was accepted; its hours and its noise are those of the "
        "days before"
    )


def test_a_baseline_is_drawn(planted: Planted, ragwatch: Ragwatch) -> None:
    planted.database.command("TRUNCATE TABLE problem_events")
    planted.look(FIRST)
    lines = ragwatch("show", "shop", METRIC).output.splitlines()
    assert lines[0] == f"shop (prod, model m1): {METRIC}"
    hours = [line.split() for line in lines if line[:2].isdigit()]
    assert [hour[0] for hour in hours] == [f"{hour:02}" for hour in range(24)]
    assert all(0 < float(hour[1]) < 0.05 for hour in hours)
    errors = planted.database.rows(
        "SELECT sum(sum) / sum(scored) AS share FROM windows FINAL WHERE run_id = 'live' AND toHour(start) = 5 "
        f"AND start >= toDateTime({FIRST - DAY}, 'UTC') AND start < toDateTime({FIRST}, 'UTC')"
    )[0]["share"]
    assert float(hours[5][-1].rstrip("!")) == pytest.approx(errors, rel=1e-3)


def test_learning_beside_the_jobs_overwrites_nothing(planted: Planted, ragwatch: Ragwatch) -> None:
    before = planted.database.rows("SELECT * FROM detector_states FINAL ORDER BY ALL")
    said = ragwatch("learn")
    assert "series" in said.output
    assert before == planted.database.rows("SELECT * FROM detector_states FINAL WHERE version >= 1 ORDER BY ALL")
