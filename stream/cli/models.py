"""`ragtide models`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.evaluators.inventory import ModelInfo

_WIDTH = 140  # of the table where it goes to a file or a pipe
_SHOWN = 3  # of those who need a model; --json names all
FAILED = 1


@click.group()
def command() -> None:
    """List the models that evaluators use, and download missing ones.

    Workers download nothing. Download each model once from Hugging Face into the cache of this machine (HF_HUB_CACHE).
    Folders and packages need no download. docs/models.md explains the settings.

    \b
    Examples:
      ragtide models list
      ragtide models fetch
    """


@command.command("list", short_help="List models: revision, size, device, evaluators, and whether they are here.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects with all details.")
@config_option
def list_models(as_json: bool, config: Path | None) -> None:
    """List every model in the settings, and what to do if one is missing. Loads none.

    \b
    Examples:
      ragtide models list
      ragtide models list --json | jq -r '.[] | select(.missing) | .name'
    """
    settings = settings_from(config).settings
    from ragtide.evaluators import registry
    from ragtide.evaluators.inventory import inventory

    infos = inventory(registry.load(settings.evaluators), settings.evaluators)
    if as_json:
        import msgspec

        say_json(msgspec.to_builtins(infos))
    else:
        _table(infos)


@command.command(short_help="Download models from Hugging Face to this machine.")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@config_option
def fetch(names: tuple[str, ...], config: Path | None) -> None:
    """Download the models NAME, as named by `ragtide models list` or by Hugging Face.

    Without NAME, downloads all missing models that enabled evaluators need. A NAME without a revision in the settings
    gets its newest one. Only configuration, tokenizer and safetensors files are downloaded, and the model's code if
    its settings allow it. An interrupted download resumes. Uses HF_ENDPOINT, HF_TOKEN and HF_HUB_CACHE. Exit status 1
    means that a model could not be downloaded; the others were.

    \b
    Examples:
      ragtide models fetch
      ragtide models fetch BAAI/bge-small-en-v1.5
      HF_HUB_CACHE=/models ragtide models fetch --config production.toml
    """
    settings = settings_from(config).settings
    from ragtide.evaluators import registry
    from ragtide.evaluators.errors import RagtideError
    from ragtide.evaluators.inventory import inventory, to_fetch
    from ragtide.stream.cli import EXIT_INTERRUPTED
    from ragtide.stream.model_download import check_names, download_model

    infos = inventory(registry.load(settings.evaluators), settings.evaluators)
    check_names(names, infos)
    failed = 0
    for name in names or to_fetch(infos):
        try:
            folder = download_model(name, settings.evaluators, EXIT_INTERRUPTED)
        except RagtideError as error:
            message = str(error)
            say(message if name in message else f"{name}: {message}", err=True)
            failed += 1
        else:
            say(f"{name}: {folder}")
    if not (names or to_fetch(infos)):
        say("nothing to fetch")
    sys.exit(FAILED if failed else 0)


def _table(infos: "list[ModelInfo]") -> None:
    from ragtide.stream.console import lines_of, plain_console, table_of

    console = plain_console(_WIDTH)
    table = table_of()
    for column in ("model", "kind", "revision", "MB", "device"):
        table.add_column(column, justify="right" if column == "MB" else "left", overflow="fold")
    table.add_column("needed by", no_wrap=True)
    table.add_column("here", overflow="fold", ratio=1)
    for info in infos:
        name = [info.name] if info.source == info.name else [info.name, f"({info.source})"]
        size = "-" if info.size_bytes is None else f"{info.size_bytes / 1e6:,.0f}"
        needed = [*info.needed_by[:_SHOWN]] or ["nobody"]
        if len(info.needed_by) > _SHOWN:
            needed.append(f"and {len(info.needed_by) - _SHOWN} more")
        missing = info.missing and info.missing.removeprefix(f"the model {info.name} is not here: ")
        fetched_by = f"ragtide models fetch {info.name}"
        here = "yes" if not missing else "no" if missing == fetched_by else f"no: {missing}"
        revision = (info.revision or "-").rpartition("@")[2]
        table.add_row(lines_of(name), info.kind, revision, size, info.device, lines_of(needed), here)
    console.print(table)
    if any(info.missing for info in infos):
        console.print()
        console.print("ragtide models fetch NAME brings one here; without a NAME, all that evaluators lack.")
