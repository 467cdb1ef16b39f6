"""The `model` lane on one device as a worker's process runs it, and several such processes at once."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.classifiers import ENCODER, EVALUATORS, bert_base
from benchmarks.language_models import written
from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.models import Models, load_models
from ragtide.evaluators.plan import PreparedEvaluator, prepare, wanted_models
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.runtime.torch_batches import Batch, TorchBatches
from ragtide.evaluators.settings import EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import Need, Vectors
from ragtide.evaluators.trace import Trace
from ragtide.stream.worker.process import collect_garbage_seldom

_PATIENCE_S = 300  # until every process has loaded its models
_start: list[Barrier] = []  # of this process, one


@dataclass(frozen=True, slots=True)
class Lane:
    """What a process loads once."""

    plan: Sequence[PreparedEvaluator]
    encoder: Encoder
    models: Models
    settings: EvaluatorSettings

    def run(self, traces: Sequence[Trace], plan: Sequence[PreparedEvaluator] | None = None) -> Resources:
        """One micro-batch with empty caches; what it took."""
        resources = Resources(
            self.encoder,
            self.settings.encoder.cache_bytes,
            self.models.loaded,
            self.settings.answers_cache_bytes,
            self.settings.portion_bytes,
        )
        run_all(self.plan if plan is None else plan, traces, resources.batch())
        return resources


class Passes(NamedTuple):
    """The forward passes that a model was asked for in one call."""

    batches: TorchBatches
    read: Sequence[Batch]


def write_models(folder: Path, device: str, layers: int, texts: Sequence[str]) -> None:
    """Classifiers of BERT base's shape and a language model of distilgpt2's, weights random, and settings with them."""
    evaluators = [id for id, one in registry.load().items() if one.method in ("embedding", "lm")]
    enabled = EvaluatorSettings(enabled=(*evaluators, *EVALUATORS))
    models = {}
    for number, ref in enumerate(wanted_models(registry.load(), enabled, None)):
        own = folder / str(number)
        if ref.need is Need.LM:
            written(own, texts)
        else:
            bert_base(own, ref.labels if len(ref.labels) != 1 else (*ref.labels, "other"), layers)
        models[ref.name] = ModelSettings(source=str(own), backend="torch", device=device)
    encoder = ENCODER.model_copy(update={"backend": "sentence-transformers", "device": device})
    settings = enabled.model_copy(update={"models": models, "encoder": encoder})
    (folder / "settings.json").write_text(settings.model_dump_json())


def load_lane(folder: Path) -> Lane:
    """Of the settings in the folder."""
    settings = EvaluatorSettings.model_validate_json((folder / "settings.json").read_text())
    encoder = load_encoder(settings.encoder)
    models = load_models(wanted_models(registry.load(), settings, None), settings)
    return Lane(prepare(registry.load(), settings, None, encoder, models).prepared, encoder, models, settings)


@contextmanager
def recorded() -> Iterator[list[Passes]]:
    """What models read meanwhile."""
    passes: list[Passes] = []
    run = TorchBatches.run

    def recording(self: TorchBatches, batches: Iterator[Batch]) -> Vectors:
        read = list(batches)
        passes.append(Passes(self, read))
        return run(self, iter(read))

    with patch.object(TorchBatches, "run", recording):
        yield passes


def at_once(folder: Path, traces: int, workers: int, rounds: int) -> float:
    """Traces a second of so many processes on one device, each with so many traces of its own; the best round."""
    context = get_context("spawn")
    start = (context.Barrier(workers),)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_joined, initargs=start) as pool:
        given = list(pool.map(_timed, [folder] * workers, [traces] * workers, range(workers), [rounds] * workers))
    spans: list[float] = [
        max(end for _, end in of_round) - min(start for start, _ in of_round) for of_round in zip(*given, strict=True)
    ]
    return workers * traces / min(spans)


def _joined(start: Barrier) -> None:
    _start.append(start)


def _timed(folder: Path, traces: int, seed: int, rounds: int) -> list[tuple[float, float]]:
    """When each round began and ended, by a clock that all processes of the machine share."""
    lane, own = load_lane(folder), prose_traces(traces, seed)
    lane.run(own)  # kernels are chosen
    collect_garbage_seldom()
    spans = []
    for _ in range(rounds):
        _start[0].wait(_PATIENCE_S)
        started = time.perf_counter()
        lane.run(own)
        spans.append((started, time.perf_counter()))
    return spans
