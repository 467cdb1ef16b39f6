"""Spans through decoding and assembly per second on one core, and the memory of many open traces.

`python -m benchmarks.otel_assembly [--traces 500] [--open 100000]`: the same spans as `benchmarks.otel_decode`.
Assembly is all that stage `assemble` does, without Kafka: it decodes batches, sorts spans by trace, encodes and decodes
the parts in between, decides that traces are complete, maps them and writes canonical JSON. The ratio is to the plain
loop that only decodes the same protobuf. Open traces have six spans; beyond otel.memory_bytes they are on disk.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count

import psutil

from benchmarks.otel_decode import PIPELINES, SPANS, batches, decode, decode_and_map, plain, recorded
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.settings.otel import OtelSettings
from ragtide.stream.worker.assembly.assembler import Assembler
from ragtide.stream.worker.assembly.part_store import PartStore
from ragtide.stream.worker.assembly.rekeying import rekey
from ragtide.stream.worker.process import collect_garbage_seldom

GOAL_RATE = 10_000  # spans a second
GOAL_BYTES = 1 << 30  # of memory, with the open traces
SLICE = 100  # messages
LARGEST = 1 << 20
FAR_MS = 10**9


def assemble(messages: Sequence[bytes]) -> int:
    """Everything that the stage does with these messages, without Kafka."""
    otel = OtelSettings()
    assembler = Assembler(otel, PartStore(otel.memory_bytes), count())
    offset = complete = 0
    for start in range(0, len(messages), SLICE):
        records = [StoredRecord("otlp_spans", 0, 0, 1, None, one) for one in messages[start : start + SLICE]]
        for output in rekey(records, otel, LARGEST).outputs:
            complete += len(assembler.feed(offset, offset, output.key.decode(), output.value))
            offset += 1
    return complete + len(assembler.advance(FAR_MS))


def measure(label: str, messages: Sequence[bytes], rounds: int) -> tuple[float, float]:
    """Print every loop's rate; return the rate of assembly and its share of the plain loop's."""
    loops: tuple[Callable[[Sequence[bytes]], int], ...] = (plain, decode, decode_and_map, assemble)
    spans = plain(messages)
    seconds = dict.fromkeys((loop.__name__ for loop in loops), float("inf"))
    for _ in range(rounds):
        for loop in loops:
            began = time.process_time()
            loop(messages)
            seconds[loop.__name__] = min(seconds[loop.__name__], time.process_time() - began)
    print(f"\n{label}: {spans:,} spans, CPU time, best of {rounds}")
    for name, taken in seconds.items():
        each, ratio = taken / spans * 1e6, seconds["plain"] / taken
        print(f"  {name:16}{spans / taken:11,.0f} spans/s {each:7.1f} µs a span   {ratio:5.2f} of plain")
    return spans / seconds["assemble"], seconds["plain"] / seconds["assemble"]


def open_traces(number: int, memory_bytes: int) -> int:
    """Print and return the memory that open traces take; their root is missing."""
    process = psutil.Process()
    [output] = rekey(
        [StoredRecord("otlp_spans", 0, 0, 1, None, one) for one in batches(1, 1_024)], OtelSettings(), LARGEST
    ).outputs
    with tempfile.TemporaryDirectory() as directory:
        store = PartStore(memory_bytes, directory)
        assembler = Assembler(OtelSettings(quiet_s=1e6, max_open_s=1e6), store, count())
        before, began = process.memory_info().rss, time.process_time()
        for trace in range(number):
            assembler.feed(trace, trace, f"{trace:032x}", bytes(bytearray(output.value)))
        seconds, taken = time.process_time() - began, process.memory_info().rss - before
        total = store.memory_bytes + store.disk_bytes
        print(
            f"\n{number:,} open traces of {SPANS} spans, {total / number:,.0f} bytes each: {taken / 2**20:,.0f} MiB of "
            f"memory, {store.disk_bytes / 2**20:,.0f} MiB on disk, {seconds / number * 1e6:.0f} µs of CPU each"
        )
        began = time.process_time()
        found = sum(len(store.parts(owner)) for owner in range(0, number, 100))
        print(f"  {(time.process_time() - began) / found * 1e6:.0f} µs to read one back")
        store.close()
    return taken


def main() -> int:
    """0 where assembly reached `GOAL_RATE` with all spans and open traces stayed within `GOAL_BYTES`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--open", type=int, default=100_000)
    chosen = parser.parse_args()
    collect_garbage_seldom()  # as the worker does, and for the plain loop alike
    taken = open_traces(chosen.open, OtelSettings().memory_bytes)
    inputs = {name: recorded(name, chosen.traces) for name in PIPELINES}
    inputs |= {f"six spans with {size:,} characters": batches(chosen.traces, size) for size in (1_024, 8_192)}
    measured = [measure(label, messages, chosen.rounds) for label, messages in inputs.items()]
    slowest, ratios = min(rate for rate, _ in measured), [ratio for _, ratio in measured]
    print(f"\nassembly is {min(ratios):.2f} to {max(ratios):.2f} of the plain loop")
    print(f"goal {GOAL_RATE:,} spans/s: {'reached' if slowest >= GOAL_RATE else 'missed'}, {slowest:,.0f}")
    print(f"goal {GOAL_BYTES >> 20:,} MiB: {'reached' if taken <= GOAL_BYTES else 'missed'}, {taken >> 20:,}")
    return 0 if slowest >= GOAL_RATE and taken <= GOAL_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
