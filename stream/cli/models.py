"""`ragwatch models`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import config_option, settings_from

if TYPE_CHECKING:
    from evaluators.inventory import ModelInfo

_WIDTH = 140  # of the table where it goes to a file or a pipe
_SHOWN = 3  # of those who need a model; --json names all
FAILED = 1


@click.group()
def command() -> None:
    """The models that evaluators ask: which there are, whether they are here, and how to bring them here.

    A worker downloads nothing. What is not here is fetched once, from Hugging Face, into its cache on this machine
    (HF_HUB_CACHE); folders and packages need no fetching. docs/models.md tells which settings there are.

    \b
    Examples:
      ragwatch models list
      ragwatch models fetch
    """


@command.command("list", short_help="Name, revision, size, device, who needs it, whether it is here.")
@click.option("--json", "as_json", is_flag=True, help="A list of objects with everything known of each.")
@config_option
def list_models(as_json: bool, config: Path | None) -> None:
    """Every model that the settings mean, and what to do where one is missing. None is loaded.

    \b
    Examples:
      ragwatch models list
      ragwatch models list --json | jq -r '.[] | select(.missing) | .name'
    """
    settings = settings_from(config).settings
    from evaluators import registry
    from evaluators.inventory import inventory

    infos = inventory(registry.load(), settings.evaluators)
    if as_json:
        import json

        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(infos), indent=2, ensure_ascii=False))
    else:
        _table(infos)


@command.command(short_help="Bring models from Hugging Face to this machine.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@config_option
def fetch(names: tuple[str, ...], config: Path | None) -> None:
    """Fetch the models NAME, as `ragwatch models list` has them or as Hugging Face does.

    Without a NAME: all that evaluators which are switched on need and that are not here. With NAMEs: these, in their
    newest revision where settings name none. Only configuration, tokenizer and safetensors come, and a model's own
    code where its settings allow that. What was broken off goes on where it stopped. HF_ENDPOINT, HF_TOKEN and
    HF_HUB_CACHE are heeded. Exit status 1 where one could not be fetched; the others are.

    \b
    Examples:
      ragwatch models fetch
      ragwatch models fetch BAAI/bge-small-en-v1.5
      HF_HUB_CACHE=/models ragwatch models fetch --config production.toml
    """
    settings = settings_from(config).settings
    from evaluators import registry
    from evaluators.errors import RagwatchError
    from evaluators.inventory import inventory, to_fetch
    from stream.cli import EXIT_INTERRUPTED
    from stream.fetching import check_names, fetched

    infos = inventory(registry.load(), settings.evaluators)
    check_names(names, infos)
    failed = 0
    for name in names or to_fetch(infos):
        try:
            folder = fetched(name, settings.evaluators, EXIT_INTERRUPTED)
        except RagwatchError as error:
            said = str(error)
            click.echo(said if name in said else f"{name}: {said}", err=True)
            failed += 1
        else:
            click.echo(f"{name}: {folder}")
    if not (names or to_fetch(infos)):
        click.echo("nothing to fetch")
    sys.exit(FAILED if failed else 0)


def _table(infos: "list[ModelInfo]") -> None:
    from stream.cli.tables import plain_console, table_of

    console = plain_console(_WIDTH)
    table = table_of()
    for column in ("model", "kind", "revision", "MB", "device"):
        table.add_column(column, justify="right" if column == "MB" else "left", overflow="fold")
    table.add_column("needed by", no_wrap=True)
    table.add_column("here", overflow="fold", ratio=1)
    for info in infos:
        name = info.name if info.source == info.name else f"{info.name}\n({info.source})"
        size = "-" if info.size_bytes is None else f"{info.size_bytes / 1e6:,.0f}"
        needed = "\n".join(info.needed_by[:_SHOWN]) or "nobody"
        if len(info.needed_by) > _SHOWN:
            needed += f"\nand {len(info.needed_by) - _SHOWN} more"
        missing = info.missing and info.missing.removeprefix(f"the model {info.name} is not here: ")
        fetched_by = f"ragwatch models fetch {info.name}"
        here = "yes" if not missing else "no" if missing == fetched_by else f"no: {missing}"
        table.add_row(name, info.kind, (info.revision or "-").rpartition("@")[2], size, info.device, needed, here)
    console.print(table)
    if any(info.missing for info in infos):
        console.print("\nragwatch models fetch NAME brings one here; without a NAME, all that evaluators lack.")
