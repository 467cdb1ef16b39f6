"""What `faithfulness_nli` loses by asking an NLI model only the context sentences nearest by embedding.

`python -m benchmarks.pruning [--traces 300]`: the demo's own traffic is scored with every pair and with the `top_k`
nearest. No NLI model is needed: a lexical one stands in, which says as entailment what share of the answer sentence's
words the context sentence has. So this measures how often the sentence that such a model would choose is among those
that MiniLM finds near, not how a trained model's scores move. The demo's answers copy sentences of their contexts,
which no pruning misses; so the same traffic follows with the copied sentences taken out of the contexts, where the
best support left is a partial one, and prose whose answers have no support at all.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.model_lane import traffic
from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.models import Models
from ragtide.evaluators.models.hashing import HashingModel
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.plan import prepare, wanted_models
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EncoderSettings, EvaluatorSettings
from ragtide.evaluators.spec import Ask, ModelRef, Vectors
from ragtide.evaluators.text import sentences
from ragtide.evaluators.trace import Trace

ID = "faithfulness_nli"
TOP_K = (1, 2, 4, 8, 16)


class Counting(HashingModel):
    """The lexical model, and how many pairs it was asked."""

    def __init__(self, ref: ModelRef) -> None:
        super().__init__(ref)
        self.asked = 0

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        self.asked += len(asks)
        return super().answer(asks)


class Run(NamedTuple):
    pairs: int
    scores: list[float]
    support: list[float]  # of every answer sentence


def run(traces: Sequence[Trace], encoder: Encoder, top_k: int) -> Run:
    settings = EvaluatorSettings(enabled=(ID,), params={ID: {"top_k": top_k}})
    every = registry.load()
    [ref] = wanted_models(every, settings, None)
    model = Counting(ref)
    models = Models({ref: model})
    plan = prepare(every, settings, None, encoder, models)
    [outcomes] = run_all(plan.prepared, traces, Resources(encoder, models=models.loaded).batch())
    scored = [outcome for outcome in outcomes if isinstance(outcome, Scored)]
    support = [place.score or 0.0 for one in scored for place in one.evidence if place.field == "answer"]
    return Run(model.asked, [one.metrics["faithfulness"] for one in scored], support)


def without_copies(traces: Sequence[Trace]) -> Iterator[Trace]:
    """The traces, each without the context sentences that its answer repeats."""
    for trace in traces:
        copied = {sentence.text for sentence in sentences.split(trace.answer or "")}
        yield msgspec.structs.replace(
            trace,
            contexts=tuple(
                msgspec.structs.replace(
                    chunk,
                    text=" ".join(s.text for s in sentences.split(chunk.text or "") if s.text not in copied),
                )
                for chunk in trace.contexts or ()
            ),
        )


def report(name: str, traces: Sequence[Trace], encoder: Encoder) -> None:
    whole = run(traces, encoder, 0)
    support = np.array(whole.support)
    print(f"{name}: {len(whole.scores)} records, {len(support)} answer sentences, {whole.pairs} distinct pairs")
    print(
        f"  {'top_k':>5} {'pairs':>6} {'records that differ':>20} {'sentences':>10} {'support lost':>13} {'at most':>8}"
    )
    for top_k in TOP_K:
        pruned = run(traces, encoder, top_k)
        lost = support - np.array(pruned.support)
        differ = np.mean(np.array(whole.scores) != np.array(pruned.scores))
        print(
            f"  {top_k:5} {pruned.pairs / whole.pairs:6.1%} {differ:20.2%} {np.mean(lost > 0):10.2%} "
            f"{lost.mean():13.4f} {lost.max():8.3f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=300)
    count = parser.parse_args().traces
    encoder = load_encoder(EncoderSettings(model="all-MiniLM-L6-v2"))
    served = traffic(encoder, count)
    report("the demo's traffic", served, encoder)
    report("without the sentences that answers copy", list(without_copies(served)), encoder)
    report("prose without support", prose_traces(count // 10), encoder)


if __name__ == "__main__":
    main()
