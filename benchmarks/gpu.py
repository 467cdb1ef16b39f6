"""The whole `model` lane on a GPU: traces a second, share of the card's peak, and against each evaluator for itself.

`python -m benchmarks.gpu [--traces 512] [--layers 12] [--rounds 2] [--device cuda]`: prints that there is no GPU where
there is none, and measures nothing. Traces of ordinary size go through every evaluator of the lane that runs without
further files, in one micro-batch with empty caches: the packaged encoder, classifiers of BERT base's shape and a
language model of distilgpt2's, weights random. The card's peak is what a large matrix product in bfloat16 reaches in
the same run; the lane's operations are those that torch counts, padding among them. The naive way asks the same models
on the same card, each evaluator for itself, trace by trace. Wall time, the best of the rounds; `--device cpu` with few
traces and layers tries the benchmark itself.
"""

import argparse
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.classifiers import ENCODER, EVALUATORS, models_of
from benchmarks.language_models import made
from benchmarks.model_lane import timed
from benchmarks.prose_traces import prose_traces
from evaluators import registry
from evaluators.encoder import Encoder, load_encoder
from evaluators.models import Model, Models
from evaluators.outcome import Scored
from evaluators.plan import Prepared, prepare, wanted_models
from evaluators.resources import Resources
from evaluators.run import run_all
from evaluators.runtime.torch_device import device_of
from evaluators.settings import EvaluatorSettings
from evaluators.spec import ModelRef, Need
from evaluators.trace import Trace

NAIVE_TRACES = 8
SIDE = 8_192  # of the matrices whose product is the peak

Loaded = Mapping[ModelRef, Model]


def lane(plan: Sequence[Prepared], traces: Sequence[Trace], encoder: Encoder, models: Loaded) -> int:
    """One micro-batch with empty caches; how many outcomes are scores."""
    outcomes = run_all(plan, traces, Resources(encoder, models=models).batch())
    return sum(isinstance(outcome, Scored) for column in outcomes for outcome in column)


def naively(plan: Sequence[Prepared], traces: Sequence[Trace], encoder: Encoder, models: Loaded) -> int:
    """Each evaluator for itself, trace by trace."""
    return sum(lane([prepared], [trace], encoder, models) for prepared in plan for trace in traces)


def peak(device: Any, side: int) -> float:
    """Operations a second of a product of two square matrices in bfloat16, the best of several."""
    import torch

    one = torch.randn(side, side, device=device, dtype=torch.bfloat16)

    def product() -> None:
        for _ in range(4):
            torch.matmul(one, one)
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    return 4 * 2 * side**3 / min(timed(product).wall_s for _ in range(5))


def operations(plan: Sequence[Prepared], traces: Sequence[Trace], encoder: Encoder, models: Loaded) -> int:
    """Multiplications and additions of one micro-batch, as torch counts them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        lane(plan, traces, encoder, models)
    return int(counter.get_total_flops())


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=512)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU here: nothing is measured")
        return 0

    device = device_of(options.device)
    evaluators = {id: one for id, one in registry.load().items() if one.method in ("embedding", "lm")}
    settings = EvaluatorSettings(enabled=(*evaluators, *EVALUATORS))
    encoder = load_encoder(ENCODER.model_copy(update={"backend": "sentence-transformers", "device": options.device}))
    traces = prose_traces(options.traces)
    with TemporaryDirectory() as folder:
        texts = [text for trace in traces for text in (trace.question or "", trace.answer or "")]
        language_model = made(Path(folder), texts)
    refs = wanted_models(registry.load(), settings, None)
    models: dict[ModelRef, Model] = {ref: language_model for ref in refs if ref.need is Need.LM}
    models |= models_of(EvaluatorSettings(enabled=EVALUATORS), options.layers)
    plan = prepare(registry.load(), settings, None, encoder, Models(models)).prepared

    lane(plan, traces, encoder, models)  # sizes of batches are found, kernels chosen
    seconds = min(timed(partial(lane, plan, traces, encoder, models)).wall_s for _ in range(options.rounds))
    few = traces[:NAIVE_TRACES]
    naive = timed(partial(naively, plan, few, encoder, models)).wall_s / len(few)
    rate = operations(plan, traces, encoder, models) / seconds
    best = peak(device, SIDE if device.type == "cuda" else SIDE // 16)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
    print(f"{len(traces)} traces, {len(plan)} evaluators on {name}")
    print(f"{len(traces) / seconds:8.1f} traces/s, {rate / 1e12:.2f} TFLOP/s, {rate / best:.2f} of the peak")
    print(f"{naive * len(traces) / seconds:8.2f} times as fast as each evaluator for itself, trace by trace")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
