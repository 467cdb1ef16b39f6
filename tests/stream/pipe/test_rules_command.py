"""`ragtide rules test`: a settings file's rules on past windows, on the real engine."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.evaluators import registry
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from tests.drift.world import World
from tests.infra.fresh_database import reached

SLOW = '[[rules.overrides]]\nmetric = "operations.latency_seconds"\nmax = 2.0\n'


def run(file: Path, *args: str, variables: dict[str, str] | None = None, exit_code: int = 0) -> Result:
    found = CliRunner().invoke(
        main, ["rules", "test", str(file), *args], env={"RAGTIDE_CONFIG": None, **(variables or {})}
    )
    assert found.exit_code == exit_code, found.output
    return found


@pytest.mark.clickhouse
def test_it_tells_what_is_new_and_what_is_gone(database: Database, tmp_path: Path) -> None:
    frames = WindowSettings(out_of_orderness_s=0)
    evaluators = {"operations": registry.load()["operations"]}
    world = World(database, windows=frames, evaluators=evaluators, rules=RuleSettings(min_sample=10, k=1, m=1))
    world.scores(0, [3.0] * 20, key="latency_seconds", evaluator="operations")
    world.advance(60)
    assert world.problems() == []
    file = tmp_path / "new.toml"
    file.write_text(f"[rules]\nmin_sample = 10\nk = 1\nm = 1\n{SLOW}")
    span = ("--from", world.at(0).isoformat(), "--to", world.at(3600).isoformat())
    shown = run(file, *span, variables=reached(database)).output
    assert "1 problem: 1 new, 0 same; 0 gone" in shown
    assert "the mean of operations.latency_seconds is 3 s, above 2 s, on 20 traces" in shown
    told = json.loads(run(file, *span, "--json", variables=reached(database)).output)
    rate, problem = told["problems"]  # one problem that two see
    assert (rate["rule"], problem["rule"]) == ("failure_rate", "mean")
    assert (told["new"], told["same"], told["gone"]) == ([problem["problem_id"]], [], [])
    assert rate["problem_id"] == problem["problem_id"]
    assert told["untried"] == {}
    assert "not tried" not in shown
    assert (problem["openings"], problem["resolved_at"], problem["windows"]) == ([world.at(60).isoformat()], None, 1)
    file.write_text("[rules]\ndisk_limit = 0.5\n")
    shown = run(file, *span, variables=reached(database)).output
    assert "not tried: rules.disk_limit: the past state of disks and brokers is not stored" in shown
    file.write_text("[drift]\nmargin = 2.0\n")
    assert "0 problems: 0 new, 0 same; 0 gone" in run(file, *span, variables=reached(database)).output
    file.write_text(f"[rules]\nmin_sample = 10\nk = 1\nm = 1\n{SLOW}")
    fewer = {**reached(database), "RAGTIDE_RULES__MIN_SAMPLE": "21"}
    assert "0 problems: 0 new, 0 same; 0 gone" in run(file, *span, variables=fewer).output
    assert "before --to" in run(file, "--from", "2298-01-01", variables=reached(database), exit_code=2).output


@pytest.mark.clickhouse
def test_every_section_of_the_file_counts_and_what_the_past_cannot_tell_is_named(
    database: Database, tmp_path: Path
) -> None:
    frames = WindowSettings(out_of_orderness_s=0)
    evaluators = {"operations": registry.load()["operations"]}
    world = World(database, windows=frames, evaluators=evaluators, rules=RuleSettings(min_sample=10, k=1, m=1))
    for minute in range(60):
        world.scores(minute * 60, [3.0] * 10, key="latency_seconds", evaluator="operations")
    world.advance(3600)
    file = tmp_path / "new.toml"
    span = ("--from", world.at(0).isoformat(), "--to", world.at(3600).isoformat(), "--json")
    rules = f"[rules]\nmin_sample = 10\nk = 1\nm = 1\n{SLOW}"

    def tried(more: str, **variables: str) -> dict[str, Any]:
        file.write_text(more + rules)
        found: dict[str, Any] = json.loads(run(file, *span, variables={**reached(database), **variables}).output)
        return found

    def windows(more: str) -> list[int]:
        return [one["windows"] for one in tried(more)["problems"] if one["rule"] == "mean"]

    assert windows("") == [60]
    assert windows("[windows]\nbase_s = 3600\nsizes_s = [86400]\n") == [1]
    assert windows('[evaluators]\ndisabled = ["operations"]\n') == []
    assert windows("[evaluators]\nenabled = ['operations']\n[windows]\nbase_s = 60\n") == [60]
    file.write_text("[windows]\nbase_s = 1800\n" + rules)
    said = run(file, *span, variables=reached(database), exit_code=2).output
    assert (
        "windows.base_s = 1800: no windows of that size are stored; there are those of 60, 3600" in said
    )  # and 86400 after midnight
    same = "[jobs]\nfailing_runs = 5\n[privacy]\nhash_users = true\n"
    assert tried(same, RAGTIDE_PRIVACY__HASH_KEY="a long secret")["untried"] == {}
    untried = tried("[jobs]\nfailing_runs = 9\n[sampling.lanes]\njudge = 0.5\n[windows]\nidle_after_s = 99\n")[
        "untried"
    ]
    assert list(untried) == ["jobs.failing_runs", "windows.idle_after_s", "sampling.lanes"]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("[rules]\nk = 4\nm = 3\n", ":1", "k = 4 of m = 3"),
        ("[rules]\nmin_samples = 4\n", ":2", "did you mean rules.min_sample?"),
        (f'[rules]\n{SLOW}[[rules.overrides]]\nmetric = "operations.nothing"\nmin = 1\n', ":5", "no metric"),
        ("[rules]\nk = = 4\n", ": not valid TOML", "line 2"),
    ],
)
def test_a_rule_that_is_wrong_is_told_with_file_and_line(text: str, place: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    output = run(file, "--from", "2026-03-01", exit_code=2).output
    assert said in output
    assert f"{file}{place}" in output
