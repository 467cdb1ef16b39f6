"""`ragtide validate`."""

import sys
from collections import Counter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ragtide.stream.cli.options import config_option, settings_from
from ragtide.stream.terminal import say, say_json

if TYPE_CHECKING:
    from ragtide.stream.ingest.adjustments import Normalised, UnknownField
    from ragtide.stream.ingest.validation import Validation

_REFUSED = 1


@click.command()
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: counts, faults, normalised, unknown.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a trace, and read no file.")
@config_option
def command(file: IO[bytes] | None, as_json: bool, schema: bool, config: Path | None) -> None:
    """Validate traces of FILE (- for standard input): one JSON object per line, as a message on Kafka.

    Prints the line, the field and what to write for everything that would be a dead letter. Then it lists values that
    are read although they have another form, and unknown fields that nothing measures. Exit status 1 means that a line
    is refused. Needs neither Kafka nor ClickHouse. Whether times are too old is not checked: no broker received these.

    \b
    Examples:
      ragtide validate traces.jsonl
      kafka-console-consumer.sh --topic rag.traces --max-messages 100 ... | ragtide validate -
      ragtide validate traces.jsonl --json | jq '.faults[] | select(.key == "time")'
      ragtide validate --schema > trace.schema.json
    """
    settings = settings_from(config).settings
    if schema:
        from ragtide.stream.ingest.trace_schema import trace_schema

        say_json(trace_schema())
        return
    if file is None:
        raise click.UsageError("name a file of traces, one per line, or - for standard input")
    from ragtide.stream.ingest.decoding import Limits
    from ragtide.stream.ingest.json_lines import read_file
    from ragtide.stream.ingest.validation import validate

    limits = Limits.of(settings.ingest, settings.retention, timely=False)
    report = _Report(as_json)
    for number, line in read_file(file, getattr(file, "name", "<stdin>"), limits.max_bytes):
        report.add(number, validate(line, limits))
    report.finish()
    sys.exit(_REFUSED if report.refused else 0)


class _Report:
    """Prints faults as they come, and the rest at the end."""

    def __init__(self, as_json: bool) -> None:
        self.refused = 0
        self._as_json = as_json
        self._lines = 0
        self._faults: list[dict[str, Any]] = []
        self._no_json = 0
        self._normalised: Counter[Normalised] = Counter()
        self._unknown: Counter[UnknownField] = Counter()

    def add(self, number: int, validation: "Validation") -> None:
        """Take in one line."""
        self._lines += 1
        self.refused += bool(validation.faults)
        for fault in validation.faults:
            self._no_json += fault.reason == "not_json"
            if self._as_json:
                found = {"line": number, "key": fault.key, "reason": fault.reason, "detail": fault.detail}
                self._faults.append(found)
            else:
                say(f"line {number}: {fault.detail or fault.reason}", mark="refused  ", colour="red")
        self._normalised.update(validation.adjustments.normalised.keys())
        for unknown in validation.adjustments.unknown:
            if unknown in self._unknown or len(self._unknown) < _MOST_UNKNOWN:
                self._unknown[unknown] += 1

    def finish(self) -> None:
        """Print the counts."""
        from ragtide.stream.ingest.adjustments import describe_unknown, nearest_field
        from ragtide.stream.ingest.normalisations import RULES

        normalised = self._normalised.most_common()
        unknown = self._unknown.most_common()
        if self._as_json:
            say_json(
                {
                    "lines": self._lines,
                    "refused": self.refused,
                    "faults": self._faults,
                    "normalised": [{"rule": one.rule, "field": one.field, "lines": count} for one, count in normalised],
                    "unknown": [
                        {"app": one.app, "field": one.field, "lines": count, "nearest": nearest_field(one.field)}
                        for one, count in unknown
                    ],
                }
            )
            return
        for one, count in normalised:
            where = f" at {one.field}" if one.field else ""
            say(f"{one.rule}{where} in {_of_lines(count)}: {RULES[one.rule]}", mark="read     ", colour="green")
        for field, count in unknown:
            say(f"in {_of_lines(count)}: {describe_unknown(field)}", mark="unknown  ", colour="yellow")
        if self._no_json and self._no_json >= self._lines - 1:
            say("Each line must be one trace; `jq -c . FILE` writes each JSON object on one line.")
        say(f"{_of_lines(self._lines)}: {self._lines - self.refused:,} accepted, {self.refused:,} refused")


_MOST_UNKNOWN = 1_000  # pairs of app and field: the file may be hostile


def _of_lines(count: int) -> str:
    return f"{count:,} line{'' if count == 1 else 's'}"
