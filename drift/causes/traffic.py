"""The query mix or the answers: whether the metric moved because other things were asked.

Records are parted by what is known of the question alone: its topic, language and type as segments, and the language
and length that evaluator `inputs` found. The mix effect over these strata is what the move would have been had every
stratum been answered as well as ever; the rest are answers that differ at an equal mix.
"""

from typing import Literal, NamedTuple

import numpy as np

from drift.causes.cells import WHOLE, read_splits
from drift.causes.culprit import ALPHA, LEAST_TIMES
from drift.causes.decomposition import effects, move_of
from drift.causes.frame import Frame
from drift.causes.measure import Measure
from drift.causes.permutation import labels
from drift.causes.rows import kept, sampled, selected
from drift.causes.splits import Numbers, Split, with_traffic
from drift.windows import sql
from sinks.clickhouse.database import Database

Verdict = Literal["questions", "answers", "both", "unclear"]
_OF_QUESTIONS = ("language", "question_type", "topic")  # segments
_INPUTS = "inputs"
_MOST, _SOME = 0.75, 0.25  # shares of the move from which it is the mix, and the mix too


class Traffic(NamedTuple):
    """`mix` is the share of the move that the questions explain, `p` how often chance gives as much."""

    verdict: Verdict
    mix: float
    p: float
    strata: int


def traffic_of(database: Database, frame: Frame, measure: Measure, expected: float) -> Traffic | None:
    """Of the whole; None where nothing is known of the questions. `expected` is about how many records there are."""
    share = sampled(expected)
    segments = [name for name in _OF_QUESTIONS if name in frame.cut_by]
    first, last = (int(at.timestamp()) for at in frame.time.minutes)
    question = frame.question
    app = "" if question.app is None else f"AND app = {sql.text(question.app)}"
    known = ", ".join(["language", "toString(length)", *(f"segments[{sql.text(name)}]" for name in segments)])
    cells = f"""
        SELECT step, one.1 AS dimension, one.2 AS value, toFloat64(count()) AS n, sum(number) AS total,
            sum(number * number) AS squares
        FROM (
            SELECT * FROM ({selected(frame, measure, {}, share)}) AS records
            LEFT JOIN (
                SELECT trace_id, categories['question_language'] AS language,
                    toUInt8(log2(metrics['question_words'] + 1)) AS length
                FROM scores FINAL
                WHERE run_id = 'live' AND environment = {sql.text(question.environment)} {app}
                    AND evaluator = '{_INPUTS}' AND status = 'scored' AND {kept(share)}
                    AND time >= toDateTime64({first}, 3, 'UTC') AND time < toDateTime64({last}, 3, 'UTC')
            ) AS asked USING (trace_id)
        )
        ARRAY JOIN [('{WHOLE}', ''), ('strata', arrayStringConcat([{known}], '\\t'))] AS one
        GROUP BY step, dimension, value"""
    strata = read_splits(database, frame, cells, measure.parameters, share).get("strata")
    return judged(strata, question.seed) if strata is not None and strata.parts else None


def judged(strata: Split, seed: int) -> Traffic | None:
    """By the share of the move that is mix; answers unless the mix is beyond chance. None where nothing moved."""
    (strata,) = with_traffic([strata])
    move = move_of(strata)
    if move is None or not move.size:
        return None
    observed = _mix(strata, strata.after[None, :].astype(float))[0] / move.size
    if len(strata.after) < LEAST_TIMES:
        return Traffic("unclear", float(observed), 1.0, len(strata.values))
    by_chance = _mix(strata, labels(strata.after, seed)) / move.size
    p = float((1 + (by_chance >= observed).sum()) / (1 + len(by_chance)))
    verdict: Verdict = "answers"
    if p <= ALPHA and observed >= _SOME:
        verdict = "questions" if observed >= _MOST else "both"
    return Traffic(verdict, float(observed), p, len(strata.values))


def _mix(strata: Split, marks: Numbers) -> Numbers:
    """The mix effect of all groups together [permutations]."""
    before = 1 - marks
    found = effects(before @ strata.n, before @ strata.total, marks @ strata.n, marks @ strata.total)
    return np.asarray(found.mix.sum(axis=-1))
