"""How much of the raw encoder's speed the `model` lane keeps, on traces of the demo's own application.

`python -m benchmarks.model_lane [--traces 1000] [--backend onnx] [--rounds 2]`: canonical JSON records go through the
lane's pipeline as a worker runs it (decoded, in micro-batches, scored, tabulated), with an empty cache; the encoder
alone then encodes exactly the distinct texts that the lane asked for, in one call. Both have the same threads; the
best of the rounds counts, since other processes only ever slow things down, and the goal must be met in wall time and
in CPU time: on a busy machine wall time alone can be wrong either way.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.demo_faults import answered
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.text import sentences
from ragtide.evaluators.trace import Trace
from ragtide.stream.demo import corpus
from ragtide.stream.demo.index import Index
from ragtide.stream.demo.traffic import encode
from ragtide.stream.ingest.records import StoredRecord
from ragtide.stream.pipeline import Pipeline
from ragtide.stream.settings.loader import Settings

GOAL = 0.7
SLICE = 1_000


class Recorder:
    """The encoder, and which texts it was asked for."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.revision, self.dimension, self.count_tokens = encoder.revision, encoder.dimension, encoder.count_tokens
        self.texts: list[str] = []
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        self.calls += 1
        return self._encoder.encode(texts)


class Spent(NamedTuple):
    wall_s: float
    cpu_s: float


def timed(work: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Spent(time.perf_counter() - wall, time.process_time() - cpu)


def traffic(encoder: Encoder, count: int) -> list[Trace]:
    """What the demo's application answers to `count` questions, no fault on."""
    passages = corpus.read(lambda text: [sentence.text for sentence in sentences.split(text)])
    index = Index(passages, encoder)
    return answered(passages, index, encoder, None, random.Random("model lane"), count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=1_000)
    parser.add_argument("--backend", default="auto", choices=["auto", "onnx", "sentence-transformers"])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()

    chosen = EncoderSettings(backend=options.backend)
    encoder = load_encoder(chosen)
    traces = traffic(encoder, options.traces)
    now_ms = int(time.time() * 1_000)
    records = [StoredRecord("rag.traces", 0, i, now_ms, None, encode(trace)) for i, trace in enumerate(traces)]
    asked_for = sum(
        1
        + len(sentences.split(trace.answer or ""))
        + sum(len(sentences.split(c.text or "")) for c in trace.contexts or ())
        for trace in traces
    )

    lanes: list[Spent] = []
    raws: list[Spent] = []
    recorder = Recorder(encoder)
    for _ in range(options.rounds):
        recorder = Recorder(encoder)
        settings = Settings()
        plan = prepare(registry.load(), settings.evaluators, "model", recorder)
        resources = Resources(recorder, settings.evaluators.encoder.cache_bytes)
        pipeline = Pipeline(plan.prepared, resources, settings, lane="model")

        def lane(pipeline: Pipeline = pipeline) -> None:
            for start in range(0, len(records), SLICE):
                pipeline.process(records[start : start + SLICE])

        lanes.append(timed(lane))
        texts = list(dict.fromkeys(recorder.texts))
        if len(texts) != len(recorder.texts):
            raise AssertionError("a text was encoded twice")
        raws.append(timed(partial(encoder.encode, texts)))

    tokens = encoder.count_tokens(recorder.texts)
    lane_spent, raw_spent = min(lanes), min(raws)
    ratio = raw_spent.wall_s / lane_spent.wall_s
    print(
        f"{len(traces)} traces, {asked_for} texts, {len(recorder.texts)} of them distinct: {tokens} tokens "
        f"in {recorder.calls} encoder calls, backend {encoder.runtime}"
    )
    for name, spent in (("encoder", raw_spent), ("lane", lane_spent)):
        print(f"{name:8} {tokens / spent.wall_s:8.0f} tokens/s  {spent.wall_s:6.2f} s  {spent.cpu_s:6.2f} s CPU")
    print(f"{'traces':8} {len(traces) / lane_spent.wall_s:8.1f} a second")
    cpu = min(s.cpu_s for s in raws) / min(s.cpu_s for s in lanes)
    print(f"ratio    {ratio:8.2f} of wall time, {cpu:.2f} of CPU time (goal {GOAL})")
    return 0 if min(ratio, cpu) >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
