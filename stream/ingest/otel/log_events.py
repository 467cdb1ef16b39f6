"""Join log records to the spans that they belong to: content may be in them only."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ragtide.stream.ingest.otel.names import DETAILS_EVENT
from ragtide.stream.ingest.otel.spans import Attributes, LogEvent, Span, SpanEvent

LOG_SPAN_MISSING = "log_span_missing"


def join_logs(spans: Iterable[Span], logs: Sequence[LogEvent], counts: Counter[str]) -> Iterator[Span]:
    """The spans with their log records: details become attributes, and the span's own win; others become events.

    The order of log records does not matter. Those whose span is not there are left out, and counted at the end.
    """
    by_span: dict[str, list[LogEvent]] = {}
    for log in sorted(logs, key=lambda one: (one.time_ns, msgspec.json.encode(one, order="deterministic"))):
        by_span.setdefault(log.span_id, []).append(log)
    joined: set[str] = set()
    for span in spans:
        joined.add(span.span_id)
        found = by_span.get(span.span_id)
        yield span if found is None else _joined(span, found)
    if missing := sum(len(found) for span_id, found in by_span.items() if span_id not in joined):
        counts[LOG_SPAN_MISSING] += missing


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
