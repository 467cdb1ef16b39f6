"""`ragtide explain-trace`."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ragtide.stream.cli.names import check_names, given
from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say_json

if TYPE_CHECKING:
    from ragtide.stream.ingest.otel import Encoding

_REFUSED = 1
_LARGEST_FILE = 256 << 20
_OF_SEVERAL = ("not_json", "too_big")  # why a file of several batches is no batch
_OF_LINE_END = ("not_otlp", "bad_gzip")  # why a message with a line break after it is no batch
_TRACE_ID = re.compile("[0-9a-f]{32}(:[0-9a-f]{16})?")
Batch = TypeVar("Batch")


@click.command()
@click.argument("file", metavar="FILE|TRACE_ID", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--logs",
    type=click.Path(path_type=Path, allow_dash=True),
    help="OTLP log records of the same traces, which may hold the texts.",
)
@click.option(
    "--encoding",
    type=click.Choice(["otlp", "otlp_proto", "otlp_json"]),
    default="otlp",
    show_default=True,
    help="Encoding of both files; otlp tells protobuf and JSON apart.",
)
@click.option("--trace", "trace_id", metavar="ID", help="Explain this trace only. Default: every trace of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: counts, and every trace with its fields.")
@config_option
def command(
    file: Path,
    logs: Path | None,
    encoding: "Encoding",
    trace_id: str | None,
    as_json: bool,
    config: Path | None,
) -> None:
    """Explain which trace OpenTelemetry spans become: those of FILE (- for standard input), or of TRACE_ID.

    FILE is one OTLP batch, as the Collector's Kafka exporter writes it, or one batch in JSON per line, as its file
    exporter does. Prints every field with its value, span and attribute, then the fields that are not recorded: why,
    and what to switch on in the application. Exit status 1 means that a span cannot be read, that no span belongs to
    an application or an evaluator, or that a trace would be refused; 2, that FILE cannot be read. FILE needs neither
    Kafka nor ClickHouse.

    TRACE_ID has 32 hex digits, and is no file. Its spans are read from kafka.spans_topic, where stage assemble keeps
    them: the whole partition, which may take a minute.

    \b
    Examples:
      ragtide explain-trace spans.json
      kafka-console-consumer.sh --topic otlp_spans --max-messages 1 ... | ragtide explain-trace -
      ragtide explain-trace spans.json --logs logs.json
      ragtide explain-trace 0af7651916cd43dd8448eb211c80319c
      ragtide explain-trace spans.json --json | jq '.traces[].not_recorded[] | select(.hint != "")'
    """
    settings = settings_from(config).settings
    from ragtide.stream.cli.explain_trace_render import Explanation, as_object, show
    from ragtide.stream.ingest.decoding import Limits
    from ragtide.stream.ingest.otel import decode_logs, decode_spans, prompt_rule

    if _TRACE_ID.fullmatch(str(file)) and not file.exists():
        if logs is not None:
            raise click.UsageError("--logs belongs to FILE: the log records of TRACE_ID are with its spans")
        from ragtide.stream.kept_spans import spans_of_trace

        kept, kept_events = spans_of_trace(settings.kafka, str(file).partition(":")[0])
        spans, events = [kept], [kept_events]
    else:
        spans = _batches(file, lambda value: decode_spans(value, encoding))
        events = _batches(logs, lambda value: decode_logs(value, encoding)) if logs is not None else []
    limits = Limits.of(settings.ingest, settings.retention, timely=False)
    explanation = Explanation(spans, events, limits, prompt_rule(settings.otel))
    check_names("--trace", given(trace_id), explanation.trace_ids)
    explanation.explain(trace_id)
    if as_json:
        say_json(as_object(explanation))
    else:
        show(explanation)
    sys.exit(_REFUSED if explanation.has_faults else 0)


def _batches(path: Path, decode: Callable[[bytes], Batch]) -> list[Batch]:
    """The file as one batch; if it is none, each of its lines as one. A file that is neither is a usage error."""
    from ragtide.evaluators.errors import BadRecord

    with click.open_file(str(path), "rb") as file:
        value = file.read(_LARGEST_FILE + 1)
    if len(value) > _LARGEST_FILE:
        raise click.UsageError(f"{path}: more than {_LARGEST_FILE >> 20} MiB; explain a part of it")
    try:
        return [_decode_message(value, decode)]
    except BadRecord as bad:
        lines = [line for line in value.splitlines() if line.strip()] if bad.reason in _OF_SEVERAL else []
        if len(lines) < 2 or not all(line.lstrip().startswith(b"{") for line in lines):
            raise click.UsageError(f"{path}: {bad.detail}") from None
    batches = []
    for number, line in enumerate(lines, 1):
        try:
            batches.append(decode(line))
        except BadRecord as bad:
            raise click.UsageError(f"{path}, line {number}: {bad.detail}") from None
    return batches


def _decode_message(value: bytes, decode: Callable[[bytes], Batch]) -> Batch:
    """The batch; if it is none, without the line break that kafka-console-consumer.sh writes after each message."""
    from ragtide.evaluators.errors import BadRecord

    try:
        return decode(value)
    except BadRecord as bad:
        if bad.reason not in _OF_LINE_END or not value.endswith(b"\n"):
            raise
        try:
            return decode(value[:-1])
        except BadRecord:
            raise bad from None
