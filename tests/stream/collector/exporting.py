"""Export spans and log records with the OpenTelemetry SDK over OTLP, as an application does."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpanExporter
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags


def export_spans(url: str, spans: Sequence[ReadableSpan]) -> None:
    """Over HTTP. Returns once the Collector took them."""
    _export(OTLPSpanExporter(f"{url}/v1/traces"), spans)


def export_spans_over_grpc(endpoint: str, spans: Sequence[ReadableSpan]) -> None:
    """Returns once the Collector took them."""
    _export(GrpcSpanExporter(endpoint, insecure=True), spans)


def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> None:
    processor = BatchSpanProcessor(exporter)
    for span in spans:
        processor.on_end(span)
    assert processor.force_flush()
    processor.shutdown()


def export_logs(url: str, file: Path, trace_id: int) -> None:
    """Export recorded log records over HTTP under another trace id."""
    _export_logs(lambda: OTLPLogExporter(f"{url}/v1/logs"), file, trace_id)


def export_logs_over_grpc(endpoint: str, file: Path, trace_id: int) -> None:
    """Export recorded log records under another trace id."""
    _export_logs(lambda: GrpcLogExporter(endpoint, insecure=True), file, trace_id)


def _export_logs(exporter: Callable[[], LogRecordExporter], file: Path, trace_id: int) -> None:
    for resource in ExportLogsServiceRequest.FromString(file.read_bytes()).resource_logs:
        provider = LoggerProvider(resource=Resource(_mapping(resource.resource.attributes)))
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter()))
        for scope in resource.scope_logs:
            logger = provider.get_logger(scope.scope.name, scope.scope.version)
            for one in scope.log_records:
                logger.emit(
                    LogRecord(
                        trace_id=trace_id,
                        span_id=int.from_bytes(one.span_id),
                        trace_flags=TraceFlags(TraceFlags.SAMPLED),
                        event_name=one.event_name,
                        attributes=_mapping(one.attributes),
                    )
                )
        assert provider.force_flush()
        provider.shutdown()


def recorded_spans(file: Path, trace_id: int, ended_ns: int) -> list[ReadableSpan]:
    """Recorded spans as the SDK has them, under another trace id, the last one ended at that time."""
    batch = ExportTraceServiceRequest.FromString(file.read_bytes())
    scopes = [(resource.resource, scope) for resource in batch.resource_spans for scope in resource.scope_spans]
    later = ended_ns - max(one.end_time_unix_nano for _, scope in scopes for one in scope.spans)
    return [
        ReadableSpan(
            one.name,
            context=_context(trace_id, one.span_id),
            parent=_context(trace_id, one.parent_span_id) if one.parent_span_id else None,
            resource=Resource(_mapping(resource.attributes)),
            attributes=_mapping(one.attributes),
            events=[Event(e.name, _mapping(e.attributes), e.time_unix_nano + later) for e in one.events],
            kind=SpanKind(one.kind - 1),  # the SDK counts from 0
            status=Status(StatusCode(one.status.code), one.status.message or None),
            start_time=one.start_time_unix_nano + later,
            end_time=one.end_time_unix_nano + later,
            instrumentation_scope=InstrumentationScope(scope.scope.name, scope.scope.version),
        )
        for resource, scope in scopes
        for one in scope.spans
    ]


def _context(trace_id: int, span_id: bytes) -> SpanContext:
    return SpanContext(trace_id, int.from_bytes(span_id), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _mapping(attributes: Sequence[Any]) -> Mapping[str, Any]:
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return _mapping(value.kvlist_value.values)
    return None if kind is None else getattr(value, kind)
