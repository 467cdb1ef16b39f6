"""Compare a judge's scores of canaries with those of the same content in another form. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean, variance
from typing import NamedTuple

from ragtide.drift.canaries.scores import CanaryScoreRow
from ragtide.drift.stats import Difference, Sample, paired_difference


class FormEffect(NamedTuple):
    """How much higher a judge scores canaries in a form than without it, on `canaries` of them.

    `absolute` is the mean size of the change of a single score; `repeated` that between two runs of the same text, None
    if there is only one run. `moved` are the canaries with the largest changes.
    """

    metric: str
    form: str
    difference: Difference
    canaries: int
    absolute: float
    repeated: float | None
    moved: tuple[str, ...]


def form_effects(rows: Sequence[CanaryScoreRow], evaluator: str, metric: str) -> list[FormEffect]:
    """Return the effect of each form in these scores; both forms of a canary are of the same run."""
    own = [row for row in rows if row.evaluator == evaluator and metric in row.metrics]
    plain = {(row.run_at, row.canary): row for row in own if not row.form}
    changes: dict[str, dict[str, list[float]]] = {}
    for row in own:
        base = plain.get((row.run_at, row.canary))
        if row.form and base is not None:
            change = row.direction * (row.metrics[metric] - base.metrics[metric])
            changes.setdefault(row.form, {}).setdefault(row.canary, []).append(change)
    repeated = _repeated(plain.values(), metric)
    return [_effect(metric, form, by_canary, repeated) for form, by_canary in sorted(changes.items())]


def _effect(metric: str, form: str, by_canary: dict[str, list[float]], repeated: float | None) -> FormEffect:
    means = {name: fmean(values) for name, values in by_canary.items()}
    spread = variance(means.values()) if len(means) > 1 else 0.0
    return FormEffect(
        metric,
        form,
        paired_difference(Sample(len(means), fmean(means.values()), spread)),
        len(means),
        fmean(abs(value) for values in by_canary.values() for value in values),
        repeated,
        tuple(sorted(means, key=lambda name: (-abs(means[name]), name))),
    )


def _repeated(rows: Iterable[CanaryScoreRow], metric: str) -> float | None:
    """Return the mean size of the change of a score from one run to the next."""
    series: dict[str, list[float]] = {}
    for row in sorted(rows, key=lambda row: row.run_at):
        series.setdefault(row.subject, []).append(row.metrics[metric])
    steps = [abs(after - before) for values in series.values() for before, after in pairwise(values)]
    return fmean(steps) if steps else None
