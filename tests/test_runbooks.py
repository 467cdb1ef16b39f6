"""Runbooks: one page per kind of problem, with queries that run and names that exist."""

import re
from pathlib import Path
from typing import get_args

import click
import pytest

from ragtide.dashboards.alerting import alerting
from ragtide.dashboards.alerting_settings import HealthRule
from ragtide.drift.problems.kinds import KINDS, Kind
from ragtide.drift.rule_settings import AppRules
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.settings.environment import leaves
from ragtide.stream.settings.loader import Settings
from tests.dashboards.sample_rows import APP, ordinary, problems

RUNBOOKS = Path(__file__).parents[1] / "docs" / "runbooks"
PAGES = {page.stem: page.read_text() for page in RUNBOOKS.glob("*.md") if page.stem not in ("README", "pipeline")}
PIPELINE = (RUNBOOKS / "pipeline.md").read_text()
HEADINGS = ["Look here first", "Likely causes", "Stop it", "Tune it"]
SAMPLES = {
    "app": APP,
    "environment": "prod",
    "metric": "groundedness.groundedness",
    "evaluator": "groundedness",
}


def test_every_kind_has_a_page_and_every_page_a_kind() -> None:
    assert set(PAGES) == set(KINDS) == set(get_args(Kind))


def test_the_index_names_every_page_once() -> None:
    linked = re.findall(r"\[`(\w+)`\]\((\w+)\.md\)", (RUNBOOKS / "README.md").read_text())
    assert sorted(linked) == sorted((kind, kind) for kind in PAGES)


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_says_the_meaning_then_what_to_do_on_one_screen(kind: str) -> None:
    lines = PAGES[kind].splitlines()
    assert lines[0].startswith(f"# {kind}: ")
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == HEADINGS
    assert 25 <= len(lines) <= 45
    assert "ragtide problems show ID" in PAGES[kind]
    assert "```sql" in PAGES[kind]


def test_every_rule_about_ragtide_itself_is_on_the_page_that_it_links_to() -> None:
    rules = {
        rule.name: rule for group in alerting({}).groups for rule in group.rules if rule.name in get_args(HealthRule)
    }
    assert re.findall(r"^## ([a-z-]+): ", PIPELINE, re.MULTILINE) == list(rules) == list(get_args(HealthRule))
    assert {rule.annotations["runbook_url"] for rule in rules.values()} == {"docs/runbooks/pipeline.md"}
    assert "(pipeline.md)" in (RUNBOOKS / "README.md").read_text()


@pytest.mark.parametrize("kind", [*PAGES, "pipeline"])
def test_settings_and_commands_of_a_page_exist(kind: str) -> None:
    page = {**PAGES, "pipeline": PIPELINE}[kind]
    valid = {".".join(path) for path, _ in leaves(Settings)} | {f"rules.{name}" for name in AppRules.model_fields}
    sections = {name.partition(".")[0] for name in valid}
    named = set(re.findall(r"`([a-z]+\.[a-z_]+)\b[^`]*`", page))
    assert {name for name in named if name.partition(".")[0] in sections} <= valid
    for command, below in re.findall(r"`ragtide ([a-z-]+)(?: ([a-z-]+)\b)?", page):
        found = main.get_command(context := click.Context(main), command)
        assert found is not None, command
        if isinstance(found, click.Group) and below:
            assert below in found.list_commands(context)


@pytest.mark.clickhouse
def test_every_query_runs(database: Database) -> None:
    database.insert("problem_events", list(problems()))
    database.insert("windows", [row for row in ordinary() if row.metric == SAMPLES["metric"]])
    for kind, page in {**PAGES, "pipeline": PIPELINE}.items():
        for query in re.findall(r"```sql\n(.*?)```", page, re.DOTALL):
            used = set(re.findall(r"\{(\w+):String\}", query))
            try:
                database.rows(query, {name: SAMPLES[name] for name in used} or None)
            except ConfigError as error:
                raise AssertionError(f"{kind}.md: {error}") from error
