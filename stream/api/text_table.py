"""Tables of texts for people: plain lines in a terminal, HTML in a notebook. Untrusted text is escaped in both."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Literal

from ragtide.stream.console import PlainConsole, PlainTable
from ragtide.stream.terminal_text import plain

_WIDTH = 220  # characters of a line that is not printed to a terminal
_STYLE = "text-align: {}; white-space: nowrap; padding: 0.2em 0.6em"


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns with their cells. `texts` are the places of columns of texts; the others hold numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: Collection[int] = (0,)

    def for_terminal(self) -> PlainTable:
        """Make a table that rich prints."""
        table = PlainTable()
        for at, name in enumerate(self.columns):
            table.add_column(name, justify=self._justify(at), no_wrap=at < len(self.columns) - 1, overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table

    def to_text(self) -> str:
        """Return plain lines."""
        written = StringIO()
        PlainConsole(file=written, width=_WIDTH, color_system=None, force_jupyter=False).print(self.for_terminal())
        return "\n".join(line.rstrip() for line in written.getvalue().splitlines())

    def to_html(self) -> str:
        """Return a table element."""
        head = "".join(f'<th style="{self._style(at)}">{_html(name)}</th>' for at, name in enumerate(self.columns))
        rows = (
            "".join(f'<td style="{self._style(at)}">{_html(cell)}</td>' for at, cell in enumerate(row))
            for row in self.rows
        )
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _justify(self, at: int) -> Literal["left", "right"]:
        return "left" if at in self.texts else "right"

    def _style(self, at: int) -> str:
        return _STYLE.format(self._justify(at))


def lines_to_html(lines: Sequence[str]) -> str:
    """Return paragraphs."""
    return "".join(f"<p>{_html(line)}</p>" for line in lines)


def _html(text: str) -> str:
    return escape(plain(text))


def number(value: float | None, sign: str = "") -> str:
    """Write a figure with four digits; `-` for none."""
    return "-" if value is None else f"{value:{sign}.4g}"
