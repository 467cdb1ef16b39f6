"""`ragwatch config`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stream.cli.options import check_rules, config_option, settings_from

if TYPE_CHECKING:
    from stream.settings import Loaded


@click.command()
@click.option("--json", "as_json", is_flag=True, help="A list of objects: name, value, origin, description.")
@click.option("--changed", is_flag=True, help="Only what differs from the defaults.")
@config_option
def command(as_json: bool, changed: bool, config: Path | None) -> None:
    """Print the effective settings, and where each came from: a default, a line of the file, or a variable.

    Secrets are masked. Wrong settings end it with status 2: also names and parameters of evaluators, and rules that fit
    no metric. Without --json the output is TOML, ready to be a settings file of your own.

    \b
    Examples:
      ragwatch config
      ragwatch config --changed
      ragwatch config --json | jq '.[] | select(.name == "kafka.topics")'
    """
    loaded = settings_from(config)
    _check_evaluators(loaded)
    check_rules(loaded)
    from stream.settings import DEFAULT, MASK, entries

    shown = [entry for entry in entries(loaded) if not changed or entry.origin != DEFAULT]
    if as_json:
        fields = ("name", "value", "origin", "description")
        click.echo(json.dumps([{field: getattr(entry, field) for field in fields} for entry in shown], indent=2))
        return
    sections = list(dict.fromkeys(entry.name.rpartition(".")[0] for entry in shown))
    section = ""
    for entry in sorted(shown, key=lambda entry: sections.index(entry.name.rpartition(".")[0])):  # each stands once
        above, _, name = entry.name.rpartition(".")
        if above != section:
            click.echo(f"{chr(10) if section else ''}[{above}]")
            section = above
        line = f"{name} = {_toml(entry.value)}" if entry.value is not None else f"# {name} is not set"
        line = f"# {line}" if entry.value == MASK else line
        click.echo(f"{line:<50} # {entry.origin}")
    if not shown:
        click.echo("# every setting has its default")


def _check_evaluators(loaded: "Loaded") -> None:
    """Raises `ConfigError` that says where it stands; evaluators are loaded only where settings name one."""
    settings = loaded.settings.evaluators
    given = [name for name in ("enabled", "disabled", "params", "tasks") if getattr(settings, name)]
    if not given:
        return
    from evaluators import registry
    from evaluators.errors import ConfigError
    from evaluators.plan import check_settings
    from evaluators.settings import EvaluatorSettings

    known = registry.load()
    for name in given:
        try:
            check_settings(known, EvaluatorSettings(**{name: getattr(settings, name)}))
        except ConfigError as error:
            raise ConfigError(f"{loaded.origins[f'evaluators.{name}']}: {error}") from None


def _toml(value: Any) -> str:
    """A TOML value on one line."""
    if isinstance(value, dict):
        items = (f"{json.dumps(str(key))} = {_toml(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(items)} }}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)
