"""`ragtide config`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragtide.stream.cli.options import check_rules, config_option, settings_from
from ragtide.stream.terminal import say, say_json
from ragtide.stream.terminal_text import plain_toml

if TYPE_CHECKING:
    from ragtide.stream.settings.loader import Loaded


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects: name, value, origin, description.")
@click.option("--changed", is_flag=True, help="Only settings that differ from the defaults.")
@config_option
def command(as_json: bool, changed: bool, config: Path | None) -> None:
    """Print the effective settings and the origin of each: a default, a line of the file, or a variable.

    Secrets are masked. Invalid settings end the command with status 2, including evaluator names and parameters, and
    rules that match no metric. Without --json, the output is TOML that can serve as a settings file.

    \b
    Examples:
      ragtide config
      ragtide config --changed
      ragtide config --json | jq '.[] | select(.name == "kafka.topics")'
    """
    loaded = settings_from(config)
    _check_evaluators(loaded)
    check_rules(loaded)
    from ragtide.stream.settings.loader import DEFAULT, MASK, entries

    shown = [entry for entry in entries(loaded) if not changed or entry.origin != DEFAULT]
    if as_json:
        fields = ("name", "value", "origin", "description")
        say_json([{field: getattr(entry, field) for field in fields} for entry in shown])
        return
    # Each section stands once; settings outside of sections come first, as TOML demands.
    sections = ["", *dict.fromkeys(entry.name.rpartition(".")[0] for entry in shown)]
    section = ""
    for entry in sorted(shown, key=lambda entry: sections.index(entry.name.rpartition(".")[0])):
        above, _, name = entry.name.rpartition(".")
        if above != section:
            say(*([""] if section else []), f"[{above}]")
            section = above
            if above == "privacy":
                say(*(f"# {line}" for line in loaded.settings.privacy.in_words))
        line = f"{name} = {_toml(entry.value)}" if entry.value is not None else f"# {name} is not set"
        line = f"# {line}" if entry.value == MASK else line
        say(f"{line:<50} # {entry.origin}")
    if not shown:
        say("# every setting has its default")


def _check_evaluators(loaded: "Loaded") -> None:
    """Raise `ConfigError` with the position of a bad setting; evaluators are loaded only if settings name one."""
    settings = loaded.settings.evaluators
    given = [name for name in ("enabled", "disabled", "params", "tasks") if getattr(settings, name)]
    if not given and not settings.judge.byop:
        return
    from ragtide.evaluators import registry
    from ragtide.evaluators.errors import ConfigError
    from ragtide.evaluators.plan import check_settings
    from ragtide.evaluators.settings import EvaluatorSettings

    known = registry.load(settings)
    for name in given:
        try:
            check_settings(known, EvaluatorSettings(**{name: getattr(settings, name)}))
        except ConfigError as error:
            raise ConfigError(f"{loaded.origins[f'evaluators.{name}']}: {error}") from None


def _toml(value: Any) -> str:
    """A TOML value on one line."""
    if isinstance(value, dict):
        items = (f"{plain_toml(str(key))} = {_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(items)} }}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return plain_toml(value) if isinstance(value, str) else json.dumps(value)
