"""What was sent, and what must therefore be stored: windows recomputed in plain Python from the ledger."""

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

APPS = ("support", "search", "docs")
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Sent:
    """One trace as the producer sent it; `latency_s` is a multiple of 1/8, so that sums are exact in any order."""

    trace_id: str
    app: str
    time: datetime
    latency_s: float | None
    answer_words: int

    def message(self) -> bytes:
        """The canonical trace on the wire."""
        body: dict[str, object] = {
            "trace_id": self.trace_id,
            "time": self.time.isoformat(),
            "app": self.app,
            "question": "what is a window",
            "answer": " ".join(["word"] * self.answer_words),
        }
        if self.latency_s is not None:
            body["latency"] = {"total_s": self.latency_s}
        return json.dumps(body).encode()


@dataclass(frozen=True, slots=True)
class Expected:
    """A window of one metric."""

    seen: int
    scored: int
    sum: float


@dataclass(slots=True)
class Ledger:
    """Every message in the order sent; of two with one id the later counts."""

    messages: list[Sent] = field(default_factory=list)

    @property
    def traces(self) -> dict[str, Sent]:
        """The trace that each id stands for."""
        return {sent.trace_id: sent for sent in self.messages}

    def windows(self) -> dict[tuple[str, datetime, str], Expected]:
        """(app, minute, metric) to what its window must hold."""
        by_window: dict[tuple[str, datetime], list[Sent]] = defaultdict(list)
        for sent in self.traces.values():
            by_window[sent.app, sent.time.replace(second=0, microsecond=0)].append(sent)
        expected = {}
        for (app, start), rows in by_window.items():
            latencies = [row.latency_s for row in rows if row.latency_s is not None]
            words = [row.answer_words for row in rows]
            expected[app, start, "operations.latency_seconds"] = Expected(len(rows), len(latencies), sum(latencies))
            expected[app, start, "inputs.answer_words"] = Expected(len(rows), len(rows), float(sum(words)))
        return {key: window for key, window in expected.items() if window.scored}


def make(count: int, seed: int, now: datetime) -> Ledger:
    """`count` distinct traces of the last ten minutes, a tenth of them sent twice with other contents."""
    dice = random.Random(seed)
    begin = (now - 10 * MINUTE).astimezone(UTC)

    def one(number: int) -> Sent:
        return Sent(
            trace_id=f"trace-{number}",
            app=APPS[number % len(APPS)],
            time=begin + timedelta(milliseconds=number * 8 * 60_000 // count),
            latency_s=None if number % 10 == 0 else dice.randrange(1, 80) / 8,
            answer_words=dice.randrange(1, 30),
        )

    ledger = Ledger([one(number) for number in range(count)])
    for number in dice.sample(range(count), count // 10):
        ledger.messages.append(one(number))
    return ledger
