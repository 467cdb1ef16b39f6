"""Where an encoder's scores of good and of bad records of the sample traffic lie, and the line between them.

`python -m benchmarks.encoder_thresholds [--model all-MiniLM-L6-v2] [--traces 1000]`: the figures behind
`evaluators/encoder/thresholds.py`. Good are records without a fault; bad are those that show the fault which breaks
what the metric measures: wrong chunks (and so another answer), or a sentence that no chunk supports. The line is half
way between the 5th percentile of the good and the 95th of the bad, to the nearest 0.05. Ends with 1 where the line in
the table fails 5 % of the good or passes 5 % of the bad.
"""

import argparse
import random
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.demo_faults import answered, values_of
from ragtide.evaluators import registry
from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.encoder.model import model_of, name_of
from ragtide.evaluators.encoder.thresholds import ENCODER_THRESHOLDS, EncoderThresholds
from ragtide.evaluators.outcome import NotApplicable
from ragtide.evaluators.plan import prepare
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.settings import PACKAGED_MODEL, EncoderSettings, EvaluatorSettings
from ragtide.evaluators.text import sentences
from ragtide.evaluators.text.relevance import relevances
from ragtide.evaluators.trace import Trace
from ragtide.stream.demo import corpus
from ragtide.stream.demo.faults import INVENTED, WRONG_CHUNKS, Fault
from ragtide.stream.demo.index import Index

CHUNKS = "context_mrr.relevant_chunk_threshold"
BROKEN_BY = {"groundedness.groundedness": INVENTED} | dict.fromkeys(
    (
        "answer_relevancy_sentence.answer_relevancy",
        "answer_relevancy_sentence.mean_answer_relevancy",
        "answer_semantic_sentence_similarity.mean_answer_similarity",
        "answer_semantic_sentence_similarity.min_answer_similarity",
        "answer_semantic_similarity.answer_similarity",
        "context_relevancy_soft.precision_relevancy",
        "context_relevancy_soft.recall_relevancy",
        "sentence_similarity.cosine",
        CHUNKS,
    ),
    WRONG_CHUNKS,
)
Values = Mapping[str, Sequence[float]]


def is_hit(trace: Trace, fault: Fault) -> bool:
    """Whether this record shows the fault: most but not all answers have an invented sentence."""
    given = " ".join(chunk.text or "" for chunk in trace.contexts or ())
    return fault is WRONG_CHUNKS or any(s.text not in given for s in sentences.split(trace.answer or ""))


def relevance_of_chunks(resources: Resources, traces: Sequence[Trace], most: int) -> list[float]:
    """The relevance of up to `most` chunks of each trace, in rank order."""
    told = [relevances(trace.question or "", trace.contexts or (), resources.batch()) for trace in traces]
    return [one.score for found in told if not isinstance(found, NotApplicable) for one in found[:most]]


def line_between(good: Sequence[float], bad: Sequence[float]) -> float:
    """Half way between the good's 5th percentile and the bad's 95th, to the nearest 0.05."""
    middle = (float(np.quantile(good, 0.05)) + float(np.quantile(bad, 0.95))) / 2
    return round(round(middle / 0.05) * 0.05, 2)


def line_of(metric: str, lines: EncoderThresholds) -> float:
    """What the table, else the catalogue, says."""
    id, _, name = metric.partition(".")
    evaluator = registry.load()[id]
    own = {one.key: one.threshold for one in evaluator.metrics}
    if name in own:
        return lines.thresholds.get(metric, own[name] or 0.0)
    return float({**evaluator.params().model_dump(), **lines.params.get(id, {})}[name])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=PACKAGED_MODEL)
    parser.add_argument("--traces", type=int, default=1_000)
    options = parser.parse_args()

    settings = EvaluatorSettings(
        enabled=tuple(sorted({metric.partition(".")[0] for metric in BROKEN_BY})),
        encoder=EncoderSettings(model=options.model),
    )
    lines = ENCODER_THRESHOLDS.get(name_of(model_of(settings.encoder)), EncoderThresholds())
    encoder = load_encoder(settings.encoder)
    plan, resources = prepare(registry.load(), settings, None, encoder), Resources(encoder)
    passages = corpus.read(lambda text: [sentence.text for sentence in sentences.split(text)])
    index = Index(passages, encoder)

    def measured(fault: Fault | None) -> Values:
        rng = random.Random("thresholds")
        traces = answered(passages, index, encoder, fault, rng, options.traces)
        shown = [trace for trace in traces if fault is None or is_hit(trace, fault)]
        chunks = relevance_of_chunks(resources, shown, most=1 if fault is None else 4)
        return {**values_of(plan, resources, shown), CHUNKS: chunks}

    good = measured(None)
    bad = {fault.name: measured(fault) for fault in (INVENTED, WRONG_CHUNKS)}
    wrong = 0
    print(f"{encoder.revision}\n{'metric':58}  good p5  bad p95  measured  table  good pass  bad pass")
    for metric, fault in BROKEN_BY.items():
        well, badly = good[metric], bad[fault.name][metric]
        line = line_of(metric, lines)
        passed = [float(np.mean(np.array(values) >= line)) for values in (well, badly)]
        wrong += passed[0] < 0.95 or passed[1] > 0.05
        print(
            f"{metric:58} {np.quantile(well, 0.05):8.3f} {np.quantile(badly, 0.95):8.3f} "
            f"{line_between(well, badly):9.2f} {line:6.2f} {passed[0]:10.3f} {passed[1]:9.3f}"
        )
    print("every line holds" if not wrong else f"{wrong} lines do not hold")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
