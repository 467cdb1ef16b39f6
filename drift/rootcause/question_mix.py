"""Tell whether a metric shifted because other questions were asked, or because answers differ.

Records are split by what is known of the question alone: its topic, language and type as segments, and the language
and length that evaluator `inputs` found. The mix effect over these strata is the shift if every stratum had been
answered as before; the rest of the shift is answers that differ at an equal mix.
"""

from typing import Literal, NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.rootcause.attribution import ALPHA, MIN_TIMES, effects, permuted_labels, shift_of
from ragtide.drift.rootcause.measure import MeasuredQuantity
from ragtide.drift.rootcause.query import RcaScope
from ragtide.drift.rootcause.slice_queries import WHOLE, read_splits, select_rows, share_to_read
from ragtide.drift.rootcause.slices import Numbers, Split, with_traffic
from ragtide.drift.stats import in_sample
from ragtide.sinks.clickhouse.database import Database

MixVerdict = Literal["questions", "answers", "both", "unclear"]
_QUESTION_SEGMENTS = ("language", "question_type", "topic")
_INPUTS = "inputs"
_MAINLY, _PARTLY = 0.75, 0.25  # shares of the shift from which it is the mix, and the mix too


class QuestionMix(NamedTuple):
    """`mix` is the share of the shift that the questions explain, `p` how often chance gives as much."""

    verdict: MixVerdict
    mix: float
    p: float
    strata: int


def find_question_mix(
    database: Database, scope: RcaScope, quantity: MeasuredQuantity, expected: float
) -> QuestionMix | None:
    """Return the part of the mix in the shift of the whole; None if nothing is known of the questions.

    `expected` is about how many records there are.
    """
    share = share_to_read(expected)
    segments = [f"segments[{sql.text(name)}]" for name in _QUESTION_SEGMENTS if name in scope.segment_names]
    records = f"""
        SELECT * FROM ({select_rows(scope, quantity, {}, share)}) AS scored
        LEFT JOIN (
            SELECT trace_id, categories['question_language'] AS language,
                toUInt8(log2(metrics['question_words'] + 1)) AS length
            FROM scores FINAL
            WHERE {scope.query.condition} AND evaluator = '{_INPUTS}' AND status = 'scored' AND {in_sample(share)}
                AND {scope.timeline.in_minutes}
        ) AS asked USING (trace_id)"""
    stratum = f"arrayStringConcat([{', '.join(['language', 'toString(length)', *segments])}], '\\t')"
    groups = f"[('{WHOLE}', ''), ('strata', {stratum})]"
    strata = read_splits(database, scope, records, groups, quantity.parameters, share).get("strata")
    return assess_mix(strata, scope.query.seed) if strata is not None and strata.has_groups else None


def assess_mix(strata: Split, seed: int) -> QuestionMix | None:
    """Judge by the share of the shift that is mix: answers unless the mix is significant. None if there is no shift."""
    (strata,) = with_traffic([strata])
    shift = shift_of(strata)
    if shift is None or not shift.size:
        return None
    observed = _mix_effect(strata, strata.after[None, :].astype(float))[0] / shift.size
    if len(strata.after) < MIN_TIMES:
        return QuestionMix("unclear", float(observed), 1.0, len(strata.values))
    by_chance = _mix_effect(strata, permuted_labels(strata.after, seed)) / shift.size
    p = float((1 + (by_chance >= observed).sum()) / (1 + len(by_chance)))
    verdict: MixVerdict = "answers"
    if p <= ALPHA and observed >= _PARTLY:
        verdict = "questions" if observed >= _MAINLY else "both"
    return QuestionMix(verdict, float(observed), p, len(strata.values))


def _mix_effect(strata: Split, marks: Numbers) -> Numbers:
    """Return the mix effect of all groups together [permutations]."""
    before = 1 - marks
    found = effects(before @ strata.n, before @ strata.total, marks @ strata.n, marks @ strata.total)
    return np.asarray(found.mix.sum(axis=-1))
