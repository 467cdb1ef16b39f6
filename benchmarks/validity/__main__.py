"""How well evaluators tell hallucinated answers from others, by people's labels.

`python -m benchmarks.validity --data FOLDER [--evaluators ID ...] [--config FILE]`: reads RAGTruth's format and prints
for each evaluator that claims to see hallucination, faithfulness or relevance the AUROC, F1 at the shipped threshold
and at the best one, by part and by quartile of the answers' length, with 95 % intervals of a bootstrap over sources.
Beside them stand the AUROC of length alone and the F1 of calling everything hallucinated: an evaluator must beat both.
The shipped threshold is that of the encoder, where one is measured. `support` runs with its shipped coefficients: on
the data that they were fitted on, its figures are optimistic. Evaluators whose model or judge is not there are named.
`--config` reads models, parameters and the endpoint of a judge from a settings file, with RAGTIDE_ variables over it:
`--config ragtide.toml --evaluators faithfulness`. A judge is asked several times per answer, and that costs money.
Without `--data` it says where to get the data.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.validity.measures import (
    Flags,
    Floats,
    auroc,
    auroc_interval,
    best_f1,
    best_f1_interval,
    f1,
    f1_interval,
    length_quartiles,
)
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
from ragtide.stream.cli.options import settings_from
from ragtide.stream.judge import JudgeClient

CLAIM = (
    *("support", "support_embedding", "groundedness", "faithfulness_nli", "hallucination"),
    *("summarization_faithfulness", "answer_relevancy_sentence", "context_relevancy_soft"),
)
JUDGED = (  # ask a judge; the last three need reference answers too, which RAGTruth lacks
    *("faithfulness", "hallucination_contradiction", "answer_relevancy", "answer_relevance_statements"),
    *("context_relevance", "context_relevancy", "ragas", "noise_sensitivity", "summarization_judge"),
)
BATCH = 64
OFF = "off by these settings: name an endpoint of a judge in a file for --config"
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
        at = best_f1(of, bad)[1]
        print(f"  {part:9} {len(rows)} of {seen} scored, {bad.sum()} hallucinated")
        print(f"    AUROC {auroc_interval(of, bad, sources)}   length alone {auroc(length, bad):.3f}")
        if line is not None:
            print(f"    F1 at the shipped threshold {f1_interval(of > line, bad, sources)}", end="")
        best = best_f1_interval(of, bad, sources)
        print(f"   best {best} at {abs(at):.3f}   everything {f1(np.ones(len(bad), np.bool_), bad):.3f}")
        print("    by length quartile, the shortest first:")
        _report_quartiles(line, of, bad, np.array(sources), length)


def _report_quartiles(
    line: float | None, risk: Floats, bad: Flags, sources: npt.NDArray[np.str_], length: Floats
) -> None:
    quartile = length_quartiles(length)
    for i in range(4):
        rows = np.flatnonzero(quartile == i)
        of, truth, where = risk[rows], bad[rows], list(sources[rows])
        if truth.all() or not truth.any():
            print(f"      {i + 1}: {len(rows)} answers, {truth.sum()} hallucinated")
            continue
        shipped = "" if line is None else f"   F1 at the shipped threshold {f1_interval(of > line, truth, where)}"
        best = best_f1_interval(of, truth, where)
        print(f"      {i + 1}: AUROC {auroc_interval(of, truth, where)}{shipped}   best {best}")


def load(names: Sequence[str], settings: EvaluatorSettings) -> tuple[Plan, Resources]:
    """Load the evaluators with the encoders, models and the judge that are there."""
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
    judge = JudgeClient(settings.judge) if any(one.evaluator.judge for one in plan.prepared) else None
    return plan, Resources(shared, models=models.loaded, encoders=own.loaded, judge=judge)


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the data, run the evaluators, print the figures."""
    parser = argparse.ArgumentParser(description="How well evaluators tell hallucinated answers from others.")
    parser.add_argument("--data", type=Path, help="folder in RAGTruth's format")
    parser.add_argument("--evaluators", nargs="+", default=[*CLAIM, *JUDGED], choices=(*CLAIM, *JUDGED), metavar="ID")
    parser.add_argument("--config", type=Path, help="settings file with models and the endpoint of a judge")
    given = parser.parse_args(arguments)
    if given.data is None:
        print(WHERE)
        return 0
    answers = read_answers(given.data)
    settings = EvaluatorSettings() if given.config is None else settings_from(given.config).settings.evaluators
    plan, resources = load(given.evaluators, settings)
    run = {prepared.evaluator.id for prepared in plan.prepared}
    for name in given.evaluators:
        if name not in run:
            print(f"{name}: not measured, {plan.unavailable.get(name, OFF)}")
    with closing(resources):
        for prepared in plan.prepared:
            for metric in prepared.evaluator.metrics:
                if metric.primary:
                    report(prepared.evaluator.id, metric, answers, risks(prepared, metric, answers, resources))
    return 0


if __name__ == "__main__":
    sys.exit(main())
