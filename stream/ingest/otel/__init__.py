"""OpenTelemetry: decode OTLP batches of spans and logs, and map the spans of one trace to canonical traces."""

from ragtide.stream.ingest.otel.log_events import LOG_SPAN_MISSING
from ragtide.stream.ingest.otel.mapping import MappedSpans, MappedTrace, Origin, map_spans
from ragtide.stream.ingest.otel.missing import REASONS, conventions_of, hint_of
from ragtide.stream.ingest.otel.otlp import decode_logs, decode_spans, describe_counts
from ragtide.stream.ingest.otel.prompt_contexts import PromptRule, prompt_rule
from ragtide.stream.ingest.otel.spans import Counts, LogBatch, LogEvent, Span, SpanBatch
from ragtide.stream.ingest.otel.tree import kind_of
from ragtide.stream.ingest.otel.unwrap import Missing
from ragtide.stream.settings.otel import Encoding

__all__ = [
    "LOG_SPAN_MISSING",
    "REASONS",
    "Counts",
    "Encoding",
    "LogBatch",
    "LogEvent",
    "MappedSpans",
    "MappedTrace",
    "Missing",
    "Origin",
    "PromptRule",
    "Span",
    "SpanBatch",
    "conventions_of",
    "decode_logs",
    "decode_spans",
    "describe_counts",
    "hint_of",
    "kind_of",
    "map_spans",
    "prompt_rule",
]
