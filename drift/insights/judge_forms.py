"""Find judges that score the same content otherwise in another form: with Markdown, padded, in another order."""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from ragtide.drift.canaries import FormEffect, JudgeRuns, form_effects, load_judge_runs, load_scored
from ragtide.drift.insights.data import PeriodData
from ragtide.drift.insights.model import AppEnvironment, Insight, estimate, insight
from ragtide.drift.stats import Interval, benjamini_hochberg
from ragtide.drift.text import number
from ragtide.drift.windows import MetricRef

MIN_CANARIES = 12
_HISTORY = timedelta(days=30)
_MOST_RUNS = 30
_MIN_EFFECT = 0.02  # of the metric's range: the interval excludes smaller effects
_ALPHA = 0.01  # expected share of false statements
_MOST_MOVED = 5  # canaries; no table of traces has them
_FORMS = {
    "markdown": ("answers with Markdown", "than the same answers without it"),
    "padded": ("traces padded with blank space", "than the same traces without it"),
    "reordered": ("traces with the chunks in reverse order", "than in their own order"),
}


class _Found(NamedTuple):
    metric: MetricRef
    judge: JudgeRuns
    effect: FormEffect


@insight(reads=PeriodData)
def judge_forms(data: PeriodData) -> Iterator[Insight]:
    """One insight for each judge's metric and form whose effect is significant, by the runs of 30 days."""
    judges = [one for one in load_judge_runs(data.database, data.now).values() if one.evaluator in data.evaluators]
    runs = {at for one in judges for at in one.runs[-_MOST_RUNS:] if at >= data.now - _HISTORY}
    rows = load_scored(data.database, judges, runs, in_forms=True)
    found = [
        _Found(metric, judge, effect)
        for judge in judges
        for metric in data.metrics.values()
        if metric.evaluator.id == judge.evaluator and metric.metric.primary and metric.metric.bounded
        for effect in form_effects(rows, judge.evaluator, metric.metric.key)
        if effect.canaries >= MIN_CANARIES and effect.difference.p is not None
    ]
    adjusted = benjamini_hochberg([one.effect.difference.p or 0.0 for one in found])
    for one, p in zip(found, adjusted, strict=True):
        if p <= _ALPHA and (interval := _relevant(one)) is not None:
            yield _insight(one, interval, p)


def _relevant(found: _Found) -> Interval | None:
    """Return the interval of the effect if it excludes effects that do not matter; all alike: the effect itself."""
    difference, metric = found.effect.difference, found.metric.metric
    assert difference.value is not None, "of at least one canary"
    low = difference.value if difference.low is None else difference.low
    high = difference.value if difference.high is None else difference.high
    smallest = _MIN_EFFECT * (metric.high - metric.low)
    return Interval(low, high) if low >= smallest or high <= -smallest else None


def _insight(found: _Found, interval: Interval, p: float) -> Insight:
    effect, name = found.effect, found.metric.name
    value = effect.difference.value or 0.0
    what, than = _FORMS[effect.form]
    low, high = interval
    repeated = "" if effect.repeated is None else f", and by {number(effect.repeated)} between two runs of one text"
    return Insight(
        type="calibration",
        where=AppEnvironment("", ""),
        identity=("judge_form", name, effect.form),
        message=(
            f"{found.judge.evaluator} (endpoint {found.judge.endpoint}) scores {what} {number(abs(value))} "
            f"{'higher' if value > 0 else 'lower'} {than}: {name}, 95 % interval {number(low)} to {number(high)} on "
            f"{effect.canaries} canaries. Single scores move by {number(effect.absolute)} on average{repeated}"
        ),
        figures={
            "kind": "judge_form",
            "metric": name,
            "form": effect.form,
            "endpoint": found.judge.endpoint,
            "fingerprint": found.judge.fingerprint,
            **estimate("effect", value, interval),
            "mean_absolute_change": effect.absolute,
            "mean_absolute_change_between_runs": effect.repeated,
            "canaries": effect.canaries,
            "moved": effect.moved[:_MOST_MOVED],
            "p": p,
        },
        actions=(
            "Do not compare applications, prompts or models by this metric if one of them writes in another form.",
            "Tell the judge in its prompt that the form does not count (evaluators.judge.prompts), or take another "
            "model.",
        ),
        label="Judge",
    )
