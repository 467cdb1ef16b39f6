"""Join log records to the spans that they belong to: content may be in them only."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ragtide.stream.ingest.otel.names import DETAILS_EVENT
from ragtide.stream.ingest.otel.spans import Attributes, LogEvent, Span, SpanEvent


def join_logs(spans: Iterable[Span], logs: Sequence[LogEvent]) -> Iterator[Span]:
    """The spans with their log records: details become attributes, and the span's own win; others become events.

    The order of log records does not matter. Those whose span is not there are left out.
    """
    by_span: dict[str, list[LogEvent]] = {}
    for log in sorted(logs, key=lambda one: (one.time_ns, msgspec.json.encode(one, order="deterministic"))):
        by_span.setdefault(log.span_id, []).append(log)
    for span in spans:
        found = by_span.get(span.span_id)
        yield span if found is None else _joined(span, found)


def _joined(span: Span, logs: Sequence[LogEvent]) -> Span:
    attributes = dict(span.attributes)
    events = list(span.events)
    for log in logs:
        fields: Attributes = {**log.body, **log.attributes} if isinstance(log.body, dict) else log.attributes
        if log.name == DETAILS_EVENT:
            for name, value in fields.items():
                attributes.setdefault(name, value)
        elif log.name:
            event = SpanEvent(log.name, log.time_ns, fields)
            if event not in events:  # delivered twice
                events.append(event)
    return msgspec.structs.replace(span, attributes=attributes, events=events)
