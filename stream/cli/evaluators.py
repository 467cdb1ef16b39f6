"""`ragwatch evaluators`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from stream.cli.options import config_option, settings_from, split

if TYPE_CHECKING:
    from evaluators.describe import EvaluatorInfo, MetricInfo


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--json", "as_json", is_flag=True, help="A list of objects with everything known of each.")
@click.option("--lane", "lanes", multiple=True, metavar="LANE[,LANE]", help="Only these lanes.")
@config_option
def command(ids: tuple[str, ...], as_json: bool, lanes: tuple[str, ...], config: Path | None) -> None:
    """Every evaluator: what it measures, in which lane it runs, and whether it can run here.

    With ids: those in full, with parameters and metrics. No model is loaded.

    \b
    Examples:
      ragwatch evaluators
      ragwatch evaluators groundedness
      ragwatch evaluators --json | jq -r '.[] | select(.available | not) | .reason'
    """
    settings = settings_from(config).settings
    from evaluators import registry
    from evaluators.describe import describe
    from evaluators.errors import ConfigError
    from stream.setting_names import nearest

    found = describe(registry.load(), settings.evaluators)
    for wanted in ids:
        if wanted not in (names := [info.id for info in found]):
            raise ConfigError(f"there is no evaluator {wanted!r}; {nearest(wanted, names)}")
    chosen = split(lanes)
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


def _table(infos: "list[EvaluatorInfo]") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("evaluator", no_wrap=True)
    for column in ("lane", "domain", "metrics (* primary)", "runs here"):
        table.add_column(column, overflow="fold")
    for info in infos:
        metrics = "\n".join(f"{metric.key}*" if metric.primary else metric.key for metric in info.metrics)
        runs = (
            ("yes" if info.enabled else "no: switched off in the settings") if info.available else f"no: {info.reason}"
        )
        table.add_row(info.id, info.lane, info.domain, info.method, metrics, runs)
    Console(highlight=False, markup=False).print(table)


def _told(info: "EvaluatorInfo") -> str:
    lines = [f"{info.id} (version {info.version}, lane {info.lane}, fingerprint {info.fingerprint or 'not known'})"]
    lines += [f"  {info.description}", f"  domain {info.domain}, method {info.method}"]
    lines += [f"  tasks: {', '.join(info.tasks) or 'every one'}", f"  inputs: {', '.join(info.inputs) or 'none'}"]
    lines += [f"  also reads: {', '.join(info.also_reads)}"] if info.also_reads else []
    lines += [f"  standards: {', '.join(info.standards)}"]
    lines += [] if info.available else [f"  cannot run: {info.reason}"]
    lines += ["  metrics:", *(f"    {_metric(metric)}" for metric in info.metrics)]
    if info.params:
        lines += ["  parameters:"]
        lines += [
            f"    {param.name} = {param.value} (default {param.default}): {param.description}" for param in info.params
        ]
    return "\n".join([*lines, ""])


def _metric(metric: "MetricInfo") -> str:
    low, high = ("∞" if end is None else f"{end:g}" for end in metric.range)
    threshold = "" if metric.threshold is None else f", threshold {metric.threshold:g}"
    primary = ", primary" if metric.primary else ""
    return f"{metric.key} [{low}, {high}], {metric.better} is better{threshold}, rule {metric.rule}{primary}"
