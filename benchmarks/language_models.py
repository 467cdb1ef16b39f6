"""How much of a language model's own speed its evaluators keep, and what reading shared beginnings once saves.

`python -m benchmarks.language_models [--traces 8] [--rounds 2]`: a model of distilgpt2's shape with random weights and
a byte-level tokenizer trained on the demo's corpus reads traces of ordinary size, one thread. First perplexity, through
the engine, against the model alone, which reads exactly the same tokens in the same batches and gives their logits,
nothing done with them. Then GPTScore of questions and answers with shared beginnings read once, against reading them
every time and against one ask at a time; and all five evaluators on a quarter of the traces. Best of the rounds; the
goals must be met in wall and in CPU time.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.model_lane import Spent, timed
from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.evaluators.models import Models, load
from ragtide.evaluators.models.causal import CausalModel
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.runtime.batches import pack
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Ask, ModelRef, Need, Vectors
from ragtide.evaluators.trace import Trace

OF_THE_MODEL, OF_READING_ALL = 0.8, 2.0  # goals: of the raw rate, and of gptscore_question_answering without sharing
SHAPE = {"n_layer": 6, "vocab_size": 50_257}  # distilgpt2; the rest is GPT-2's default


def made(folder: Path, texts: Sequence[str]) -> CausalModel:
    """A model of distilgpt2's shape."""
    loaded = load(ModelRef(Need.LM, str(written(folder, texts))), EvaluatorSettings())
    assert isinstance(loaded, CausalModel)
    return loaded


def written(folder: Path, texts: Sequence[str]) -> Path:
    """Its files."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=SHAPE["vocab_size"], initial_alphabet=alphabet))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=1_024).save_pretrained(folder)
    GPT2LMHeadModel(GPT2Config(**SHAPE, initializer_range=0.1)).save_pretrained(folder)
    return folder


class Recorder:
    """The model, and what it was asked."""

    def __init__(self, model: CausalModel) -> None:
        self._model = model
        self.revision = model.revision
        self.asks: list[Ask] = []

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        self.asks += asks
        return self._model.answer(asks)


def run(ids: Sequence[str], traces: Sequence[Trace], model: CausalModel) -> list[Ask]:
    """The evaluators over one micro-batch; what they asked."""
    recorder = Recorder(model)
    settings = EvaluatorSettings(enabled=tuple(ids), tasks=dict.fromkeys(ids, ("*",)))
    models = Models({ModelRef(Need.LM, "distilgpt2"): recorder})
    plan = prepare(registry.load(), settings, None, None, models)
    outcomes = run_all(plan.prepared, traces, Resources(models=models.loaded).batch())
    if not all(isinstance(outcome, Scored) for column in outcomes for outcome in column):
        raise AssertionError("a trace was not scored")
    return recorder.asks


def raw(model: CausalModel, asks: Sequence[Ask]) -> Callable[[], None]:
    """The model's own forward pass over the same windows, tokenized, sorted and padded beforehand."""
    import torch

    windows = [tokens for found in model._windows(asks) for tokens, _ in found or ()]
    batches = []
    for batch in pack([len(tokens) for tokens in windows], model._batches):
        ids = torch.zeros(len(batch), max(len(windows[i]) for i in batch), dtype=torch.int64)
        for row, i in enumerate(batch):
            ids[row, : len(windows[i])] = torch.tensor(windows[i])
        batches.append(ids)

    def forward() -> None:
        with torch.inference_mode():
            for ids in batches:
                model._model(input_ids=ids, use_cache=False)

    return forward


def best(work: Callable[[], object], rounds: int) -> Spent:
    spent = [timed(work) for _ in range(rounds)]
    return Spent(min(each.wall_s for each in spent), min(each.cpu_s for each in spent))


def told(name: str, slow: Spent, fast: Spent, goal: float | None = None) -> bool:
    """Prints how often the fast way fits into the slow one; whether the goal is met."""
    wall, cpu = slow.wall_s / fast.wall_s, slow.cpu_s / fast.cpu_s
    against = "" if goal is None else f" (goal {goal:g})"
    print(f"{name:52} {wall:5.2f} of wall time, {cpu:5.2f} of CPU time{against}")
    return goal is None or min(wall, cpu) >= goal


def compared(name: str, model: CausalModel, asks: Sequence[Ask], rounds: int, goal: float | None = None) -> bool:
    """What reading shared beginnings once saves on these asks; whether the goal is met."""
    once = best(lambda: model.answer(asks), rounds)
    together = model.answer(asks)
    model._shares = False
    every_time = best(lambda: model.answer(asks), rounds)
    apart = model.answer(asks)
    one_by_one = timed(lambda: [model.answer([ask]) for ask in asks])
    model._shares = True
    print(f"{name}: {len(asks)} asks, answers differ by {float(np.abs(together / apart - 1).max()):.0e} at most")
    met = told("  beginnings read once against every time", every_time, once, goal)
    told("  against one ask at a time", one_by_one, once)
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    traces = prose_traces(options.traces)
    texts = [text for trace in prose_traces(400) for text in (trace.question or "", trace.answer or "")]
    with tempfile.TemporaryDirectory() as folder:
        model = made(Path(folder), texts)

    asks = run(["perplexity"], traces, model)
    tokens = int(model.answer(asks)[:, 1].sum())
    alone = best(raw(model, asks), options.rounds)
    ours = best(lambda: run(["perplexity"], traces, model), options.rounds)
    print(
        f"{len(traces)} traces, {tokens} tokens in their answers: the model alone {tokens / alone.wall_s:.0f} a second"
    )
    kept = told("perplexity against the model alone", alone, ours, OF_THE_MODEL)

    families = [id for id, each in registry.load().items() if each.method == "lm"]
    answering = run(["gptscore_question_answering"], traces, model)
    saved = compared("gptscore_question_answering", model, answering, options.rounds, OF_READING_ALL)
    compared("all five", model, run(families, traces[: max(1, len(traces) // 4)], model), 1)
    return 0 if kept and saved else 1


if __name__ == "__main__":
    raise SystemExit(main())
