"""One partition of the topic of spans by trace, and a stage that reads it and can be killed anywhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from msgspec.structs import replace

from ragtide.stream.ingest.otel import LogEvent, Span, map_spans
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.worker.assembly.assembler import Assembled, Assembler
from ragtide.stream.worker.assembly.messages import encode_part, encode_sent
from ragtide.stream.worker.assembly.part_store import PartStore
from tests.stream.otel.scene import ANSWER, HOURS, QUESTION, oi, span

START_MS = 1_790_000_000_000  # as the spans' times
OTEL = OtelSettings()  # quiet for 30 s, open for 900 s at most, late for 300 s
FAR_MS = START_MS + 10**9


def rag_trace(trace_id: str, answer: str = ANSWER, **root: Any) -> list[Span]:
    """A chain with a retrieval and an LLM call; the root is the first span."""
    document: dict[str, Any] = {
        "retrieval__documents__0__document__id": "h",
        "retrieval__documents__0__document__content": HOURS,
    }
    spans = [
        span(1, 0, 0, 4, **oi("CHAIN", input__value=QUESTION, output__value=answer), **root),
        span(2, 1, 1, 2, **oi("RETRIEVER", input__value=QUESTION), **document),
        span(3, 1, 2, 3, **oi("LLM", llm__model_name="m")),
        span(4, 1, 3, 4, **oi("TOOL")),
    ]
    return [replace(one, trace_id=trace_id) for one in spans]


def part(*spans: Span, logs: Sequence[LogEvent] = ()) -> bytes:
    value = encode_part(spans, logs)
    assert value is not None
    return value


def expected(spans: Iterable[Span], logs: Sequence[LogEvent] = ()) -> dict[bytes, bytes]:
    """What the spans of one trace become when all of them are there."""
    return {str(one.fields["trace_id"]).encode(): one.encode() for one in map_spans(spans, logs).traces}


@dataclass
class Record:
    timestamp_ms: int
    trace_id: str
    value: bytes


@dataclass
class Stage:
    """Reads the log record by record. `sent` is every message sent, `traces` the newest of each key."""

    otel: OtelSettings = OTEL
    memory_bytes: int = 1 << 20
    log: list[Record] = field(default_factory=list)
    sent: list[tuple[bytes, bytes]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    committed: int = 0

    def __post_init__(self) -> None:
        self.restart()

    @property
    def traces(self) -> dict[bytes, bytes]:
        return dict(self.sent)

    def restart(self) -> None:
        """As after kill -9: nothing is left but the log and what was committed."""
        self.store = PartStore(self.memory_bytes)
        self.assembler = Assembler(self.otel, self.store, count(), len(self.log))
        self.next = self.committed

    def write(self, at_s: float, trace_id: str, value: bytes) -> None:
        self.log.append(Record(START_MS + round(at_s * 1000), trace_id, value))

    def read(self, *, dies_at: str = "") -> None:
        """Read the log to its end. `dies_at`: a step of the next record with complete traces, or of the last one."""
        while self.next < len(self.log):
            record, offset = self.log[self.next], self.next
            complete = self.assembler.feed(offset, record.timestamp_ms, record.trace_id, record.value)
            self.next += 1
            is_last = self.next == len(self.log)
            if self._finish(complete, dies_at if complete or is_last else ""):
                return

    def advance(self, to_ms: int = FAR_MS) -> None:
        """Read to the end; nothing more comes until then."""
        self.read()
        self._finish(self.assembler.advance(to_ms), "")
        self.read()

    def _finish(self, complete: Sequence[Assembled], dies_at: str) -> bool:
        hold = self.assembler.hold
        upto = self.next if hold is None else min(self.next, hold)
        now_ms = self.log[min(self.next, len(self.log)) - 1].timestamp_ms if self.log else START_MS
        for step in ("send", "mark", "commit"):
            if step == dies_at:
                self.restart()
                return True
            if step == "send":
                self.sent += (output for one in complete for output in one.outputs)
                self.results += (one.result for one in complete)
            elif step == "mark":
                for one in complete:
                    if one.mark is not None:
                        self.log.append(Record(now_ms, one.trace_id, encode_sent(one.mark)))
            else:
                self.committed = max(self.committed, upto)
        return False
