"""Tables, bars and screens in the terminal: untrusted text can neither control it nor forge a line.

See `ragtide.stream.terminal`, which prints lines.
"""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ragtide.stream.terminal_text import plain


class PlainConsole(Console):
    """Prints each text as one line, as it is: without markup or highlights, control characters escaped."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich does, but for texts."""
        super().print(*(plain(one) if isinstance(one, str) else one for one in objects), **options)


class PlainTable(Table):
    """A table without lines whose cells are texts of one line each; `lines_of` makes a cell of several."""

    def __init__(self, **options: Any) -> None:
        super().__init__(box=None, header_style="bold", pad_edge=False, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """As rich does, but for texts."""
        super().add_row(*(plain_text(one) if isinstance(one, str) else one for one in cells), **options)


def plain_console(width: int = 1000) -> PlainConsole:
    """A console for standard output; where that is a file or a pipe, a line has at most `width` characters."""
    console = PlainConsole()
    if not console.is_terminal:
        console.width = width
    return console


def table_of(*columns: str) -> PlainTable:
    """A table; these are its first columns, on the left and never folded."""
    table = PlainTable()
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def plain_text(text: str, style: str = "") -> Text:
    """A text of one line for rich to draw."""
    return Text(plain(text), style=style)


def lines_of(lines: Iterable[str]) -> Text:
    """A cell of several lines."""
    return Text("\n".join(map(plain, lines)))
