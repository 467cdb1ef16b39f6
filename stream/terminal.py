"""Output of commands: untrusted text can neither control the terminal nor forge a line.

Every command prints through this module, or through `ragtide.stream.console`. A test finds exceptions.
"""

from collections.abc import Callable
from typing import Any

import click

from ragtide.stream.terminal_text import plain, plain_json


def say(*lines: object, mark: str = "", colour: str | None = None, err: bool = False) -> None:
    """Print each of `lines` on a line of its own: line breaks and control characters within one are escaped.

    `mark` stands before the first one, in `colour`.
    """
    texts = [plain(str(line)) for line in lines]
    if mark:
        texts[0] = click.style(plain(mark), fg=colour) + texts[0]
    click.echo("\n".join(texts), err=err)


def say_json(value: Any, default: Callable[[Any], Any] | None = None) -> None:
    """Print `value` as indented JSON, with escapes for all that cannot be seen."""
    click.echo(plain_json(value, indent=2, default=default))


def confirm(question: str) -> None:
    """Ask on standard error; `click.Abort` where the answer is no."""
    click.confirm(plain(question), abort=True, err=True)
