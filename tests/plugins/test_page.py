"""docs/custom-evaluators.md, followed word by word: files are written, commands run, and say what the page says.

With ragtide installed from its wheel, in a folder where packages of the user have the names of ours.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ragtide.sinks.clickhouse.database import Database
from tests.infra.fresh_database import reached
from tests.plugins.installing import ROOT, of_a_wheel, shell

PAGE = ROOT / "docs" / "custom-evaluators.md"
RULES_HOLD = """
import os
from ragtide.drift.rules.resolve import check_settings
from ragtide.evaluators import registry
from ragtide.stream.settings.loader import load
check_settings(load(None, os.environ).settings.rules, registry.load())
"""
OWN_PACKAGES = ("evaluators", "stream")
OWN = 'from ragtide import {name} as theirs\n\nprint(__name__, "is mine, the other is", theirs.__name__)\n'
BLOCK = re.compile(r"^```(\w*) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
SECONDS = re.compile(r"in \d+\.\d+s")


class Block(NamedTuple):
    """A fenced block: its language, the file that it is (none: ""), its text."""

    language: str
    file: str
    text: str


def blocks() -> Iterator[Block]:
    yield from (Block(*found) for found in BLOCK.findall(PAGE.read_text()))


@pytest.fixture
def variables(tmp_path: Path, database: Database) -> dict[str, str]:
    return of_a_wheel(tmp_path) | reached(database)


@pytest.mark.clickhouse
def test_whoever_follows_the_page_sees_what_it_shows(
    tmp_path: Path, variables: dict[str, str], database: Database
) -> None:
    folder = tmp_path / "work"
    for name in OWN_PACKAGES:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(OWN.format(name=name))
    for block in blocks():
        if block.file:
            (folder / block.file).write_text(block.text)
        elif block.language == "sql":
            query, shown = block.text.split(";\n")
            rows = [" ".join(map(str, row.values())).rstrip() for row in database.rows(query)]
            assert rows == [line.removeprefix("-- ") for line in shown.splitlines()]
        else:
            for command, shown in COMMAND.findall(block.text):
                done = shell(command, folder, variables)
                assert SECONDS.sub("", done.stdout) == SECONDS.sub("", shown), f"{command}\n{done.stdout}{done.stderr}"
    for name in OWN_PACKAGES:
        told = shell(f"python -c 'import {name}'", folder, variables)
        assert told.stdout == f"{name} is mine, the other is ragtide.{name}\n", told.stderr
    holds = shell(f"python -c '{RULES_HOLD}'", folder, variables)
    assert holds.returncode == 0, holds.stderr
    assert shell("ragtide dashboards build --out drawn", folder, variables).returncode == 0
    assert any("promises" in file.read_text() for file in (folder / "drawn").iterdir())


def test_every_block_is_a_file_a_query_or_commands() -> None:
    found = list(blocks())
    assert len(found) >= 10
    for block in found:
        commands = block.language == "console" and block.text.startswith("$ ")
        assert block.file or block.language == "sql" or commands, block
