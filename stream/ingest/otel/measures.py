"""Work out what spans do not carry as one attribute: the time, latencies, and sums over LLM calls."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ragtide.stream.ingest.otel.reading import Reader, number_of
from ragtide.stream.ingest.otel.source import Kind, Source
from ragtide.stream.ingest.otel.spans import Span
from ragtide.stream.ingest.otel.tree import Request, Tree
from ragtide.stream.ingest.otel.unwrap import Missing

_NS = 1e9


class Sum(NamedTuple):
    """A sum over spans, and the source of the first one."""

    value: float
    source: Source
    spans: list[Span]


def leaves(tree: Tree, request: Request, kind: Kind) -> list[Span]:
    """The spans of a kind that have none of this kind below them."""
    of_kind = [span for span in request.spans if tree.kinds.get(span.span_id) == kind]
    if len(of_kind) < 2:
        return of_kind
    inner: set[str] = set()
    for span in of_kind:
        for above in tree.above(span):
            if above.span_id in inner:
                break
            inner.add(above.span_id)
    return [span for span in of_kind if span.span_id not in inner]


def time_of(request: Request) -> str | Missing:
    """When the answer was given: the end of the root, else the latest end of a span, else the latest start."""
    ends = max(top.end_ns for top in request.tops)
    ends = ends or max(span.end_ns for span in request.spans) or max(span.start_ns for span in request.spans)
    if not ends:
        return Missing("not_sent")
    milliseconds = ends // 1_000_000
    time = datetime.fromtimestamp(milliseconds // 1000, UTC).replace(microsecond=milliseconds % 1000 * 1000)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def latencies(tree: Tree, request: Request, llms: Sequence[Span]) -> Mapping[str, float | Missing]:
    """Total, retrieval and generation; parallel calls count once."""
    searches = [span for span in request.spans if tree.kinds.get(span.span_id) in ("retriever", "reranker")]
    return {
        "latency.total_s": _whole(request.tops),
        "latency.retrieval_s": _union(searches),
        "latency.generation_s": _union(llms),
    }


def _whole(tops: Sequence[Span]) -> float | Missing:
    if any(not top.start_ns or not top.end_ns for top in tops):
        return Missing("not_sent", "the root has no start or no end")
    if any(top.end_ns < top.start_ns for top in tops):
        return Missing("clock", "the root ends before it starts")
    return (max(top.end_ns for top in tops) - min(top.start_ns for top in tops)) / _NS


def _union(spans: Iterable[Span]) -> float | Missing:
    intervals = sorted((span.start_ns, span.end_ns) for span in spans)
    if not intervals:
        return Missing("no_span")
    if any(not start or not end for start, end in intervals):
        return Missing("incomplete", "a span has no start or no end")
    if any(end < start for start, end in intervals):
        return Missing("clock", "a span ends before it starts")
    total = reached = 0
    for start, end in intervals:
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total / _NS


def summed(spans: Sequence[Span], readers: Sequence[Reader]) -> Sum | Missing:
    """The sum over spans, each by its first source. A failed call without a value does not count."""
    values: list[float] = []
    counted: list[Span] = []
    first: Source | None = None
    missing: Missing | None = None
    without = 0
    for span in spans:
        for reader in readers:
            number = _number(span, reader) if reader.key in span.attributes else None
            if isinstance(number, Missing):
                missing = missing or number
            elif number is not None:
                values.append(number)
                counted.append(span)
                first = first or reader.source
                break
        else:
            without += not span.is_error
    if first is None:
        return missing or Missing("not_sent" if spans else "no_span")
    if without:
        why = f", or one that is not read: {missing.detail}" if missing is not None else ""
        return Missing("incomplete", f"{without} of {len(counted) + without} LLM calls have none{why}")
    return Sum(sum(sorted(values)), first, counted)


def _number(span: Span, reader: Reader) -> float | Missing | None:
    found = reader.read(span, reader.source.attribute)
    return number_of(found) if isinstance(found, (str, int, float)) else found if isinstance(found, Missing) else None
