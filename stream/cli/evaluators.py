"""`ragwatch evaluators`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import config_option, lanes_named, settings_from

if TYPE_CHECKING:
    from evaluators.describe import EvaluatorInfo, MetricInfo, ParamInfo

_WIDTH = 120  # of the table where it goes to a file or a pipe


class TableUnlessCommand(click.Group):
    """`ragwatch evaluators ...` is `ragwatch evaluators list ...` where the first word is no command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, `list` put before ids and its own options."""
        own = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if args[:1] and args[0] in own else ["list", *args])


@click.group(cls=TableUnlessCommand)
def command() -> None:
    """The evaluators that are installed, and how to begin one of your own.

    Ids and options without a command are those of `list`.

    \b
    Examples:
      ragwatch evaluators
      ragwatch evaluators groundedness
      ragwatch evaluators --json | jq -r '.[] | select(.available | not) | .reason'
      ragwatch evaluators new short_answers
    """


@command.command("list", short_help="What each measures, in which lane, whether it can run here.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="A list of objects with everything known of each.")
@click.option("--lane", "lanes", multiple=True, metavar="LANE[,LANE]", help="Only these lanes.")
@config_option
def list_evaluators(ids: tuple[str, ...], as_json: bool, lanes: tuple[str, ...], config: Path | None) -> None:
    """Every evaluator: what it measures, in which lane it runs, and whether it can run here.

    With ids: those in full, with parameters and metrics. No model is loaded.

    \b
    Examples:
      ragwatch evaluators --lane fast,model
      ragwatch evaluators groundedness rouge
      ragwatch evaluators list --json
    """
    chosen = lanes_named(lanes)
    settings = settings_from(config).settings
    from evaluators import registry
    from evaluators.describe import describe
    from evaluators.errors import ConfigError
    from evaluators.suited import suited
    from stream.configuration.names import nearest

    found = describe(suited(registry.load(), settings.evaluators), settings.evaluators)
    for wanted in ids:
        if wanted not in (names := [info.id for info in found]):
            hint = nearest(wanted, names, listed_by="ragwatch evaluators")
            raise ConfigError(f"there is no evaluator {wanted!r}; {hint}")
    shown = [info for info in found if (not ids or info.id in ids) and (not chosen or info.lane in chosen)]
    if as_json:
        import json

        import msgspec

        click.echo(json.dumps(msgspec.to_builtins(shown), indent=2, ensure_ascii=False))
    elif ids:
        for info in shown:
            click.echo(_told(info))
    else:
        _table(shown)


@command.command(short_help="Write the files that one of your own begins with.")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default=True,
    help="Folder for the files, made where it is not there.",
)
def new(name: str, directory: Path) -> None:
    """Begin an evaluator of your own: write NAME.py, its test and its golden file.

    NAME is its id and the first half of its metrics' names: lower-case letters, digits and underscores. The files work
    as they are, with an evaluator that tells whether an answer is short: make it yours. The golden file holds traces
    and what the evaluator must say of each, worked out by hand. Nothing that is there is overwritten.

    ragwatch finds an evaluator by the entry point of the package that it is installed from; the command prints the
    lines for its pyproject.toml. docs/custom-evaluators.md goes through it step by step.

    \b
    Examples:
      ragwatch evaluators new short_answers
      ragwatch evaluators new short_answers --directory our-evaluators
      cd our-evaluators && python -m pytest
    """
    from evaluators import registry
    from stream.new_evaluator import write

    for file in write(name, directory, registry.load()):
        click.echo(f"wrote {file}")
    click.echo(
        "Try it with: python -m pytest\n"
        "ragwatch finds it once its package, with these lines in pyproject.toml, is installed beside ragwatch:\n\n"
        f'[project.entry-points."{registry.GROUP}"]\n{name} = "{name}"'
    )


def _table(infos: "list[EvaluatorInfo]") -> None:
    from stream.cli.tables import plain_console, table_of

    console = plain_console(_WIDTH)
    table = table_of("evaluator", "lane", "domain", "method", "metrics (* primary)")
    table.add_column("runs here", overflow="fold")
    for info in infos:
        metrics = "\n".join(f"{metric.key}*" if metric.primary else metric.key for metric in info.metrics)
        table.add_row(info.id, info.lane, info.domain, info.method, metrics, _runs(info))
    console.print(table)


def _runs(info: "EvaluatorInfo") -> str:
    if not info.available:
        return f"no: {info.reason}"
    return "yes" if info.enabled else "no: switched off in the settings"


def _told(info: "EvaluatorInfo") -> str:
    from evaluators.describe import in_words

    facts = {
        "runs here": _runs(info),
        "version": f"{info.version}, fingerprint {info.fingerprint or 'not known'}",
        "kind": f"domain {info.domain}, method {info.method}, lane {info.lane}",
        "tasks": ", ".join(info.tasks) or "every one",
        "inputs": ", ".join(info.inputs) or "none",
        "also reads": ", ".join(info.also_reads) or "nothing",
        "budget": in_words(info.budget),
        "needs": ", ".join(info.needs) or "nothing",
        "standards": ", ".join(info.standards),
    }
    lines = [info.id, f"  {info.description}", *(f"  {name + ':':<11} {said}" for name, said in facts.items())]
    lines += ["  metrics:", *(f"    {_metric(metric)}" for metric in info.metrics)]
    lines += ["  parameters:"] if info.params else []
    lines += [f"    {_param(param)}" for param in info.params]
    return "\n".join([*lines, ""])


def _metric(metric: "MetricInfo") -> str:
    facts = [f"{metric.better} is better"]
    facts += [] if metric.threshold is None else [f"threshold {metric.threshold:g}"]
    facts += [f"rule {metric.rule}", *(["primary"] if metric.primary else [])]
    unit = f" {metric.unit}" if metric.unit else ""
    return f"{metric.key} {_range(metric.range)}{unit}, {', '.join(facts)}: {metric.description}"


def _param(param: "ParamInfo") -> str:
    valid = f", within {_range(param.range)}" if param.range else ""
    valid += f", of {', '.join(map(str, param.choices))}" if param.choices else ""
    return f"{param.name} = {param.value} (default {param.default}{valid}): {param.description}"


def _range(ends: "tuple[float | None, float | None]") -> str:
    low, high = ends
    return f"[{'-∞' if low is None else f'{low:g}'}, {'∞' if high is None else f'{high:g}'}]"
