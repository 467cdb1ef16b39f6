"""`ragtide evaluate`."""

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from ragtide.stream.cli.options import LANES, config_option, lanes_named, settings_from, split
from ragtide.stream.cli.replay_settings import as_variables, batch_option, set_option
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.stream.api import Result

_REJECTED = 1


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--evaluators",
    multiple=True,
    metavar="ID[,ID]",
    help="Only these evaluators. Default: those of --lane that can run.",
)
@click.option(
    "--lane",
    "lanes",
    multiple=True,
    metavar="LANE[,LANE]",
    help=f"Only evaluators of these lanes ({', '.join(LANES)}); only their models are loaded. Default: fast, and with "
    "--evaluators any.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write scores to this file: one JSON object per trace and evaluator.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: counts, rejected, metrics, unavailable.")
@batch_option
@set_option
@config_option
def command(
    file: Path,
    evaluators: tuple[str, ...],
    lanes: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    by_batch: bool,
    changes: tuple[str, ...],
    config: Path | None,
) -> None:
    """Evaluate the traces of FILE (- for standard input) in this process: one JSON object per line, as on Kafka.

    FILE may be a pipe, and packed with gzip.

    Prints a line per metric: mean or share with its 95 % interval, quantiles, bad scores, coverage and reasons. Needs
    neither Kafka nor ClickHouse, stores nothing, and gives the scores of `ragtide replay --file`. Exit status 1 means
    that a record was rejected; the others are evaluated.

    \b
    Examples:
      ragtide evaluate traces.jsonl
      ragtide evaluate traces.jsonl --lane fast,model --out scores.jsonl
      kafka-console-consumer.sh --topic rag.traces --max-messages 100 ... | ragtide evaluate -
      ragtide evaluate traces.jsonl --evaluators rouge --set evaluators.params.rouge.use_stemmer=true
      ragtide evaluate traces.jsonl --lane judge --batch --set evaluators.judge.cache.path=replies.db
      ragtide evaluate traces.jsonl --json | jq '.metrics[] | select(.metric == "rouge.rouge_l")'
    """
    is_input = str(file) == "-"
    if out is not None and not is_input and out.resolve() == file.resolve():
        raise click.UsageError("--out is FILE itself; choose another file")
    settings = settings_from(config, as_variables(changes)).settings
    names, wanted = split(evaluators), lanes_named(lanes)
    from ragtide.evaluators import registry
    from ragtide.stream.api.evaluation import evaluate_source
    from ragtide.stream.api.inputs import open_source, open_stream
    from ragtide.stream.assembly import restrict
    from ragtide.stream.telemetry.logs import configure

    configure(settings.telemetry)
    known = registry.load(settings.evaluators)
    settings = restrict(settings, names, wanted or (() if names else LANES[:1]), known)
    largest = settings.ingest.max_bytes
    if is_input:
        source = open_stream(click.get_binary_stream("stdin"), "standard input", largest)
    else:
        source = open_source(file, largest)
    with nullcontext() if out is None else out.open("wb") as written:  # if it cannot be written, that is known first
        store = partial(_write, written)
        result = evaluate_source(source, settings, known, by_batch=by_batch, store=store)
    if as_json:
        say_json(_as_object(result))
    else:
        _show(result)
    for line in result.judge_usage:
        say(line, err=True)
    sys.exit(_REJECTED if result.rejected else 0)


def _show(result: "Result") -> None:
    from ragtide.stream.api.result_text import describe, summary_table, without_scores
    from ragtide.stream.console import plain_console

    metrics = result.summary()
    plain_console().print(summary_table(metrics).for_terminal())
    say(*without_scores(metrics), *describe(result))


def _as_object(result: "Result") -> dict[str, Any]:
    import msgspec

    metrics = [msgspec.to_builtins(one) | {"name": one.name, "coverage": one.coverage} for one in result.summary()]
    return {
        "records": len(result.traces) + result.rejected_records + result.replaced,
        "evaluated": len(result.traces),
        "rejected_records": result.rejected_records,
        "replaced": result.replaced,
        "rejected": [one._asdict() for one in result.rejected],
        "metrics": metrics,
        "unavailable": dict(result.unavailable),
        "notes": list(result.notes),
    }


def _write(file: BinaryIO | None, result: "Result") -> None:
    import msgspec

    if file is not None:
        encode = msgspec.json.Encoder().encode
        file.writelines(encode(score) + b"\n" for score in result.scores())
        file.flush()
