"""Text of strangers does nothing to a terminal, and JSON and TOML with it parse to the same values."""

import ast
import io
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.stream.console import PlainConsole, PlainTable, lines_of
from ragtide.stream.terminal import say, say_json
from ragtide.stream.terminal_text import plain, plain_json, plain_toml

HOSTILE = "a\nb\rc\x1b[2J\x1b]0;owned\x07\x85\u2028\u2029\u202e\u2066\u200b\ufeff\x7f\x9b31m\U000e0001é東"
ROOT = Path(__file__).parents[3]
# Where printing is made safe; the demo draws on the console that it is given.
PRINTERS = {"stream/terminal.py", "stream/console.py", "stream/telemetry/log_records.py"}
RAW = {
    *(
        "click.echo",
        "click.secho",
        "click.confirm",
        "click.prompt",
        "click.echo_via_pager",
        "print",
        "Table",
        "Console",
    ),
    *("rich.print", "sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write", "json.dump"),
}
DRAWN_BY_THE_DEMO = {"Table"}


@given(st.text())
def test_plain_text_is_printable_and_visible_characters_stay(text: str) -> None:
    assert plain(text).isprintable()
    if text.isprintable():
        assert plain(text) == text


@given(st.recursive(st.none() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_json_parses_to_the_same_value(value: object) -> None:
    text = plain_json(value, indent=2)
    assert json.loads(text) == value
    assert text.replace("\n", "").isprintable()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_toml_parses_to_the_same_text(text: str) -> None:
    assert tomllib.loads(f"{plain_toml(text)} = {plain_toml(text)}") == {text: text}
    assert plain_toml(text).isprintable()


def test_a_line_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE, HOSTILE, mark="ok ", colour="green")
    say_json([HOSTILE])
    shown = capsys.readouterr().out
    assert shown.count("\n") == 2 + 3
    assert shown.replace("\n", "").isprintable()


def test_a_cell_is_one_line_unless_it_is_made_of_several() -> None:
    out = io.StringIO()
    console = PlainConsole(file=out, width=1000)
    table = PlainTable()
    table.add_column("x")
    table.add_row(HOSTILE)
    table.add_row(lines_of([HOSTILE, "[bold]second[/bold]"]))
    console.print(table)
    console.print(HOSTILE)
    assert len(out.getvalue().split("\n")) == 6
    assert out.getvalue().replace("\n", "").isprintable()
    assert "[bold]second[/bold]" in out.getvalue()


@pytest.mark.parametrize("file", sorted((ROOT / "stream").rglob("*.py")), ids=lambda file: str(file.relative_to(ROOT)))
def test_who_prints_does_so_through_what_makes_it_safe(file: Path) -> None:
    name = str(file.relative_to(ROOT))
    if name in PRINTERS:
        return
    found = [
        f"line {node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in RAW
    ]
    if name.startswith("stream/demo/"):
        found = [call for call in found if call.rpartition(" ")[2] not in DRAWN_BY_THE_DEMO]
    assert found == [], "print through ragtide.stream.terminal, or draw through ragtide.stream.console"
