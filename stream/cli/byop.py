"""`ragtide byop`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ragtide.stream.cli import completion
from ragtide.stream.cli.names import check_names
from ragtide.stream.cli.options import FiniteRange, config_option, settings_from
from ragtide.stream.cli.replay_settings import as_variables, set_option
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.stream.api.inputs import Source

_REJECTED = 1
_NO_VERDICT = 2  # such as a wrong key: something must change


@click.group()
def command() -> None:
    """Try prompts of your own (bring your own prompt) before workers run them.

    A prompt is a table [evaluators.judge.byop.NAME] of the settings, and an evaluator NAME of the lane judge.
    docs/judge.md explains them.

    \b
    Examples:
      ragtide byop try polite --file traces.jsonl
      ragtide evaluators polite
    """


@command.command("try", short_help="Judge the traces of a file with a prompt: verdicts, cost, agreement.")
@click.argument("prompt", shell_complete=completion.user_prompts)
@click.option(
    "--file",
    "traces",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Traces, one JSON object per line, as on Kafka (- for standard input).",
)
@click.option(
    "--labels",
    "labels_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="People's labels, one per line, as on rag.labels. Default: the field verdict of the traces.",
)
@click.option(
    "--good-from",
    type=FiniteRange(),
    help="Compare with people's scores, which are good from here on, not with thumbs.",
)
@click.option(
    "--max-usd",
    type=FiniteRange(0, min_open=True),
    help="Send no call once the run has cost so much. Calls in flight are paid for beyond it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: counts, usage, agreement, verdicts.")
@set_option
@config_option
def try_command(
    prompt: str,
    traces: Path,
    labels_file: Path | None,
    good_from: float | None,
    max_usd: float | None,
    as_json: bool,
    changes: tuple[str, ...],
    config: Path | None,
) -> None:
    """Judge every trace of a file with PROMPT, the name of a prompt in the settings, and compare with people's labels.

    Prints a verdict per trace, counts, tokens, the cost, the cost of 1,000 traces and the agreement: kappa beyond
    chance (0 none, 1 full), precision and recall of traces that fail. Needs neither Kafka nor ClickHouse, and stores
    replies in the judge's cache alone. Limits of the settings hold for the run; sampling does not. PROMPT may be in
    evaluators.disabled, so that no worker runs it yet. Exit status 1 means that a record or its field verdict was
    rejected, 2 that the judge failed on every trace.

    \b
    Examples:
      ragtide byop try polite --file traces.jsonl --max-usd 0.50
      ragtide byop try polite --file traces.jsonl --labels labels.jsonl --json
      ragtide byop try refund --file traces.jsonl --set evaluators.judge.byop.refund.file=new.md
    """
    settings = settings_from(config, as_variables(changes)).settings
    prompts = settings.evaluators.judge.byop
    if not prompts:
        from ragtide.evaluators.errors import ConfigError

        raise ConfigError("no prompt is set: add a table [evaluators.judge.byop.NAME] with prompt or file")
    check_names("PROMPT", [prompt], prompts)
    from ragtide.evaluators import registry
    from ragtide.stream.api.inputs import open_source
    from ragtide.stream.api.prompt_trial import PeopleLabels, try_prompt
    from ragtide.stream.cli.byop_render import as_object, lines
    from ragtide.stream.telemetry.logs import configure

    configure(settings.telemetry)
    known = registry.load(settings.evaluators)
    largest = settings.ingest.max_bytes
    labels = PeopleLabels(good_from)
    if labels_file is not None:
        labels.read(open_source(labels_file, largest), largest)
    trial = try_prompt(prompt, _source(traces, largest), settings, known, labels, max_usd)
    if as_json:
        say_json(as_object(trial))
    else:
        say(*lines(trial))
    if trial.verdicts and all(one.status == "failed" for one in trial.verdicts):
        sys.exit(_NO_VERDICT)
    sys.exit(_REJECTED if trial.result.rejected or trial.label_faults else 0)


def _source(traces: Path, largest: int) -> "Source":
    from ragtide.stream.api.inputs import open_source, open_stream

    if str(traces) == "-":
        return open_stream(click.get_binary_stream("stdin"), "standard input", largest)
    return open_source(traces, largest)
