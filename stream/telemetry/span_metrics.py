"""Metrics of stage `assemble`: spans in, traces out."""

from collections.abc import Callable

from prometheus_client import Counter, Gauge


class SpanMetrics:
    """Part of `Telemetry`, which makes the metrics."""

    def __init__(self, counter: Callable[..., Counter], gauge: Callable[..., Gauge]) -> None:
        self.read = counter(
            "spans", "OpenTelemetry spans read.", "Not growing while applications run: check the Collector and lag."
        )
        self.refused = counter(
            "spans_refused",
            "Spans and log records that cannot be read, by reason. The rest of their message is used.",
            "docs/opentelemetry.md lists the reasons. Fix the instrumentation or the producer.",
            "reason",
        )
        self.skipped = counter(
            "otel_logs_skipped",
            "Log records that belong to no span, by reason.",
            "Usually nothing. Send only the log records of instrumentation to otel.log_topics.",
            "reason",
        )
        self.adjusted = counter(
            "span_values_adjusted",
            "Values of spans that were changed or left out, by reason.",
            "docs/opentelemetry.md lists the reasons.",
            "reason",
        )
        self.left_out = counter(
            "spans_left_out",
            "Good spans and log records in no trace, by reason: `late`, after their trace was forgotten; "
            "`trace_too_large`.",
            "`late`: raise otel.late_s. `trace_too_large`: raise otel.max_trace_spans or otel.max_trace_bytes.",
            "reason",
        )
        self.remarks = counter(
            "otel_remarks",
            "Remarks on the spans of complete traces, such as judge_span, parent_missing and cycle.",
            "docs/opentelemetry.md lists them. Many parent_missing: spans are lost before Kafka.",
            "kind",
        )
        self.unmapped = counter(
            "otel_unmapped",
            "Attributes of known conventions that no field is read from, by prefix.",
            "Growing after an update of instrumentation: report the attribute, so that it is read.",
            "prefix",
        )
        self.traces = counter(
            "traces_assembled",
            "Complete traces by result: `sent`; `sent_again`, with late spans; `unchanged` by late spans; `no_trace`, "
            "since no span belongs to an application; `late`, spans of a forgotten trace; `too_big` for the topic.",
            "Many `sent_again`: raise otel.quiet_s. `too_big`: raise kafka.max_record_bytes.",
            "result",
        )
        self.open_traces = gauge(
            "traces_open",
            "Traces that wait for spans.",
            "Growing while traffic does not: root spans are missing. Check the Collector, or lower otel.max_open_s.",
        )
        self.waiting_bytes = gauge(
            "waiting_span_bytes",
            "Bytes of spans of traces that are not forgotten, by place: `memory` or `disk`.",
            "Much on `disk`: raise otel.memory_bytes, or lower otel.late_s.",
            "place",
        )
