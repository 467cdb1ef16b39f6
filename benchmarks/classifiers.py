"""How much of the raw models' speed the NLI and classifier evaluators keep.

`python -m benchmarks.classifiers [--traces 4] [--layers 12] [--rounds 2]`: traces of ordinary size (an answer of 6
sentences, 5 chunks of 8, 60 % of which repeat) go through `faithfulness_nli`, `toxicity`, `fairness_bias` and
`hallucination` in one micro-batch, sentences split, pairs pruned by embeddings and all, with empty caches. The models
alone then answer exactly the distinct asks, each in one call. They have BERT-base's shape and weights drawn at random,
since trained ones are not there without a network: the same work, other scores. One thread each; the best of the
rounds counts, in wall time and in processor time, and the encoder's share is the lane's loss.
"""

import argparse
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.model_lane import Spent, timed
from benchmarks.prose_traces import prose_traces
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import Encoder, load_encoder
from ragtide.evaluators.encoder.model import find
from ragtide.evaluators.models import Model, Models, load
from ragtide.evaluators.outcome import Outcome, Scored
from ragtide.evaluators.plan import prepare, wanted_models
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings, ModelSettings
from ragtide.evaluators.spec import Ask, ModelRef, Vectors
from ragtide.evaluators.trace import Trace

GOAL = 0.8
ENCODER = EncoderSettings(model=PACKAGED_MODEL)
EVALUATORS = ("faithfulness_nli", "toxicity", "fairness_bias", "hallucination")


class Recorder:
    """A model, and what it was asked."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.revision = model.revision
        self.asks: list[Ask] = []
        self.calls = 0

    def answer(self, asks: Sequence[Ask]) -> Vectors:
        self.asks += asks
        self.calls += 1
        return self._model.answer(asks)


class Round(NamedTuple):
    """What lane and models took for the same distinct asks."""

    lane: Spent
    raw: Spent
    asks: int


def bert_base(folder: Path, labels: Sequence[str], layers: int) -> Path:
    """A classifier of BERT-base's shape with random weights and BERT's own word pieces."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(7)
    names = dict(enumerate(labels or ("consistent",)))
    config = BertConfig(
        num_hidden_layers=layers, id2label=names, label2id={label: place for place, label in names.items()}
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    for file in find(ENCODER).folder.glob("*token*.json"):
        shutil.copy(file, folder)
    return folder


def models_of(settings: EvaluatorSettings, layers: int) -> dict[ModelRef, Model]:
    """Every model that the evaluators ask, loaded as a worker loads it."""
    loaded: dict[ModelRef, Model] = {}
    for ref in wanted_models(registry.load(), settings, None):
        with tempfile.TemporaryDirectory() as folder:
            labels = ref.labels if len(ref.labels) != 1 else (*ref.labels, "other")
            own = ModelSettings(source=str(bert_base(Path(folder), labels, layers)), backend="torch")
            loaded[ref] = load(ref, EvaluatorSettings(models={ref.name: own}))
    return loaded


def measured(
    traces: Sequence[Trace], encoder: Encoder, models: Mapping[ModelRef, Model], settings: EvaluatorSettings
) -> Round:
    """The lane on cold caches, then the models alone on what it asked them."""
    recorders = {ref: Recorder(model) for ref, model in models.items()}
    plan = prepare(registry.load(), settings, None, encoder, Models(recorders))
    shared = Resources(encoder, models=recorders).batch()
    given: list[list[Outcome | None]] = []
    lane = timed(lambda: given.extend(run_all(plan.prepared, traces, shared)))
    raw = timed(lambda: [model.answer(recorders[ref].asks) for ref, model in models.items()])
    if not all(isinstance(outcome, Scored) for column in given for outcome in column):
        raise AssertionError("a trace was not scored")
    if any(recorder.calls != 1 for recorder in recorders.values()):
        raise AssertionError("a model was called more than once")
    return Round(lane, raw, sum(len(recorder.asks) for recorder in recorders.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=int, default=4)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()

    settings = EvaluatorSettings(enabled=EVALUATORS)
    encoder = load_encoder(ENCODER)
    models = models_of(settings, options.layers)
    traces = prose_traces(options.traces)
    for model in models.values():
        model.answer([("A word.", "Another."), ("One more.",)])  # what is loaded or built at the first call

    rounds = [measured(traces, encoder, models, settings) for _ in range(options.rounds)]
    raws, lanes = [one.raw for one in rounds], [one.lane for one in rounds]
    asks = rounds[0].asks
    print(f"{len(traces)} traces, {asks} distinct asks of {len(models)} models with {options.layers} layers")
    for name, spent in (("models", min(raws)), ("lane", min(lanes))):
        print(f"{name:8} {asks / spent.wall_s:8.1f} asks/s  {spent.wall_s:7.2f} s  {spent.cpu_s:7.2f} s CPU")
    wall = min(raws).wall_s / min(lanes).wall_s
    cpu = min(s.cpu_s for s in raws) / min(s.cpu_s for s in lanes)
    print(f"ratio    {wall:8.2f} of wall time, {cpu:.2f} of CPU time (goal {GOAL})")
    return 0 if min(wall, cpu) >= GOAL else 1


if __name__ == "__main__":
    raise SystemExit(main())
