"""Spans as the Collector's Kafka exporter writes them: protobuf by the reference classes."""

from collections.abc import Sequence

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from tests.stream.otel.scene import RECORDED


def recorded_spans(name: str, trace: int) -> list[ExportTraceServiceRequest]:
    """The recorded spans of a pipeline under another trace id, each as a batch of its own."""
    whole = ExportTraceServiceRequest.FromString((RECORDED / f"{name}.binpb").read_bytes())
    parts = []
    for resource in whole.resource_spans:
        for scope in resource.scope_spans:
            for one in scope.spans:
                part = ExportTraceServiceRequest()
                added = part.resource_spans.add(resource=resource.resource).scope_spans.add(scope=scope.scope)
                found: ProtoSpan = added.spans.add()
                found.CopyFrom(one)
                found.trace_id = trace.to_bytes(16)
                parts.append(part)
    return parts


def batch(parts: Sequence[ExportTraceServiceRequest]) -> bytes:
    """One message of all these spans."""
    merged = ExportTraceServiceRequest()
    for part in parts:
        merged.MergeFrom(part)
    written: bytes = merged.SerializeToString()
    return written
