"""From the scripted judge to problem, insight and table: a judge that shifts, and one that likes Markdown."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.checks import CheckContext
from ragtide.drift.checks.judge_shift import JudgeShifts
from ragtide.drift.checks.run import run_check
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.judge_forms import judge_forms
from ragtide.drift.leadership import elect
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import DriftSettings, JobSettings, RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.judge_canaries import CanaryScorer, load_canaries
from tests.infra.fresh_database import reached
from tests.infra.settings_file import settings_file
from tests.stream.judge.canary_judges import GRADED, known, noisy, settings_of, share_of, steady
from tests.stream.judge.chat_server import ChatServer, Sent, by_rule, chat_server, error

DAY = datetime(2026, 11, 1, tzinfo=UTC)
pytestmark = pytest.mark.clickhouse


def run_days(database: Database, server: ChatServer, days: range, judge: Callable[[Sent], Any]) -> list[str]:
    """A run each day, and the check after it; the events that followed."""
    settings = settings_of(server)
    server.otherwise = by_rule(judge)
    term = elect(database, "leader", sleep=lambda s: None)
    context = CheckContext(
        database, known(settings), RuleSettings(update_every_s=1e6), WindowSettings(), JobSettings(), term
    )
    events = []
    for number in days:
        CanaryScorer(settings, database, load_canaries(settings), known(settings)).run(DAY + timedelta(days=number))
        found = run_check(JudgeShifts(), context, DAY + timedelta(days=number, hours=1))
        events += [f"{number} {one.event}" for one in found.events]
    return events


def test_a_judge_that_becomes_stricter_is_a_problem_until_it_is_as_before(database: Database) -> None:
    with chat_server(error(500)) as server:
        assert run_days(database, server, range(8), steady(0.8)) == []
        assert run_days(database, server, range(8, 11), steady(0.4)) in (["8 opened"], ["9 opened"])
        [problem] = load_problems(database, states=("open",))
        assert problem.metric == f"{GRADED}.passes"
        assert f"Judge {GRADED} (endpoint small) scores the same traces " in problem.description
        assert " lower (" in problem.description
        assert run_days(database, server, range(11, 15), steady(0.8)) == ["13 resolved"]


def test_a_judge_that_answers_by_chance_now_and_then_is_none(database: Database) -> None:
    with chat_server(error(500)) as server:
        assert run_days(database, server, range(15), noisy(seed=4)) == []


def test_a_judge_that_likes_markdown_is_an_insight(database: Database) -> None:
    def likes_markdown(sent: Sent) -> Any:
        return {"verdict": "**" in sent.user or share_of(sent) < 0.3}

    with chat_server(by_rule(likes_markdown)) as server:
        settings = settings_of(server, {"forms": True})
        for number in range(3):
            CanaryScorer(settings, database, load_canaries(settings), known(settings)).run(DAY + timedelta(days=number))
        data = PeriodData(
            database, known(settings), WindowSettings(), JobSettings(), DAY + timedelta(days=3), DriftSettings()
        )
        [one] = judge_forms(data)
    assert one.figures["form"] == "markdown"
    assert one.figures["effect"] > 0.4
    assert one.figures["canaries"] == 24


@pytest.fixture
def ragtide(database: Database, tmp_path: Path) -> Callable[..., Result]:
    def call(server: ChatServer, *arguments: str) -> Result:
        prices = {"input_usd_per_million": 10, "output_usd_per_million": 0}
        sections: dict[str, dict[str, Any]] = {
            "evaluators": {"enabled": [GRADED]},
            "evaluators.judge.endpoints.small": {"url": server.url, "model": "m", "retries": 0, **prices},
            f"evaluators.judge.byop.{GRADED}": {"prompt": "Does {answer} answer {question}?"},
        }
        file = tmp_path / "r.toml"
        file.write_text(settings_file(sections))
        return CliRunner().invoke(main, ["judge", "canaries", "--config", str(file), *arguments], env=reached(database))

    return call


def test_the_table_is_free_and_run_scores_once_more(ragtide: Callable[..., Result]) -> None:
    with chat_server(by_rule(steady())) as server:
        empty = ragtide(server)
        assert (empty.exit_code, len(server.sent)) == (0, 0), empty.output
        assert "no judge scored all canaries yet" in empty.output
        ran = ragtide(server, "--run")
        assert ran.exit_code == 0, ran.output
        counts = "40 scored, 0 failed, 0 not applicable\n"
        assert counts in ran.stderr, "24 canaries, and two thirds of them in a form that it sees"
        assert "judge small: " in ran.stderr
        sent = len(server.sent)
        shown, table = ragtide(server, "--json"), ragtide(server)
        assert len(server.sent) == sent
    [one] = json.loads(shown.stdout)
    assert (one["metric"], one["scored"], one["failed"]) == (f"{GRADED}.passes", 24, 0)
    assert one["not_applicable"] == 0
    assert "n/a" in table.stdout
    assert (one["reference_runs"], one["later_runs"], one["shift"]) == (1, 0, None)


def test_money_of_a_run_can_be_limited(ragtide: Callable[..., Result]) -> None:
    with chat_server(by_rule(steady())) as server:
        ran = ragtide(server, "--run", "--max-usd", "0.05")
        assert ran.exit_code == 0, ran.output
        assert "limits or the endpoint left some out" in ran.stderr
        assert len(server.sent) <= 5 + 16, "calls in flight are paid for beyond it"
        assert ragtide(server, "--max-usd", "1").exit_code == 2
