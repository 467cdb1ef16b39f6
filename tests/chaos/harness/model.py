"""What must be stored of a ledger, worked out in plain Python: nothing here knows the SQL of ragtide.

Scores are worked out by hand; windows of them by the plain model that the roll-up is tested with.
"""

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from ragtide.evaluators.builtin.inputs import inputs
from ragtide.evaluators.builtin.operations import operations
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.rows import LIVE, PROBE, ScoreRow
from tests.chaos.harness.hostile import Hostile
from tests.chaos.harness.traffic import ENVIRONMENT, LANGUAGES, QUESTION, TASKS, Ledger, Sent
from tests.drift.windows_model import Content, Key, base_windows, bin_of
from tests.drift.world import score_row, trace_row

EVALUATORS: Mapping[str, Evaluator] = {one.id: one for one in (operations, inputs)}
EVALUATOR_TASKS = {"inputs": TASKS[:1]}
SEGMENTS = {"tenant": ("a", "b")}  # of c are the others
SIZES_S = (60, 3600)
Rows = Mapping[Hashable, object]


@dataclass(frozen=True, slots=True)
class Expected:
    """Tables by what tells their rows apart, and windows by (size in seconds, dimensions)."""

    tables: Mapping[str, Rows]
    windows: Mapping[tuple[int, Key], Mapping[str, object]]


def expected(ledger: Ledger, hostile: Sequence[Hostile] = ()) -> Expected:
    """Of every trace its last message alone, of every poisoned record and every hostile batch one letter."""
    traces = ledger.traces
    scores = [row for sent in traces.values() for row in _scores(sent)]
    seen = {row.trace_id: trace_row(row) for row in scores}
    tables: dict[str, Rows] = {
        "traces": {
            id_: (
                *(_run(one), one.task, one.app, one.time, one.model, one.latency_s),
                "Timeout" if one.failed else "",
                one.segments,
            )
            for id_, one in traces.items()
        },
        "trace_texts": {id_: (_run(one), one.app, one.time, QUESTION, one.answer) for id_, one in traces.items()},
        "scores": {
            (row.trace_id, row.evaluator): (
                *(row.run_id, row.app, row.time, row.status, row.metrics, row.categories, row.parts),
            )
            for row in scores
        },
        "dead_letters": {
            **{hashlib.sha256(one.message()).hexdigest(): "not_json" for one in ledger.poison},
            **{(one.partition, one.offset): one.reason for one in hostile},
        },
    }
    windows = {
        (size_s, key): contents(key.metric, content)
        for size_s in SIZES_S
        for key, content in base_windows(scores, list(seen.values()), EVALUATORS, SEGMENTS, size_s).items()
    }
    return Expected(tables, windows)


def contents(metric: str, content: Content) -> dict[str, object]:
    """The columns of a window."""
    evaluator, _, name = metric.partition(".")
    spec = next((one for one in EVALUATORS[evaluator].metrics if one.key == name), None)
    values = content.values
    bins: dict[int, int] = {}
    for value in values if spec is not None else ():
        assert spec is not None
        bins[bin_of(spec, value)] = bins.get(bin_of(spec, value), 0) + 1
    counts = {name: getattr(content, name) for name in ("seen", "sampled", "applicable", "scored", "failed")}
    labels = {name: dict(getattr(content, name)) for name in ("skipped", "failures", "category_counts", "parts")}
    return {
        **counts,
        **labels,
        "sum": math.fsum(values),
        "sum_squares": math.fsum(value * value for value in values),
        "min": min(values, default=None),
        "max": max(values, default=None),
        "bins": bins,
    }


def _scores(sent: Sent) -> list[ScoreRow]:
    told = {
        "latency_seconds": sent.latency_s,
        "error": float(sent.failed),
        "empty_answer": float(not sent.answer),
    }
    rows = [_score(sent, operations, {name: value for name, value in told.items() if value is not None})]
    if sent.task in EVALUATOR_TASKS["inputs"]:
        row = _score(
            sent,
            inputs,
            {"question_words": float(len(QUESTION.split())), "answer_words": float(len(sent.answer.split()))},
            categories={"question_language": "en", "answer_language": LANGUAGES[sent.answer]},
            parts={"question_characters": float(len(QUESTION)), "answer_characters": float(len(sent.answer))},
        )
        rows.append(row)
    return rows


def _run(sent: Sent) -> str:
    return PROBE if sent.probe else LIVE


def _score(
    sent: Sent,
    evaluator: Evaluator,
    metrics: Mapping[str, float],
    categories: Mapping[str, str] | None = None,
    parts: Mapping[str, float] | None = None,
) -> ScoreRow:
    return score_row(
        sent.time,
        sent.trace_id,
        metrics,
        evaluator=evaluator.id,
        run_id=_run(sent),
        app=sent.app,
        environment=ENVIRONMENT,
        categories=categories,
        parts=parts,
        fingerprint="",
        model=sent.model,
        prompt_version="",
        segments=sent.segments,
    )
