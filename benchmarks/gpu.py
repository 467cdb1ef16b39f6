"""The whole `model` lane on a GPU: traces a second, share of the card's peak, and against each evaluator for itself.

`python -m benchmarks.gpu [--traces 512] [--layers 12] [--rounds 3] [--workers 2 4] [--device cuda]`: prints that there
is no GPU where there is none, and measures nothing. Traces of ordinary size go through every evaluator of the lane that
runs without further files, in one micro-batch with empty caches: the packaged encoder, classifiers of BERT base's shape
and a language model of distilgpt2's, weights random. Then the same forward passes alone, on batches made beforehand;
then the naive way, which asks the same models on the same card, each evaluator for itself, trace by trace; and last
several processes on the card, each with traces of its own. The card's peak is what a large matrix product in bfloat16
reaches in the same run; the lane's operations are those that torch counts, padding among them. Wall time, the best of
the rounds; `--device cpu` with few traces and layers tries the benchmark itself.
"""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.gpu_lane import Lane, Passes, at_once, load_lane, recorded, write_models
from benchmarks.model_lane import timed
from benchmarks.prose_traces import prose_traces
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.runtime.torch_device import device_of
from ragtide.evaluators.trace import Trace
from ragtide.stream.worker.process import collect_garbage_seldom

NAIVE_TRACES = 8
SIDE = 8_192  # of the matrices whose product is the peak
MIB = 1 << 20


def naively(lane: Lane, traces: Sequence[Trace]) -> None:
    """Each evaluator for itself, trace by trace."""
    for prepared in lane.plan:
        for trace in traces:
            if prepared.selects(trace):
                lane.run([trace], [prepared])


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


def forward(passes: Sequence[Passes]) -> None:
    """The models alone."""
    for batches, read in passes:
        batches.run(iter(read))


def operations(passes: Sequence[Passes]) -> int:
    """Multiplications and additions of the passes, as torch counts them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        forward(passes)
    return int(counter.get_total_flops())


def told(lane: Lane, used: Resources, device: Any) -> str:
    """Memory: what was taken, of what is set."""
    import torch

    taken = (
        ("portions", used.largest_portion_bytes, used.portion_bytes),
        ("vectors kept", used.cache.size_bytes, used.cache.limit_bytes),
        ("answers kept", used.answers.size_bytes, used.answers.limit_bytes),
    )
    parts = [f"{name} {size / MIB:.0f} of {limit / MIB:.0f} MiB" for name, size, limit in taken]
    if device.type == "cuda":
        parts.append(f"on the card {torch.cuda.max_memory_allocated(device) / MIB:.0f} MiB at most")
    return ", ".join(parts)


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=512)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--device", default="cuda")
    options = parser.parse_args()
    if options.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU here: nothing is measured")
        return 0

    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    device = device_of(options.device)
    traces = prose_traces(options.traces)
    with TemporaryDirectory() as name:
        folder = Path(name)
        texts = [text for trace in traces for text in (trace.question or "", trace.answer or "")]
        write_models(folder, options.device, options.layers, texts)
        lane = load_lane(folder)
        with recorded() as passes:
            lane.run(traces)  # kernels are chosen
        collect_garbage_seldom()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        seconds = min(timed(partial(lane.run, traces)).wall_s for _ in range(options.rounds))
        memory = told(lane, lane.run(traces), device)
        alone = min(timed(partial(forward, passes)).wall_s for _ in range(options.rounds))
        few = traces[:NAIVE_TRACES]
        naive = timed(partial(naively, lane, few)).wall_s / len(few)
        work, best = operations(passes), peak(device, SIDE if device.type == "cuda" else SIDE // 16)
        card = torch.cuda.get_device_name(device) if device.type == "cuda" else "the CPU"
        print(f"{len(traces)} traces, {len(lane.plan)} evaluators on {card}, torch {torch.__version__}")
        _tell("one worker", len(traces) / seconds, work / len(traces), best)
        _tell("the forward passes alone", len(traces) / alone, work / len(traces), best)
        print(f"{naive * len(traces) / seconds:8.1f} times as fast as each evaluator for itself, trace by trace")
        print(f"memory: {memory}")
        del lane, passes
        for workers in options.workers:
            _tell(f"{workers} workers", at_once(folder, len(traces), workers, options.rounds), work / len(traces), best)
    return 0


def _tell(what: str, rate: float, operations: float, best: float) -> None:
    share = rate * operations / best
    print(f"{what:26} {rate:8.1f} traces/s, {rate * operations / 1e12:8.2f} TFLOP/s, {share:.2f} of the peak")


if __name__ == "__main__":
    raise SystemExit(main())
