"""Keep of a trace that is too large the spans that its fields come from."""

from collections.abc import Iterator
from typing import NamedTuple

from ragtide.stream.ingest.otel import LogEvent, Span, kind_of
from ragtide.stream.worker.assembly.messages import Part, encode_part

_RANKS = {"chain": 0, "agent": 0, "retriever": 1, "reranker": 1, "llm": 1}
_OTHER_KIND, _NO_KIND = 2, 3


class Shortened(NamedTuple):
    """A part of the trace, and the number of spans and log records that are not in it."""

    part: Part
    left_out: int


def shorten(part: Part, spans: int, size: int) -> Shortened:
    """Keep at most so many spans and about so many bytes: roots, chains, retrievers and LLM calls first, then by time.

    Log records go with their spans. A span that came twice counts once.
    """
    unique = {(span.span_id, span.end_ns): span for span in part.spans}
    kept: list[Span] = []
    for span in sorted(unique.values(), key=lambda one: (_rank(one), one.start_ns, one.span_id)):
        needed = len(encode_part([span]) or b"")
        if len(kept) < spans and needed <= size:  # a large one leaves room for the smaller ones after it
            kept.append(span)
            size -= needed
    names = {span.span_id for span in kept}
    logs = list(_fitting((log for log in part.logs if log.span_id in names), size))
    left_out = len(unique) - len(kept) + len(part.logs) - len(logs)
    return Shortened(Part(kept, logs), left_out)


def _rank(span: Span) -> int:
    if not span.parent_id:
        return 0
    kind = kind_of(span)
    return _NO_KIND if kind is None else _RANKS.get(kind, _OTHER_KIND)


def _fitting(logs: Iterator[LogEvent], size: int) -> Iterator[LogEvent]:
    for log in logs:
        size -= len(encode_part([], [log]) or b"")
        if size < 0:
            return
        yield log
