"""How well evaluators tell hallucinated answers from others, by people's labels.

`python -m benchmarks.validity --data FOLDER [--evaluators support groundedness]`: reads RAGTruth's format and prints
for each evaluator that claims to see hallucination, faithfulness or relevance the AUROC, F1 at the shipped threshold
and at the best one, by part and by quartile of the answers' length, with 95 % intervals of a bootstrap over sources.
Beside them stand the AUROC of length alone and the F1 of calling everything hallucinated: an evaluator must beat both.
The shipped threshold is that of the encoder, where one is measured. Evaluators whose model is not there are named.
Without `--data` it says where to get the data.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.validity.measures import Flags, Floats, auroc, auroc_interval, best_f1, f1, f1_interval
from benchmarks.validity.ragtruth import PARTS, LabelledAnswer, read_answers
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import load_encoder, load_encoders
from ragtide.evaluators.encoder_thresholds import with_encoder_thresholds
from ragtide.evaluators.errors import Unavailable
from ragtide.evaluators.models import load_models
from ragtide.evaluators.outcome import Scored
from ragtide.evaluators.plan import Plan, PreparedEvaluator, prepare, wanted_encoders, wanted_models
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.evaluators.spec import Metric

CLAIM = (
    *("support", "support_embedding", "groundedness", "faithfulness_nli", "hallucination"),
    *("summarization_faithfulness", "answer_relevancy_sentence", "context_relevancy_soft"),
)
BATCH = 64
WHERE = "RAGTruth is at github.com/ParticleMedia/RAGTruth (MIT licence), folder dataset: give it with --data"


def risks(
    prepared: PreparedEvaluator, metric: Metric, answers: Sequence[LabelledAnswer], resources: Resources
) -> Floats:
    """Return the badness of each answer by the metric, higher is worse; NaN for one without a score."""
    found: list[float] = []
    sign = -1.0 if metric.better == "higher" else 1.0
    for start in range(0, len(answers), BATCH):
        traces = [one.trace for one in answers[start : start + BATCH]]
        [outcomes] = run_all([prepared], traces, resources.batch())
        for outcome in outcomes:
            scored = isinstance(outcome, Scored) and metric.key in outcome.metrics
            found.append(sign * outcome.metrics[metric.key] if isinstance(outcome, Scored) and scored else float("nan"))
    return np.array(found)


def report(name: str, metric: Metric, answers: Sequence[LabelledAnswer], risk: Floats) -> None:
    """Print the figures of one metric."""
    line = None if metric.threshold is None else metric.threshold * (-1.0 if metric.better == "higher" else 1.0)
    print(f"\n{name}.{metric.key}, threshold {metric.threshold}")
    for part in PARTS:
        rows = np.array([i for i, one in enumerate(answers) if one.part == part and np.isfinite(risk[i])], np.intp)
        seen = sum(one.part == part for one in answers)
        if not len(rows):
            print(f"  {part:9} {'scores none of' if seen else 'no'} answers")
            continue
        bad = np.array([answers[i].hallucinated for i in rows])
        of, sources = risk[rows], [answers[i].source for i in rows]
        length = np.array([float(answers[i].length) for i in rows])
        best, at = best_f1(of, bad)
        print(f"  {part:9} {len(rows)} of {seen} scored, {bad.sum()} hallucinated")
        print(f"    AUROC {auroc_interval(of, bad, sources)}   length alone {auroc(length, bad):.3f}")
        if line is not None:
            print(f"    F1 at the shipped threshold {f1_interval(of > line, bad, sources)}", end="")
        print(f"   best {best:.3f} at {abs(at):.3f}   everything {f1(np.ones(len(bad), np.bool_), bad):.3f}")
        print(f"    by length quartile: {_by_quartile(of, bad, length)}")


def _by_quartile(risk: Floats, bad: Flags, length: Floats) -> str:
    quartile = np.searchsorted(np.quantile(length, (0.25, 0.5, 0.75)), length)
    return "  ".join(f"{auroc(risk[quartile == i], bad[quartile == i]):.3f}" for i in range(4))


def load(names: Sequence[str]) -> tuple[Plan, Resources]:
    """Load the evaluators with the encoders and models that are there."""
    settings = EvaluatorSettings()
    registered = with_encoder_thresholds(registry.load(), settings)
    every = {name: registered[name] for name in names}
    encoders = wanted_encoders(every, settings, None)
    try:
        shared = load_encoder(settings.encoder) if encoders else None
    except Unavailable:  # the plan says what is missing
        shared = None
    own = load_encoders([name for name in encoders if name != "shared"], settings.encoder)
    models = load_models(wanted_models(every, settings, None), settings)
    plan = prepare(every, settings, None, shared, models, own)
    return plan, Resources(shared, models=models.loaded, encoders=own.loaded)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the data, run the evaluators, print the figures."""
    parser = argparse.ArgumentParser(description="How well evaluators tell hallucinated answers from others.")
    parser.add_argument("--data", type=Path, help="folder in RAGTruth's format")
    parser.add_argument(
        "--evaluators", nargs="+", default=list(registry.load().keys() & set(CLAIM)), choices=CLAIM, metavar="ID"
    )
    given = parser.parse_args(arguments)
    if given.data is None:
        print(WHERE)
        return 0
    answers = read_answers(given.data)
    plan, resources = load(given.evaluators)
    for name, why in plan.unavailable.items():
        print(f"{name}: not measured, {why}")
    for prepared in plan.prepared:
        for metric in prepared.evaluator.metrics:
            if metric.primary:
                report(prepared.evaluator.id, metric, answers, risks(prepared, metric, answers, resources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
