"""Fits and measures the evaluators `support` and `support_embedding`.

`python -m benchmarks.support [--data FOLDER] [--vectors]`: tells 200 faithful paraphrases from 200 with one changed
number, name, unit or negation (`paraphrases.toml`), and times a trace. With `--data`, a folder in RAGTruth's format, it
fits the coefficients and prints them with what they reach where each source is held out in turn: AUROC and F1 at the
shipped threshold, by part, with 95 % intervals, the AUROC of length alone, the rank correlation of support with
length, and what was predicted and what was real by fifth of the predictions. With `--vectors` also with sentence
vectors of MiniLM (extra `local`). Then it lists the goals that it could measure. Ends with 1 where one is missed.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import spearmanr

from benchmarks.support.fit import Fit, cross_validated, fit, table
from benchmarks.support.paraphrases import CHANGES, paraphrases
from benchmarks.validity.measures import (
    Flags,
    Floats,
    auroc,
    auroc_interval,
    best_f1,
    calibration,
    f1,
    f1_interval,
    length_quartiles,
)
from benchmarks.validity.ragtruth import PARTS, LabelledAnswer, read_answers
from ragtide.evaluators.builtin.support import support
from ragtide.evaluators.encoder import load_encoder
from ragtide.evaluators.outcome import NotApplicable, Scored
from ragtide.evaluators.plan import PreparedEvaluator
from ragtide.evaluators.resources import Resources
from ragtide.evaluators.run import run_all
from ragtide.evaluators.settings import EncoderSettings
from ragtide.evaluators.spec import Evaluator
from ragtide.evaluators.support.nearest import nearest_similarities, texts_to_embed
from ragtide.evaluators.support.outcome import compare
from ragtide.evaluators.support.rarity import weight_by_length
from ragtide.evaluators.support.score import FEATURES, WITH_VECTORS, features_of
from ragtide.evaluators.trace import Chunk, Trace

GOAL_PARAPHRASES, GOAL_MS = 0.9, 1.0
GOAL_AUROC = {("words", "qa"): 0.80, ("words", "summary"): 0.66, ("words", "data2txt"): 0.75, ("vectors", "qa"): 0.82}
GOAL_F1 = {("words", "qa"): 0.60, ("vectors", "qa"): 0.60}
THRESHOLD = 1.0 - (support.metrics[0].threshold or 0.0)  # of the probability of a hallucination
REPEATS = 5
_AT = datetime(2026, 3, 1, tzinfo=UTC)


class Goal(NamedTuple):
    """A figure and what it must be: at least so much, or at most."""

    what: str
    reached: float
    wanted: float
    is_most: bool = False

    @property
    def is_missed(self) -> bool:
        """Whether the figure is on the wrong side; one that is not defined is."""
        return not (self.reached <= self.wanted if self.is_most else self.reached >= self.wanted)

    def __str__(self) -> str:
        state = "missed" if self.is_missed else "reached"
        return (
            f"goal {state}: {self.what} {self.reached:.3f}, {'at most' if self.is_most else 'at least'} {self.wanted}"
        )


def rows_of(answers: Sequence[LabelledAnswer], resources: Resources, *, vectors: bool) -> tuple[list[int], Floats]:
    """Return the places of the answers that can be scored, and their features."""
    places, rows = [], []
    for place, one in enumerate(answers):
        trace, shared = one.trace, resources.batch()
        compared = compare(trace.answer or "", trace.question, trace.contexts, trace.task, weight_by_length, shared)
        if isinstance(compared, NotApplicable):
            continue
        nearest = None
        if vectors:
            shared.prefetch(texts_to_embed(compared, trace.answer or "", shared))
            nearest = nearest_similarities(compared, trace.answer or "", shared)
        found = features_of(compared.support, nearest)
        places.append(place)
        rows.append([found[name] for name in (WITH_VECTORS if vectors else FEATURES)])
    return places, np.array(rows)


def learned(answers: Sequence[LabelledAnswer], *, vectors: bool) -> list[Goal]:
    """Fit on the answers, print what is reached and the table of coefficients, and return the goals."""
    found: dict[str, Fit] = {}
    goals: list[Goal] = []
    for name in ("words", "vectors") if vectors else ("words",):
        with_vectors = name == "vectors"
        resources = Resources(load_encoder(EncoderSettings()) if with_vectors else None)
        places, rows = rows_of(answers, resources, vectors=with_vectors)
        chosen = [answers[place] for place in places]
        bad = np.array([one.hallucinated for one in chosen])
        names = WITH_VECTORS if with_vectors else FEATURES
        risk = cross_validated(names, rows, bad, [one.source for one in chosen])
        print(f"\n{name}: {len(chosen)} of {len(answers)} answers, each source held out in turn")
        for part in PARTS:
            if any(one.part == part for one in chosen):
                goals += _report_part(name, part, chosen, bad, risk)
        found[name] = fit(names, rows, bad)
    print(table(found))
    return goals


def _report_part(name: str, part: str, answers: Sequence[LabelledAnswer], bad: Flags, risk: Floats) -> Iterator[Goal]:
    """Print the figures of a part, and yield those that have goals."""
    at = np.array([one.part == part for one in answers])
    of, truth = risk[at], bad[at]
    sources = [one.source for one in answers if one.part == part]
    length = np.array([float(one.length) for one in answers if one.part == part])
    area, shipped = auroc_interval(of, truth, sources), f1_interval(of > THRESHOLD, truth, sources)
    print(
        f"  {part:9} AUROC {area}   length alone {auroc(length, truth):.3f}   F1 at {THRESHOLD:.2f} {shipped}   "
        f"best {best_f1(of, truth)[0]:.3f}   everything {f1(np.ones(len(truth), np.bool_), truth):.3f}"
    )
    print(f"    rank correlation of support and length {spearmanr(-of, length).statistic:.2f}")
    quartile = length_quartiles(length)
    alike = [auroc(of[quartile == i], truth[quartile == i]) for i in range(4)]
    print(f"    AUROC by quartile of length, the shortest first: {', '.join(f'{one:.2f}' for one in alike)}")
    fifths = "   ".join(map(str, calibration(of, truth)))
    print(f"    probability / hallucinated: {of.mean():.2f} / {truth.mean():.2f}   by fifth: {fifths}")
    if wanted := GOAL_AUROC.get((name, part)):
        yield Goal(f"AUROC of {part} by {name}", area.value, wanted)
    if wanted := GOAL_F1.get((name, part)):
        yield Goal(f"F1 of {part} by {name}", shipped.value, wanted)


def paraphrase_figures(evaluator: Evaluator, resources: Resources) -> float:
    """Print and return the AUROC of changed answers against faithful ones."""
    pairs = paraphrases()
    prepared = PreparedEvaluator(evaluator, evaluator.params(), "", ())
    traces = [
        Trace(trace_id=f"p{i}", time=_AT, app="p", answer=one.answer, contexts=(Chunk("c", one.context),))
        for i, one in enumerate(pairs)
    ]
    [outcomes] = run_all([prepared], traces, resources.batch())
    risk = np.array([1.0 - one.metrics["support"] if isinstance(one, Scored) else np.nan for one in outcomes])
    if np.isnan(risk).any():
        raise RuntimeError(f"{evaluator.id} scores {int(np.isfinite(risk).sum())} of {len(risk)} paraphrases")
    changed = np.array([one.change is not None for one in pairs])
    area = auroc(risk, changed)
    by = {}
    for change in CHANGES:
        at = np.array([one.change in (None, change) for one in pairs])
        by[change] = auroc(risk[at], changed[at])
    for language in sorted({one.language for one in pairs}):
        at = np.array([one.language == language for one in pairs])
        by[language] = auroc(risk[at], changed[at])
    listed = ", ".join(f"{name} {value:.3f}" for name, value in by.items())
    print(f"{evaluator.id}: paraphrases {changed.sum()} changed of {len(pairs)}: AUROC {area:.3f} ({listed})")
    return area


def milliseconds(traces: Sequence[Trace]) -> float:
    """Time a trace on the CPU, each in a batch of its own: the fastest of several runs, the mean over traces."""
    prepared = PreparedEvaluator(support, support.params(), "", ())
    fastest = []
    for trace in traces:
        took = []
        for _ in range(REPEATS):
            start = time.process_time_ns()
            run_all([prepared], [trace], Resources().batch())
            took.append(time.process_time_ns() - start)
        fastest.append(min(took) / 1e6)
    return float(np.mean(fastest))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and fit where there is data."""
    parser = argparse.ArgumentParser(description="Fits and measures the evaluator support.")
    parser.add_argument("--data", type=Path, help="folder in RAGTruth's format")
    parser.add_argument("--vectors", action="store_true", help="also with sentence vectors")
    given = parser.parse_args(arguments)
    reached = paraphrase_figures(support, Resources())
    took = milliseconds(
        [
            Trace(
                trace_id="t",
                time=_AT,
                app="p",
                answer=one.answer,
                contexts=tuple(Chunk(f"c{k}", other.context) for k, other in enumerate(paraphrases()[i : i + 10])),
            )
            for i, one in enumerate(paraphrases()[:100:2])
        ]
    )
    goals = [Goal("AUROC of paraphrases", reached, GOAL_PARAPHRASES), _cpu("a trace with ten contexts", took)]
    if given.data is not None:
        answers = read_answers(given.data)
        every = {part: [one.trace for one in answers if one.part == part] for part in PARTS}
        goals += [_cpu(f"a trace of {part}", milliseconds(some[::7])) for part, some in every.items() if some]
        goals += learned(answers, vectors=given.vectors)
    print(*goals, sep="\n")
    return int(any(goal.is_missed for goal in goals))


def _cpu(what: str, took_ms: float) -> Goal:
    print(f"CPU of {what}: {took_ms:.2f} ms")
    return Goal(f"ms of CPU of {what}", took_ms, GOAL_MS, is_most=True)


if __name__ == "__main__":
    sys.exit(main())
