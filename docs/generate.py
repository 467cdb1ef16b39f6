"""Write docs/reference/ from the code, as `make docs` does; a test compares."""

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from ragtide.drift.notify.notification import notification_schema
from ragtide.evaluators import registry
from ragtide.evaluators.describe import describe, describe_budget, setting_names
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.trace import Chunk, Model, Trace
from ragtide.stream.cli import main
from ragtide.stream.ingest.fields import walk
from ragtide.stream.ingest.normalisations import NAMES, RULES
from ragtide.stream.ingest.otel.missing import REASONS
from ragtide.stream.ingest.otel.names import FIELDS, KINDS, SEEN
from ragtide.stream.ingest.otel.source import Source
from ragtide.stream.ingest.trace_schema import trace_schema
from ragtide.stream.settings.environment import leaves, variable_of
from ragtide.stream.settings.loader import Settings

HERE = Path(__file__).parent / "reference"
MIGRATIONS = Path(__file__).parents[1] / "sinks" / "clickhouse" / "migrations"
_TABLE = re.compile(
    r"^CREATE (?:TABLE IF NOT EXISTS|OR REPLACE VIEW) (\w+)\n\((.*?)\n\)\n(?:ENGINE = |(AS)\n)(.*?)\nCOMMENT '(.*?)';$",
    re.DOTALL | re.MULTILINE,
)
_COLUMN = re.compile(
    r"^    (\w+) (.+?)(?: CODEC\(.*?\))?(?: DEFAULT [\w().]+| MATERIALIZED .+?)? COMMENT '(.*)',?$", re.MULTILINE
)
_EMPTY = re.compile(r"; ((?:empty|an empty item|NULL|\[\]|\{\}|0|1970): .*)$")  # the end of a column's comment

_TRACE = """\
# Trace

A message on a topic of traces is one JSON object in UTF-8. [trace.schema.json](trace.schema.json) is its JSON Schema.
`ragtide validate FILE` checks traces, and `ragtide validate --schema` prints the schema.

- One of `question` and `answer` is required. Of a chunk, one of `id` and `text` is.
- `null` or no value means not recorded. An empty value means recorded, and empty.
- Unknown fields are stored in `attributes`, those of a chunk in its `metadata`. They are not measured.
- [Limits](../kafka.md#limits-of-a-trace) has the longest names and the most values.

{fields}
## Other forms that are read

These rules read what has one plausible meaning. `ragtide_normalised_total` counts each use by rule and field.
`ragtide check` shows those of the latest records. Everything else is a dead letter: its detail names the field, the
form wanted and the type found.

{rules}
## Names of other frameworks

Rule `other_name` reads these where the field itself is absent. Of several, the first one with a fitting value wins.

{names}"""


_OPENTELEMETRY = """\
# OpenTelemetry attributes

Which attribute of which span becomes which field of a trace. Of several, the first one that is recorded wins. An empty
text is recorded. A hidden one (`__REDACTED__`) is not. [OpenTelemetry](../opentelemetry.md) has the rules.

The column "of": `any span` is the shallowest span that has it. `root` is the application's root; `request` is that root
if it is a chain or an agent. `answer` is the LLM call that wrote the answer. `llm` is every LLM call without one below
it, and their values are summed. `N` is a number from 0.

{fields}
## Kinds of spans

The first row with a known value decides.

{kinds}
## Conventions

{conventions}
## Why a field is not recorded

`ragtide explain-trace` shows these for the fields of a trace.

{reasons}"""


def opentelemetry() -> str:
    """Every attribute of OpenTelemetry spans that is read, by field."""
    rows = [
        (f"`{path}`" if place == 0 else "", _attribute(source), source.of, source.convention, source.seen)
        for path, sources in FIELDS.items()
        for place, source in enumerate(sources)
    ]
    kinds = [
        (f"`{attribute}`", convention, ", ".join(f"`{value}` {kind}" for value, kind in of.items()))
        for attribute, convention, of in KINDS
    ]
    return _OPENTELEMETRY.format(
        fields=_table(("field", "attribute", "of", "convention", "versions (default: see Conventions)"), rows),
        kinds=_table(("attribute", "convention", "value and kind"), kinds),
        conventions=_table(("convention", "names seen in"), SEEN.items()),
        reasons=_table(("reason", "meaning"), [(f"`{reason}`", meaning) for reason, meaning in REASONS.items()]),
    )


def _attribute(source: Source) -> str:
    name, _, key = source.attribute.partition(":")
    shown = f"`{source.attribute}`"
    if key:
        return f"{shown}: key `{key}` of the JSON in `{name}`"
    if source.form.startswith(("indexed", "legacy")):
        return f"{shown}, flattened: `{name}.N.…`"
    if "event" in source.form:
        return f"{shown}, an event"
    return f"{shown}, with `{source.with_}`" if source.with_ else shown


def settings() -> str:
    """Every setting: its name, default, variable and meaning."""
    rows = [
        (f"`{'.'.join(path)}`", f"`{_default(field.get_default(call_default_factory=True))}`", field.description or "")
        for path, field in leaves(Settings)
    ]
    return (
        "# Settings\n\nSettings come from one TOML file (`ragtide.toml`, `--config FILE` or `RAGTIDE_CONFIG`). "
        f"Environment variables override it: `kafka.topics` is `{variable_of(('kafka', 'topics'))}`. "
        "An unknown name is an error. `ragtide config` prints the effective settings and the origin of each.\n\n"
        + _table(("setting", "default", "meaning"), rows)
    )


def commands() -> str:
    """Every command's --help."""
    parts = ["# Commands\n"]
    context = click.Context(main, info_name="ragtide", help_option_names=["-h", "--help"])
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        if command is None:
            raise LookupError(name)
        parts += [f"## ragtide {name}\n", *_helps(command, context, name)]
    return "\n".join(parts)


def evaluators() -> str:
    """Every evaluator with its metrics and parameters."""
    parts = ["# Evaluators\n"]
    every = registry.load()
    for info in describe(every, EvaluatorSettings(), None):
        parts.append(f"## {info.id}\n\n{info.description}\n")
        needed = ", ".join(info.inputs) or "none"
        kind = f"Domain {info.domain}, method {info.method}, lane {info.lane}."
        parts.append(f"{kind} Inputs: {needed}; {describe_budget(info.budget)}.\n")
        if (judge := every[info.id].judge) is not None:
            prompts = ", ".join(f"`{name}`" for name in judge.prompts)
            parts.append(f"Off until there is a [judge](../judge.md). Prompts: {prompts}.\n")
        if switches := setting_names(info):
            parts.append(f"Off by default. To use it, set `{switches}`.\n")
        rows = [
            (
                f"`{info.id}.{metric.key}`" + (f" per {', '.join(metric.per)}" if metric.per else ""),
                "[" + ", ".join("∞" if end is None else f"{end:g}" for end in metric.range) + "]",
                metric.better,
                "" if metric.threshold is None else f"{metric.threshold:g}",
                "yes" if metric.primary else "",
                metric.rule,
            )
            for metric in info.metrics
        ]
        parts.append(_table(("metric", "range", "better", "threshold", "primary", "rule"), rows))
        if info.params:
            chosen = [(f"`{p.name}`", f"`{_default(p.default)}`", p.description) for p in info.params]
            parts.append(_table(("parameter", "default", "meaning"), chosen))
        if reached := _validity(info.id):
            parts.append(f"{reached}\n")
    return "\n".join(parts)


def _validity(id: str) -> str:
    """What the evaluator reached on people's labels of hallucinations, or why that is not known. "" if it sees none."""
    measured = tomllib.loads((Path(__file__).parent / "validity.toml").read_text("utf-8"))
    page = "[validity](../validity.md)"
    if why := measured["not_measured"].get(id):
        return f"Not measured on people's labels of hallucinations: {why}. See {page}."
    reached = [
        f"{part} AUROC {auroc:.2f} [{low:.2f}, {high:.2f}] (length alone {measured['length'][part][0]:.2f}), "
        f"F1 {shipped:.2f} at the shipped threshold, {best:.2f} at the best"
        for part, (auroc, low, high, shipped, best) in measured["evaluators"].get(id, {}).items()
    ]
    return f"On people's labels of hallucinations (RAGTruth): {'; '.join(reached)}. See {page}." if reached else ""


def tables() -> str:
    """Every table and view with its columns."""
    parts = [
        "# Tables\n\n`DESCRIBE TABLE` and Grafana's explorer show the same descriptions. Read tables with `FINAL`: "
        "ClickHouse removes replaced rows only when it merges parts. Counts have no unit.\n"
    ]
    for file in sorted(MIGRATIONS.glob("*.sql")):
        for name, columns, is_view, engine, meaning in _TABLE.findall(file.read_text()):
            parts.append(f"## {name}\n\n{_literal(meaning)}\n")
            parts.append("A view.\n" if is_view else f"`ENGINE = {' '.join(engine.split())}`\n")
            rows = [
                (f"`{column}`", f"`{kind}`", *_meaning(comment)) for column, kind, comment in _COLUMN.findall(columns)
            ]
            parts.append(_table(("column", "type", "meaning", "empty value"), rows))
    return "\n".join(parts)


def trace() -> str:
    """Every field of a trace, the other forms that are read, and the names of other frameworks."""
    rows = [
        (f"`{field.path}`", field.wanted if not field.required else f"{field.wanted}; required", field.description)
        for field in walk()
    ]
    names = [
        (f"`{prefix}{field}`", ", ".join(f"`{name}`" for name in others))
        for struct, prefix in ((Trace, ""), (Chunk, "contexts."), (Model, "model."))
        for field, others in NAMES[struct].items()
    ]
    rules = [(f"`{rule}`", meaning) for rule, meaning in RULES.items()]
    return _TRACE.format(
        fields=_table(("field", "value", "meaning"), rows),
        rules=_table(("rule", "what it reads"), rules),
        names=_table(("field", "other names"), names),
    )


def notifications() -> str:
    """The JSON Schema of a notification."""
    return json.dumps(notification_schema(), indent=2) + "\n"


def schema() -> str:
    """The JSON Schema of a trace."""
    return json.dumps(trace_schema(), indent=2) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings,
    "commands.md": commands,
    "evaluators.md": evaluators,
    "tables.md": tables,
    "trace.md": trace,
    "trace.schema.json": schema,
    "opentelemetry.md": opentelemetry,
    "notification.schema.json": notifications,
}


def _meaning(comment: str) -> tuple[str, str]:
    """What a column's comment says of a value, and of an empty one."""
    found = _EMPTY.search(comment)
    return (_literal(comment[: found.start()]), _literal(found[1])) if found else (_literal(comment), "")


def _literal(quoted: str) -> str:
    """The text of a SQL string."""
    return quoted.replace("''", "'")


def _helps(command: click.Command, above: click.Context, name: str) -> Iterable[str]:
    context = click.Context(command, info_name=name, parent=above, terminal_width=100, max_content_width=100)
    command._help_option = None  # click keeps the one of whoever asked first
    yield f"```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from _helps(found, context, below)


def _default(value: object) -> str:
    shown = getattr(value, "get_secret_value", lambda: value)()
    return str(shown) if shown not in ("", None) else "-"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for page, write in PAGES.items():
        (HERE / page).write_text(write())
