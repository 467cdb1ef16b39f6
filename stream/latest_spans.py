"""Try the latest messages of each topic of spans: can stage `assemble` read them, and what do their traces record?"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.otel import PromptRule, Span, decode_spans, describe_counts, kind_of, map_spans, prompt_rule
from ragtide.stream.ingest.records import Record, check_readable
from ragtide.stream.latest_traces import TopicReport
from ragtide.stream.settings.loader import Settings

MESSAGES = 1_000  # of each topic
_FIELDS = ("question", "answer", "contexts", "contexts.text", "model", "tokens", "cost_usd")
_SHOWN = 5


@dataclass(slots=True)
class _Found:
    """What the messages of one topic hold."""

    encodings: Counter[str] = field(default_factory=Counter)
    keyed: int = 0  # by the trace id of all their spans
    spans: int = 0
    traces: dict[str, list[Span]] = field(default_factory=dict)
    libraries: Counter[str] = field(default_factory=Counter)
    refused_spans: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[Record, BadRecord]] = field(default_factory=list)


def report_spans(settings: Settings, latest: Mapping[str, Sequence[Record]]) -> Iterator[TopicReport]:
    """Decode the messages as the stage would; say encoding, keys, instrumentation and which fields traces record."""
    rule = prompt_rule(settings.otel)
    for topic, records in latest.items():
        if not records:
            yield TopicReport(topic, None, "no message yet")
            continue
        found = _Found()
        for record in records:
            try:
                _add(record, settings, found)
            except BadRecord as bad:
                found.refused.append((record, bad))
        yield _of_messages(topic, len(records), found, settings.worker.dead_letter_ratio)
        if found.spans:
            yield _of_traces(topic, found, rule)


def _add(record: Record, settings: Settings, found: _Found) -> None:
    check_readable(record)
    if record.value is None:
        raise BadRecord("no_value", "the message has no value")
    batch = decode_spans(record.value, settings.otel.encoding(record.topic))
    found.encodings["otlp_json" if record.value.lstrip()[:1] in (b"{", b"[") else "otlp_proto"] += 1
    found.refused_spans.update(batch.counts.refused)
    found.spans += len(batch.spans)
    ids = {span.trace_id for span in batch.spans}
    found.keyed += ids == {(record.key or b"").decode(errors="replace")}
    for span in batch.spans:
        found.traces.setdefault(span.trace_id, []).append(span)
        if kind_of(span) is not None:
            found.libraries[f"{span.scope.name or 'unnamed'} {span.scope.version}".strip()] += 1


def _of_messages(topic: str, count: int, found: _Found, most: float) -> TopicReport:
    if found.refused:
        record, bad = found.refused[0]
        is_foreign = len(found.refused) / count > most
        return TopicReport(
            topic,
            False if is_foreign else None,
            f"{len(found.refused):,} of the latest {count:,} messages would be dead letters. Example: "
            f"{topic}/{record.partition} offset {record.offset}: {bad}",
        )
    encodings = " and ".join(sorted(found.encodings))
    keys = "every" if found.keyed == count else "no" if not found.keyed else f"{found.keyed:,} of them with a"
    refused = f"; spans that cannot be read: {describe_counts(found.refused_spans)}" if found.refused_spans else ""
    return TopicReport(
        topic,
        None if found.refused_spans else True,
        f"all of the latest {count:,} messages can be read as {encodings}, {keys} key is the trace id{refused}",
    )


def _texts_hint(rule: PromptRule | None) -> str:
    if rule is None:
        return "otel.contexts_from_prompt may take the texts from the prompt"
    return "otel.contexts_from_prompt finds none in the prompt"


def _of_traces(topic: str, found: _Found, rule: PromptRule | None) -> TopicReport:
    """Traces whose root is among the messages: of others some spans are elsewhere."""
    whole = [spans for spans in found.traces.values() if any(not span.parent_id for span in spans)]
    recorded: Counter[str] = Counter()
    count = without_text = 0
    for spans in whole:
        for trace in map_spans(spans, (), rule).traces:
            count += 1
            recorded.update(name for name in _FIELDS if name in trace.fields)
            missing = trace.missing.get("contexts.text")
            recorded["contexts.text"] += "contexts" in trace.fields and missing is None
            without_text += missing is not None and missing.reason in ("no_text", "not_in_prompt")
    if found.traces and not whole:
        return TopicReport(
            topic,
            None,
            f"no span without a parent in {found.spans:,} spans: the roots of their traces are in other messages",
        )
    if not count:
        return TopicReport(
            topic,
            None,
            f"no application in {found.spans:,} spans: none of their instrumentation is known; docs/opentelemetry.md "
            "lists what is",
        )
    shares = ", ".join(f"{name} {recorded[name] / count:.0%}" for name in _FIELDS)
    libraries = ", ".join(name for name, _ in found.libraries.most_common(_SHOWN))
    is_enough = all(recorded[name] for name in ("question", "answer", "contexts.text"))
    hint = "" if is_enough else ". `ragtide explain-trace` says what to switch on in the application"
    if without_text:
        hint += f". {without_text:,} have documents without text: {_texts_hint(rule)}"
    return TopicReport(
        topic,
        True if is_enough else None,
        f"{found.spans:,} spans by {libraries}; {count:,} traces record: {shares}{hint}",
    )
