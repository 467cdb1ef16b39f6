"""The shell completes ids and names from the database, and nothing, soon and silently, without one."""

import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from click.shell_completion import ShellComplete

from ragtide.drift.problems.report import Clear, report_detections
from ragtide.drift.problems.store import load_problems
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import completion, main
from tests.infra.fresh_database import reached
from tests.stream.pipe.problem_site import PLACE, Site


def completed(*args: str) -> list[str]:
    *before, incomplete = args
    shell = ShellComplete(main, {}, "ragtide", "_RAGTIDE_COMPLETE")
    return [item.value for item in shell.get_completions(before, incomplete)]


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.clickhouse
def test_ids_and_names_come_from_the_database(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site(database)
    site.sees("drift")
    site.sees("drift", place=PLACE._replace(app="bank"))
    for name, value in reached(database).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(completion, "WAIT_S", 20.0)
    known = site.database.rows("SELECT DISTINCT problem_id FROM problem_events")
    ids = {row["problem_id"] for row in known}
    assert set(completed("problems", "show", "")) == ids
    later = datetime.now(UTC) + timedelta(hours=2)
    for at in (later, later + timedelta(hours=2)):
        report_detections(database, [Clear(PLACE, "drift", later)], site.world.rules, site.world.term, at)
    assert {one.state for one in load_problems(database)} == {"open", "resolved"}
    assert set(completed("problems", "show", "")) == ids
    one = min(ids)
    assert completed("problems", "ack", one[:6]) == [one]
    assert completed("problems", "list", "--app", "b") == ["bank"]
    assert completed("problems", "list", "--app", "shop,b") == ["shop,bank"]


def test_metrics_need_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "_LOAD_S", 60.0)
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__URL", "http://127.0.0.1:1")
    assert completed("compare", "a", "b", "--metric", "rouge.rouge_l") == ["rouge.rouge_l", "rouge.rouge_lsum"]
    assert "rouge" in completed("problems", "list", "--metric", "rou")


def test_no_database_completes_nothing_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__URL", "http://127.0.0.1:1")
    assert completed("problems", "show", "3") == []
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__URL", "no address")
    assert completed("problems", "show", "3") == []
    assert capfd.readouterr() == ("", "")


def test_a_database_that_does_not_answer_holds_no_shell(silent_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTIDE_CLICKHOUSE__URL", silent_server)
    monkeypatch.setattr(completion, "WAIT_S", 0.3)
    started = time.monotonic()
    assert completed("problems", "list", "--app", "") == []
    assert time.monotonic() - started < 2.0
