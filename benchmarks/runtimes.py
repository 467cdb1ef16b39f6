"""ONNX Runtime, torch and int8 on the same texts, one thread: how fast, and by how much int8's scores are off.

`python -m benchmarks.runtimes [--texts 200] [--layers 3] [--rounds 3]`: the packaged MiniLM with its real weights, and
a classifier of BERT base's shape with fewer layers and random weights, so that it takes no more than two minutes on 2
cores. Of MiniLM the cosines of all pairs of texts are compared, of the classifier the probabilities; what a trained
classifier's are off by, its own check says as a worker starts. Best CPU time of the rounds.
"""

import argparse
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.classifiers import bert_base
from benchmarks.model_lane import timed
from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.models import load
from ragtide.evaluators.runtime.int8 import similarities
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import ModelRef, Need, Vectors
from ragtide.evaluators.text.sentences import split
from ragtide.stream.demo import corpus

ANY = 10.0  # int8 whatever its scores: how far they are off is what is told
LEAST_GAIN = 1.3  # below that int8 is not worth its difference
Read = Callable[[Sequence[str]], Vectors]


def prose(count: int) -> list[str]:
    """Sentences and passages, half of each."""
    passages = corpus.read(lambda text: [sentence.text for sentence in split(text)])
    chosen = random.Random("runtimes").sample(passages, count // 2)
    return [text for passage in chosen for text in (" ".join(passage.sentences)[:1_500], passage.sentences[0])]


def encoders() -> dict[str, Read]:
    """The packaged encoder, by runtime."""

    def loaded(backend: str, tolerance: float | None = None) -> Read:
        settings = {"model": PACKAGED_MODEL, "device": "cpu", "backend": backend, "int8_tolerance": tolerance}
        return load_encoder(EncoderSettings.model_validate(settings)).encode

    return {"onnx": loaded("onnx"), "torch": loaded("sentence-transformers"), "int8": loaded("onnx", ANY)}


def classifiers(folder: Path) -> dict[str, Read]:
    """The classifier of the folder, by runtime."""
    ref = ModelRef(Need.CLASSIFIER, "random", ("rude", "kind"))

    def loaded(backend: str, tolerance: float | None = None) -> Read:
        own = {"source": str(folder), "device": "cpu", "backend": backend, "int8_tolerance": tolerance}
        model = load(ref, EvaluatorSettings(models={"random": ModelSettings.model_validate(own)}))
        return lambda texts: model.answer([(text,) for text in texts])

    return {"onnx": loaded("onnx"), "torch": loaded("torch"), "int8": loaded("onnx", ANY)}


def compared(
    name: str, reads: Mapping[str, Read], texts: Sequence[str], rounds: int, scores: Callable[[Vectors], Vectors]
) -> float:
    """Prints a line for each runtime; how many times as fast as the faster of the others int8 is."""
    spent: dict[str, float] = {}
    for _ in range(rounds):
        for runtime, read in reads.items():
            spent[runtime] = min(spent.get(runtime, float("inf")), timed(partial(read, texts)).cpu_s)
    exact = scores(reads["onnx"](texts))
    for runtime, read in reads.items():
        off = np.abs(scores(read(texts)) - exact)
        print(
            f"{name:10} {runtime:6} {len(texts) / spent[runtime]:8.1f} texts/s  "
            f"off by {off.max():.4f} at most, {off.mean():.5f} on average"
        )
    return min(spent["onnx"], spent["torch"]) / spent["int8"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    texts = prose(options.texts)
    gain = compared("MiniLM", encoders(), texts, options.rounds, similarities)
    with TemporaryDirectory() as folder:
        reads = classifiers(bert_base(Path(folder), ("rude", "kind"), options.layers))
        other = compared("classifier", reads, texts[: options.texts // 4], options.rounds, lambda given: given)
    print(f"{gain:8.2f} and {other:.2f}: int8 against the faster of the others, in CPU time (limit {LEAST_GAIN})")
    return 0 if min(gain, other) >= LEAST_GAIN else 1


if __name__ == "__main__":
    raise SystemExit(main())
