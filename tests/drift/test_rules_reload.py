"""Rules are taken from the settings file as it is now, and a wrong file changes nothing."""

import logging
import os
from datetime import datetime
from pathlib import Path

import pytest

from ragtide.drift.settings import RuleSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.job_schedule import cycle_job
from ragtide.stream.jobs_process import JobRunner
from ragtide.stream.rules_reload import RulesFile
from ragtide.stream.settings.loader import load
from ragtide.stream.telemetry.health import JobHealth
from ragtide.stream.telemetry.registry import Telemetry
from tests.drift.test_jobs_process import Leads
from tests.drift.world import EVALUATORS, World


def rules_file(file: Path, text: str, environ: dict[str, str] | None = None) -> RulesFile:
    file.write_text(text)
    return RulesFile(load(file, environ or {}), EVALUATORS, environ or {})


def test_a_changed_file_changes_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    rules = rules_file(file, "[rules]\nmin_sample = 30\n")
    assert rules.current() is rules.current()
    file.write_text("[rules]\nmin_sample = 7\n")
    assert rules.current().min_sample == 7


def test_a_file_that_takes_its_place_counts_too(tmp_path: Path) -> None:
    """As Kubernetes swaps a mounted file, and editors save."""
    file, other = tmp_path / "ragtide.toml", tmp_path / "new"
    rules = rules_file(file, "[rules]\nmin_sample = 30\n")
    other.write_text("[rules]\nmin_sample = 31\n")
    os.utime(other, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    other.rename(file)
    assert rules.current().min_sample == 31


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[rules]\nmin_samples = 7\n", "min_samples"),
        ("[rules\n", "not valid TOML"),
        ('[[rules.overrides]]\nmetric = "quality.nothing"\nmin = 0.5\n', "quality.nothing"),
        (None, "no such settings file"),
    ],
)
def test_a_wrong_file_leaves_the_rules_and_says_so_once(
    tmp_path: Path, text: str | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ragtide.toml"
    rules = rules_file(file, "[rules]\nmin_sample = 30\n")
    before = rules.current()
    file.unlink() if text is None else file.write_text(text)
    with caplog.at_level(logging.ERROR):
        assert [rules.current(), rules.current()] == [before, before]
    [line] = caplog.messages
    assert said in line
    file.write_text("[rules]\nmin_sample = 8\n")
    assert rules.current().min_sample == 8


def test_variables_win_over_the_changed_file_too(tmp_path: Path) -> None:
    file = tmp_path / "ragtide.toml"
    rules = rules_file(file, "[rules]\nk = 2\n", {"RAGTIDE_RULES__MIN_SAMPLE": "5"})
    file.write_text("[rules]\nk = 1\nmin_sample = 9\n")
    assert (rules.current().k, rules.current().min_sample) == (1, 5)


def test_a_rule_that_fits_no_metric_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"quality\.nothing"):
        rules_file(tmp_path / "ragtide.toml", '[[rules.overrides]]\nmetric = "quality.nothing"\nmin = 0.5\n')


@pytest.mark.clickhouse
def test_the_next_look_judges_by_the_new_rules(database: Database) -> None:
    world = World(database, rules=RuleSettings(min_sample=10, k=1, m=1))
    telemetry = Telemetry()
    leads = Leads(world.term)
    health = JobHealth(lambda: 0.0, 100, leads.trouble)
    settings = load(None, {}).settings.model_copy(update={"windows": world.windows})
    clock: list[datetime] = []
    jobs = JobRunner(settings, lambda: world.rules, EVALUATORS, database, leads, telemetry, health, lambda: clock[-1])

    def look(second: float) -> None:
        world.progress(second)
        clock.append(world.at(second))
        assert jobs.run("watch", cycle_job(telemetry))

    world.scores(0, [0.2] * 8)
    look(60)
    assert world.open() == []
    world.rules = RuleSettings(min_sample=5, k=1, m=1)
    world.scores(60, [0.2] * 8)
    look(120)
    assert [problem.metric for problem in world.open()] == ["quality.good"]
