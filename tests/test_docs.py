"""The reference pages say what the code says; README names only commands that exist."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from docs.generate import HERE, PAGES
from ragtide.stream.cli import main

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("page", PAGES)
def test_reference_is_up_to_date(page: str) -> None:
    assert (HERE / page).read_text() == PAGES[page](), "run: make docs"


@pytest.mark.parametrize("page", ["README.md", *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))])
def test_pages_name_only_commands_that_exist(page: str) -> None:
    known = set(main.list_commands(click.Context(main)))
    assert set(re.findall(r"`ragtide ([a-z][a-z-]+)", (ROOT / page).read_text())) <= known


def test_readme_shows_the_commands_of_a_first_day() -> None:
    shown = set(re.findall(r"^ragtide ([a-z][a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert shown >= {"check", "migrate", "worker", "jobs", "replay", "dashboards"}


def test_first_screen_of_the_readme_shows_both_commands() -> None:
    first = "\n".join((ROOT / "README.md").read_text().splitlines()[:50])
    assert "make demo" in first
    assert "make test" in first
    assert "Python 3.11" in first
    assert "Java 17" in first
    assert "Maven" in first
    assert re.search(r"!\[[^]]+\]\(docs/demo\.svg\)", first)


def test_the_page_of_benchmarks_has_every_benchmark() -> None:
    names = [file.stem for file in (ROOT / "benchmarks").glob("*.py") if "__main__" in file.read_text()]
    names += [file.parent.name for file in (ROOT / "benchmarks").glob("*/__main__.py")]
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert len(names) > 15
    assert not [name for name in names if f"`benchmarks.{name}`" not in page]


def test_the_page_of_validity_has_the_figures_of_the_reference() -> None:
    page = (ROOT / "docs" / "validity.md").read_text()
    measured = tomllib.loads((ROOT / "docs" / "validity.toml").read_text())
    for id, parts in measured["evaluators"].items():
        cells = [
            f"{auroc:.2f} [{low:.2f}, {high:.2f}] | {shipped:.2f}, {best:.2f}"
            for auroc, low, high, shipped, best in parts.values()
        ]
        assert f"| `{id}` | {' | '.join(cells)} |" in page
    assert all(f"`{id}`" in page for id in measured["not_measured"])


def test_no_page_installs_from_the_index_what_is_not_released_there() -> None:
    """A stranger may have the name there."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    command = re.compile(r"pip install (?:-\S+ )*['\"]?ragtide\b.*")
    assert not [found for page in pages for found in command.findall(page.read_text())]


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
