"""All embedding evaluators together: against the encoder alone, and against each encoding for itself.

`python -m benchmarks.embedding [--traces 48] [--backend onnx] [--rounds 3]`: traces of ordinary size (a question, an
answer of 6 sentences, 5 chunks of 8, a reference of 3; 60 % of the chunks repeat) go through every evaluator of method
embedding in one micro-batch, with an empty cache. The encoder alone then encodes exactly the distinct texts in one
call; and each evaluator, on its own, trace by trace, its own texts: with SentenceTransformer.encode where
sentence-transformers is installed, and with the same encoder. One thread each; best of the rounds, the naive way once.
"""

import argparse
from collections.abc import Sequence
from functools import partial

from benchmarks.model_lane import Recorder, Spent, timed
from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder, what_is_missing
from ragtide.evaluators.encoder.model import find
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings
from ragtide.evaluators.trace import Trace
from tests.evaluators.builtin.naive_embedding import Encode, naive

OF_THE_ENCODER, OF_THE_NAIVE_WAY = 0.9, 6.0


def together(traces: Sequence[Trace], encoder: Encoder) -> int:
    """Runs every embedding evaluator over one micro-batch; how many outcomes are scores."""
    every = registry.load()
    embedding = tuple(id for id, evaluator in every.items() if evaluator.method == "embedding")
    plan = prepare(every, EvaluatorSettings(enabled=embedding), None, encoder)
    outcomes = run_all(plan.prepared, traces, Resources(encoder).batch())
    return sum(isinstance(outcome, Scored) for column in outcomes for outcome in column)


def naively(traces: Sequence[Trace], encode: Encode) -> int:
    """As `together`, each evaluator for itself."""
    return sum(score(trace) is not None for score in naive(encode).values() for trace in traces)


def rivals(encoder: Encoder) -> dict[str, Encode]:
    """What the naive way may encode with."""
    found: dict[str, Encode] = {"the same encoder": encoder.encode}
    packaged = EncoderSettings(model=PACKAGED_MODEL, backend="sentence-transformers")
    if what_is_missing(packaged) is None:
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        model = SentenceTransformer(str(find(packaged).folder), device="cpu", local_files_only=True)
        found["SentenceTransformer.encode"] = partial(model.encode, show_progress_bar=False)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=48)
    parser.add_argument("--backend", default="onnx", choices=["onnx", "sentence-transformers"])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()

    encoder = load_encoder(EncoderSettings(model=PACKAGED_MODEL, backend=options.backend))
    traces = prose_traces(options.traces)
    recorder = Recorder(encoder)
    scores = together(traces, recorder)
    if recorder.calls != 1 or len(set(recorder.texts)) != len(recorder.texts):
        raise AssertionError("not one call with distinct texts")
    tokens = encoder.count_tokens(recorder.texts)
    print(f"{len(traces)} traces, {scores} scores, {len(recorder.texts)} distinct texts, {tokens} tokens, one thread")

    ours: list[Spent] = []
    raw: list[Spent] = []
    for _ in range(options.rounds):
        ours.append(timed(partial(together, traces, encoder)))
        raw.append(timed(partial(encoder.encode, recorder.texts)))
    own = told(f"together, {options.backend}", ours, len(traces))
    alone = told("the encoder alone", raw, len(traces))
    ratios = [("of the encoder", alone / own, OF_THE_ENCODER)]
    for name, encode in rivals(encoder).items():
        if naively(traces[:1], encode) == 0:
            raise AssertionError("the naive way scored nothing")
        spent = told(f"naively, {name}", [timed(partial(naively, traces, encode))], len(traces))
        ratios.append((f"times {name} used naively", spent / own, OF_THE_NAIVE_WAY))
    for what, ratio, goal in ratios:
        print(f"{ratio:8.2f} {what} (goal {goal}), in CPU time")
    return 0 if all(ratio >= goal for _, ratio, goal in ratios) else 1


def told(name: str, spent: Sequence[Spent], traces: int) -> float:
    """Prints a line; the least CPU time, since other processes add to wall time alone."""
    cpu_s = min(each.cpu_s for each in spent)
    print(f"{name:40} {min(each.wall_s for each in spent):8.2f} s  {cpu_s:8.2f} s CPU  {traces / cpu_s:8.1f} traces/s")
    return cpu_s


if __name__ == "__main__":
    raise SystemExit(main())
