"""What every fault of the demo does to the metrics that the demo watches: means of windows over many seeds.

`python -m benchmarks.demo_faults [--seeds 10]`: no broker, no database, no clock. Ends with 1 where a fault moves a
metric that it should not, leaves one that it should move, or a window without a fault is beyond a limit.
"""

import argparse
import asyncio
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.plan import Plan, prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.spec import Vectors
from ragtide.evaluators.text import sentences
from ragtide.evaluators.trace import Trace
from ragtide.stream.demo import corpus
from ragtide.stream.demo.application import Application
from ragtide.stream.demo.corpus import Passage
from ragtide.stream.demo.faults import FAULTS, Fault
from ragtide.stream.demo.index import Index
from ragtide.stream.demo.questions import ask_about
from ragtide.stream.demo.shown_metrics import ShownMetric, shown_metrics
from ragtide.stream.settings.loader import Settings, load

WINDOW = 200  # traces: 20 a second for 10 seconds
SHOWN = tuple(dict.fromkeys(metric for fault in FAULTS.values() for metric in fault.moves))


class Remembering:
    """The encoder, each text encoded once: windows of many seeds ask the same questions."""

    def __init__(self, encoder: Encoder) -> None:
        self.revision, self.dimension, self.count_tokens = encoder.revision, encoder.dimension, encoder.count_tokens
        self._encoder = encoder
        self._vectors: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            self._vectors.update(zip(new, self._encoder.encode(new), strict=True))
        return np.array([self._vectors[text] for text in texts], np.float32).reshape(len(texts), self.dimension)


class Bench:
    """The demo's application and evaluators, as `demo.toml` has them, without broker and database."""

    def __init__(self) -> None:
        self.settings: Settings = load(Path(str(corpus.__file__)).with_name("demo.toml"), {}).settings
        self.encoder = Remembering(load_encoder(self.settings.evaluators.encoder))
        self.passages = corpus.read(lambda text: [sentence.text for sentence in sentences.split(text)])
        self.index = Index(self.passages, self.encoder)
        evaluators = with_encoder_thresholds(registry.load(), self.settings.evaluators)
        self.plan: Plan = prepare(evaluators, self.settings.evaluators, None, self.encoder)
        self.shown_metrics: tuple[ShownMetric, ...] = shown_metrics(evaluators.values(), self.settings.rules, SHOWN)
        self._resources = Resources(self.encoder)

    def traces(self, fault: Fault | None, seed: int, count: int = WINDOW) -> list[Trace]:
        """The traces of one window."""
        rng = random.Random(f"traffic {seed}")
        return answered(self.passages, self.index, self.encoder, fault, rng, count)

    def means(self, traces: Sequence[Trace]) -> Mapping[str, float]:
        """The mean of every metric over the traces that have it."""
        values = values_of(self.plan, self._resources, traces)
        return {metric: sum(found) / len(found) for metric, found in values.items()}


def answered(
    passages: Sequence[Passage], index: Index, encoder: Encoder, fault: Fault | None, rng: random.Random, count: int
) -> list[Trace]:
    """What the demo's application answers to `count` questions."""

    async def ask() -> list[Trace]:
        with ThreadPoolExecutor(1) as executor:
            application = Application(index, encoder, executor, lambda: datetime.now(UTC))
            questions = (ask_about(passages, rng) for _ in range(count))
            return await asyncio.gather(*(application.answer(question, fault, rng) for question in questions))

    return asyncio.run(ask())


def values_of(plan: Plan, resources: Resources, traces: Sequence[Trace]) -> dict[str, list[float]]:
    """Every metric of the plan: its value for each trace that has one."""
    values: dict[str, list[float]] = defaultdict(list)
    outcomes = run_all(plan.prepared, traces, resources.batch())
    for prepared, row in zip(plan.prepared, outcomes, strict=True):
        for outcome in row:
            if isinstance(outcome, Scored):
                for key, value in outcome.metrics.items():
                    values[f"{prepared.evaluator.id}.{key}"].append(value)
    return values


def spread(windows: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """Least and greatest mean of each metric."""
    found: dict[str, list[float]] = defaultdict(list)
    for means in windows:
        for metric, mean in means.items():
            found[metric].append(mean)
    return {metric: (min(means), max(means)) for metric, means in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="windows of each fault")
    seeds = range(parser.parse_args().seeds)
    bench = Bench()
    wrong = 0
    for fault in (None, *FAULTS.values()):
        ranges = spread(bench.means(bench.traces(fault, seed)) for seed in seeds)
        print(f"\n{fault.name if fault else 'no fault'}: least and greatest mean of {len(seeds)} windows of {WINDOW}")
        for one in bench.shown_metrics:
            low, high = ranges[one.metric]
            good = one.good(low) and one.good(high)
            bad = not one.good(low) and not one.good(high)
            expected = bad if fault and one.metric in fault.moves else good
            wrong += not expected
            side = "bad" if bad else "good" if good else "both"
            print(f"  {one.metric:45} {low:8.4f} {high:8.4f}  limit {one.low or one.high}  {side}")
    print("\nevery fault moves its metrics and no others" if not wrong else f"\n{wrong} not as the table says")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
