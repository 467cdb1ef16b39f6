"""Decide when the spans of a trace are complete, and make the trace. No Kafka, no clock but the timestamps of records.

One assembler reads one partition of kafka.spans_topic in order. Its clock is the largest timestamp so far, so that the
same messages give the same traces whenever they are read. A trace is complete once its root ended and it was quiet,
or once it was open for long. It is kept for a while: a late span sends it again. Then it is forgotten.

A restart begins at `hold`, and so reads all messages of every trace that is not forgotten. Of traces that were
forgotten it may read the last messages alone. Marks in the topic (`Sent`) identify these.
"""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal, NamedTuple

from ragtide.evaluators.errors import BadRecord
from ragtide.stream.ingest.otel import LogEvent, MappedSpans, Span, map_spans, prompt_rule
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.worker.assembly.largest_traces import shorten
from ragtide.stream.worker.assembly.messages import Head, Part, Sent, decode_part, decode_sent, encode_parts, read_head
from ragtide.stream.worker.assembly.part_store import PartStore

Result = Literal["sent", "sent_again", "unchanged", "no_trace", "late"]
_NS_PER_MS = 1_000_000
_DIGEST_BYTES = 16


class Output(NamedTuple):
    """A message for the topic of traces."""

    key: bytes
    value: bytes


class Assembled(NamedTuple):
    """A complete trace: its messages, and the mark to write once they are acknowledged; None: none is needed."""

    trace_id: str
    result: Result
    outputs: tuple[Output, ...]
    mark: Sent | None
    items: int  # spans and log records
    counts: Counter[str]
    unmapped: Counter[str]


@dataclass(slots=True)
class _WaitingTrace:
    """Spans of a trace in the store, under number `owner`. Times are of the partition's clock, in ms."""

    owner: int
    first: int  # offsets
    last: int
    opened_ms: int
    seen_ms: int
    size: int = 0  # bytes
    spans: int = 0
    has_root: bool = False
    has_chain: bool = False
    complete_ms: int | None = None  # when it was complete; None: it waits for spans
    is_again: bool = False  # it was complete before
    needs_parents: bool = False  # the spans so far are several traces, perhaps since a span between them is missing
    digest: bytes = b""  # of what was sent
    queued_ms: int = -1  # when it is looked at again


class _Loaded(NamedTuple):
    spans: list[Span]
    logs: list[LogEvent]
    damaged: int  # parts


class Assembler:
    """Assembles the traces of one partition; see the module. Not thread-safe.

    Until offset `restore_until` nothing is complete: messages before it may be followed by marks of an earlier run.
    """

    def __init__(self, otel: OtelSettings, store: PartStore, numbers: Iterator[int], restore_until: int = 0) -> None:
        self._otel = otel
        self._prompt_rule = prompt_rule(otel)
        self._quiet_ms = round(otel.quiet_s * 1000)
        self._max_open_ms = round(otel.max_open_s * 1000)
        self._late_ms = round(otel.late_s * 1000)
        self._store = store
        self._numbers = numbers
        self._restore_until = restore_until
        self._traces: OrderedDict[str, _WaitingTrace] = OrderedDict()  # by first offset
        self._queue: list[tuple[int, int, str]] = []  # when to look at a trace again, its owner, its id
        self._clock_ms = 0
        self.left_out = 0  # spans and log records of traces that are too large

    @property
    def hold(self) -> int | None:
        """The offset at which a restart must begin: of the oldest trace that is not forgotten; None: no such trace."""
        return next(iter(self._traces.values())).first if self._traces else None

    @property
    def open_traces(self) -> int:
        """Traces that are not complete."""
        return sum(trace.complete_ms is None for trace in self._traces.values())

    def feed(self, offset: int, timestamp_ms: int, trace_id: str, value: bytes | None) -> list[Assembled]:
        """Take a message; return the traces that are complete by its timestamp.

        Raises `BadRecord` for a message from elsewhere, and changes nothing then.
        """
        head = read_head(value)
        assert value is not None
        mark = decode_sent(value) if head.kind == "sent" else None  # before anything changes
        self._clock_ms = max(self._clock_ms, timestamp_ms)
        complete = self._complete_due() if offset >= self._restore_until else []
        if mark is not None:
            self._take_mark(trace_id, mark)
        else:
            self._take_part(offset, trace_id, head, value)
        return complete

    def advance(self, now_ms: int) -> list[Assembled]:
        """Move the clock of a partition that is read to its end; return the traces that are complete by it."""
        self._restore_until = 0
        self._clock_ms = max(self._clock_ms, now_ms)
        return self._complete_due()

    def close(self) -> None:
        """Forget everything: the partition is somebody else's."""
        for trace in self._traces.values():
            self._store.drop(trace.owner)
        self._traces.clear()
        self._queue.clear()

    def _take_part(self, offset: int, trace_id: str, head: Head, value: bytes) -> None:
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = _WaitingTrace(next(self._numbers), offset, offset, self._clock_ms, self._clock_ms)
            self._traces[trace_id] = trace
        self._store.add(trace.owner, value)
        trace.last, trace.seen_ms = offset, self._clock_ms
        trace.size += len(value)
        trace.spans += head.spans
        trace.has_root |= head.has_root
        trace.has_chain |= head.has_chain
        trace.needs_parents = False
        if trace.complete_ms is not None:
            trace.complete_ms, trace.is_again = None, True
        if trace.spans > self._otel.max_trace_spans or trace.size > self._otel.max_trace_bytes:
            self._shorten(trace)
        self._look_again(trace_id, trace)

    def _take_mark(self, trace_id: str, sent: Sent) -> None:
        trace = self._traces.get(trace_id)
        if trace is None:
            return
        if sent.last < trace.first:
            return  # it is about messages before these, which were complete and forgotten
        if sent.first < trace.first:
            self._forget(trace_id, trace)  # the messages before `hold` are missing, and it was sent with them
        elif sent.first == trace.first:
            trace.digest = sent.digest
            trace.is_again = True
            if sent.last >= trace.last and trace.complete_ms is None:
                trace.complete_ms = self._clock_ms
            self._look_again(trace_id, trace)

    def _due_ms(self, trace: _WaitingTrace) -> int:
        """When to complete a trace that waits, or to forget one that is complete."""
        end_ms = trace.opened_ms + self._max_open_ms
        if trace.complete_ms is not None:
            return min(trace.complete_ms, end_ms) + self._late_ms
        if trace.is_again:
            end_ms += self._late_ms
        is_whole = trace.is_again or trace.has_root or trace.has_chain
        return min(trace.seen_ms + self._quiet_ms, end_ms) if is_whole and not trace.needs_parents else end_ms

    def _look_again(self, trace_id: str, trace: _WaitingTrace) -> None:
        """Look at the trace when it is due. One that is due later than it was is looked at in between, once."""
        due_ms = self._due_ms(trace)
        if trace.queued_ms < 0 or due_ms < trace.queued_ms:
            trace.queued_ms = due_ms
            heapq.heappush(self._queue, (due_ms, trace.owner, trace_id))

    def _complete_due(self) -> list[Assembled]:
        complete: list[Assembled] = []
        while self._queue and self._queue[0][0] <= self._clock_ms:
            queued_ms, owner, trace_id = heapq.heappop(self._queue)
            trace = self._traces.get(trace_id)
            if trace is None or trace.owner != owner or trace.queued_ms != queued_ms:
                continue
            trace.queued_ms = -1
            due_ms = self._due_ms(trace)
            if due_ms <= self._clock_ms:
                if trace.complete_ms is None and (made := self._complete(trace_id, trace, due_ms)) is not None:
                    complete.append(made)
                if trace.complete_ms is not None and self._due_ms(trace) <= self._clock_ms:
                    self._forget(trace_id, trace)
                    continue
            self._look_again(trace_id, trace)
        return complete

    def _complete(self, trace_id: str, trace: _WaitingTrace, due_ms: int) -> Assembled | None:
        """Make the trace; None if it must wait: what is several traces now may be one once missing parents come."""
        spans, logs, damaged = self._load(trace)
        is_last_call = due_ms >= trace.opened_ms + self._max_open_ms + self._late_ms * trace.is_again
        if self._is_late(trace, spans):
            mapped = MappedSpans([], Counter(), Counter())
            result: Result = "late"
        else:
            mapped = map_spans(spans, logs, self._prompt_rule)
            result = "no_trace"
        if len(mapped.traces) > 1 and mapped.counts["parent_missing"] and not is_last_call:
            trace.needs_parents = True
            return None
        outputs = tuple(Output(str(one.fields["trace_id"]).encode(), one.encode()) for one in mapped.traces)
        digest = _digest(outputs)
        if outputs:
            result = "unchanged" if digest == trace.digest else "sent_again" if trace.digest else "sent"
        if result == "unchanged":
            outputs = ()
        needs_mark = bool(outputs) or trace.first != trace.last
        trace.digest, trace.complete_ms = digest, due_ms
        if damaged:
            mapped.counts["damaged_part"] += damaged
        mark = Sent(trace.first, trace.last, digest) if needs_mark else None
        return Assembled(trace_id, result, outputs, mark, len(spans) + len(logs), mapped.counts, mapped.unmapped)

    def _load(self, trace: _WaitingTrace) -> _Loaded:
        """The spans and log records of a trace. A part that is damaged costs that part."""
        loaded = _Loaded([], [], 0)
        for value in self._store.parts(trace.owner):
            try:
                part = decode_part(value)
            except BadRecord:
                loaded = loaded._replace(damaged=loaded.damaged + 1)
            else:
                loaded.spans.extend(part.spans)
                loaded.logs.extend(part.logs)
        return loaded

    def _is_late(self, trace: _WaitingTrace, spans: list[Span]) -> bool:
        """Whether these spans are leftovers of a trace that was forgotten: no root, and ended long before they came."""
        if trace.has_root or trace.has_chain or trace.digest:
            return False
        ended_ms = max((span.end_ns for span in spans), default=0) // _NS_PER_MS
        return 0 < ended_ms < trace.opened_ms - self._late_ms

    def _shorten(self, trace: _WaitingTrace) -> None:
        whole = self._load(trace)
        found = shorten(Part(whole.spans, whole.logs), self._otel.max_trace_spans // 2, self._otel.max_trace_bytes // 2)
        kept = found.part
        self._store.drop(trace.owner)
        most = self._otel.max_trace_bytes
        values = encode_parts(kept.spans, kept.logs, most, most).values
        for value in values:
            self._store.add(trace.owner, value)
        self.left_out += found.left_out
        trace.spans, trace.size = len(kept.spans), sum(map(len, values))

    def _forget(self, trace_id: str, trace: _WaitingTrace) -> None:
        self._store.drop(trace.owner)
        del self._traces[trace_id]


def _digest(outputs: tuple[Output, ...]) -> bytes:
    if not outputs:
        return b""
    found = blake2b(digest_size=_DIGEST_BYTES)
    for output in outputs:
        found.update(len(output.value).to_bytes(8))
        found.update(output.value)
    return found.digest()
