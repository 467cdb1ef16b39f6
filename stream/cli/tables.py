"""Tables in the terminal; where they go to a file or a pipe, lines are as long as it takes."""

from rich.console import Console
from rich.table import Table


def plain_console(width: int = 1000) -> Console:
    """Prints texts as they are; a line of a file or a pipe has at most `width` characters."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = width
    return console


def table_of(*columns: str) -> Table:
    """Without lines; these are its first columns, on the left and never folded."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table
