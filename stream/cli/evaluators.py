"""`ragtide evaluators`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli.options import config_option, lanes_named, settings_from
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.evaluators.describe import EvaluatorInfo, MetricInfo, ParamInfo

_WIDTH = 120  # of the table where it goes to a file or a pipe


class TableUnlessCommand(click.Group):
    """`ragtide evaluators ...` means `ragtide evaluators list ...` unless the first word is a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse like click, with `list` inserted before ids and its own options."""
        own = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if args[:1] and args[0] in own else ["list", *args])


@click.group(cls=TableUnlessCommand)
def command() -> None:
    """List the installed evaluators, create one of your own, or learn what one needs.

    Without a subcommand, arguments are those of `list`.

    \b
    Examples:
      ragtide evaluators
      ragtide evaluators groundedness
      ragtide evaluators --json | jq -r '.[] | select(.available | not) | .reason'
      ragtide evaluators new short_answers
    """


@command.command("list", short_help="List evaluators: metrics, lane, and whether each can run here.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of objects with all details.")
@click.option("--lane", "lanes", multiple=True, metavar="LANE[,LANE]", help="Only these lanes.")
@config_option
def list_evaluators(ids: tuple[str, ...], as_json: bool, lanes: tuple[str, ...], config: Path | None) -> None:
    """List every evaluator: what it measures, its lane, and whether it can run here.

    With ids, shows those in full, with parameters and metrics. Loads no model.

    \b
    Examples:
      ragtide evaluators --lane fast,model
      ragtide evaluators groundedness rouge
      ragtide evaluators list --json
    """
    chosen = lanes_named(lanes)
    settings = settings_from(config).settings
    from ragtide.evaluators import registry
    from ragtide.evaluators.describe import describe
    from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
    from ragtide.evaluators.errors import ConfigError
    from ragtide.stream.settings.environment import nearest

    found = describe(
        with_encoder_thresholds(registry.load(settings.evaluators), settings.evaluators), settings.evaluators
    )
    for wanted in ids:
        if wanted not in (names := [info.id for info in found]):
            hint = nearest(wanted, names, listed_by="ragtide evaluators")
            raise ConfigError(f"there is no evaluator {wanted!r}; {hint}")
    shown = [info for info in found if (not ids or info.id in ids) and (not chosen or info.lane in chosen)]
    if as_json:
        import msgspec

        say_json(msgspec.to_builtins(shown))
    elif ids:
        for info in shown:
            say(*_lines(info))
    else:
        _table(shown)


@command.command(short_help="Create the files of a custom evaluator.")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default=True,
    help="Folder for the files. Created if missing.",
)
def new(name: str, directory: Path) -> None:
    """Create an evaluator of your own: NAME.py, its test and its golden file.

    NAME is the evaluator's id and the prefix of its metrics: lower-case letters, digits and underscores. The files
    work at once: their evaluator scores whether an answer is short. Change it to your own. The golden file holds
    traces with the expected result of each, worked out by hand. Existing files are never overwritten.

    ragtide finds an evaluator by an entry point of its installed package. The command prints the lines for
    pyproject.toml. docs/custom-evaluators.md explains each step.

    \b
    Examples:
      ragtide evaluators new short_answers
      ragtide evaluators new short_answers --directory our-evaluators
      cd our-evaluators && python -m pytest
    """
    from ragtide.evaluators import registry
    from ragtide.stream.new_evaluator import write

    for file in write(name, directory, registry.load()):
        say(f"wrote {file}")
    say(
        "Try it with: python -m pytest",
        "ragtide finds it once its package, with these lines in pyproject.toml, is installed beside ragtide:",
        "",
        f'[project.entry-points."{registry.GROUP}"]',
        f'{name} = "{name}"',
    )


@command.command(short_help="Learn how rare the words of an application's contexts are.")
@click.argument("app")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File for the table.")
@click.option("--days", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True, help="How far back.")
@click.option(
    "--limit", type=click.IntRange(1), default=100_000, show_default=True, help="At most so many chunks, the newest."
)
@config_option
def frequencies(app: str, out: Path, days: float, limit: int, config: Path | None) -> None:
    """Count in how many stored chunks of APP each word stands, for the evaluator support.

    The table holds words of the contexts, so only you can read the file. Name it in the settings, and start the workers
    again: the table's version is part of the fingerprint, so new series begin.

    \b
    Examples:
      ragtide evaluators frequencies docs-bot --out frequencies.json
      ragtide evaluators frequencies docs-bot --out frequencies.json --days 7 --limit 20000
    """
    import json
    from datetime import UTC, datetime, timedelta

    from ragtide.evaluators.support.rarity import learn_frequencies
    from ragtide.stream.cli.problems_lookup import open_database
    from ragtide.stream.stored_contexts import load_chunk_texts

    with open_database(config) as (_, database):
        texts = load_chunk_texts(database, app, datetime.now(UTC) - timedelta(days=days), limit)
    found = learn_frequencies(texts)
    out.touch(mode=0o600)
    found.write(out)
    say(
        f"wrote {out}: {len(found.counts):,} words of {found.texts:,} texts, version {found.version}",
        "To use it:",
        "",
        "[evaluators.params.support.frequencies]",
        f"{json.dumps(app)} = {json.dumps(str(out))}",
    )


def _table(infos: "list[EvaluatorInfo]") -> None:
    from ragtide.stream.console import lines_of, plain_console, table_of

    console = plain_console(_WIDTH)
    table = table_of("evaluator", "lane", "domain", "method", "metrics (* primary)")
    table.add_column("runs here", overflow="fold")
    for info in infos:
        metrics = lines_of(f"{metric.key}*" if metric.primary else metric.key for metric in info.metrics)
        table.add_row(info.id, info.lane, info.domain, info.method, metrics, _runs(info))
    console.print(table)


def _runs(info: "EvaluatorInfo") -> str:
    if not info.available:
        return f"no: {info.reason}"
    if info.enabled:
        return "yes"
    from ragtide.evaluators.describe import setting_names

    if not info.configured:
        return f"off until set: {setting_names(info)}"
    return "no: switched off in the settings"


def _lines(info: "EvaluatorInfo") -> list[str]:
    from ragtide.evaluators.describe import describe_budget

    facts = {
        "runs here": _runs(info),
        "version": f"{info.version}, fingerprint {info.fingerprint or 'not known'}",
        "kind": f"domain {info.domain}, method {info.method}, lane {info.lane}",
        "tasks": ", ".join(info.tasks) or "every one",
        "inputs": ", ".join(info.inputs) or "none",
        "also reads": ", ".join(info.also_reads) or "nothing",
        "budget": describe_budget(info.budget),
        "needs": ", ".join(info.needs) or "nothing",
        "standards": ", ".join(info.standards),
    }
    lines = [info.id, f"  {info.description}", *(f"  {name + ':':<11} {said}" for name, said in facts.items())]
    lines += ["  metrics:", *(f"    {_metric(metric)}" for metric in info.metrics)]
    lines += ["  parameters:"] if info.params else []
    lines += [f"    {_param(param)}" for param in info.params]
    return [*lines, ""]


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
