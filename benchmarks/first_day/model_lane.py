"""Rows of lane model with drawn scores: the model itself is measured by `benchmarks.demo_problems`."""

import random
from collections.abc import Iterator, Mapping

from benchmarks.first_day.faults import is_wrong_chunk
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.rows import Block, ScoreRow, TraceRow

_MEANS: Mapping[str, tuple[float, float]] = {  # with the right chunks, and with wrong ones
    "context_relevancy_soft.recall_relevancy": (0.93, 0.35),
    "groundedness.groundedness": (0.92, 0.45),
    "answer_relevancy_sentence.answer_relevancy": (0.90, 0.55),
}
_SPREAD = 0.05


def model_lane_rows(block: Block, evaluators: Mapping[str, Evaluator]) -> Block:
    """Make the lane's rows for the traces of lane fast; traces without chunks have none."""
    scores = [row for trace in block.traces if trace.chunk_ids for row in _scores(trace, evaluators)]
    return Block(scores=scores, dirty=[one._replace(lane="model") for one in block.dirty])


def _scores(trace: TraceRow, evaluators: Mapping[str, Evaluator]) -> Iterator[ScoreRow]:
    rng = random.Random(trace.trace_id)
    is_wrong = any(map(is_wrong_chunk, trace.chunk_ids))
    for metric, means in _MEANS.items():
        evaluator, _, key = metric.partition(".")
        score = min(max(rng.gauss(means[is_wrong], _SPREAD), 0.0), 1.0)
        yield ScoreRow(
            run_id=trace.run_id,
            app=trace.app,
            environment=trace.environment,
            evaluator=evaluator,
            time=trace.time,
            trace_id=trace.trace_id,
            version=trace.version,
            status="scored",
            reason="",
            metrics={key: score},
            categories={},
            parts={},
            evidence="[]",
            findings=(),
            fingerprint=str(evaluators[evaluator].version),
            weight=1.0,
            model=trace.model,
            prompt_version=trace.prompt_version,
            segments=trace.segments,
        )
