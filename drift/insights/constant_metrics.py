"""Metrics that tell nothing, since every record of a period had the same value. Pure."""

from collections.abc import Mapping

from drift.insights.insight import Finding
from drift.insights.measured import Group, Measured
from drift.insights.shares import Share, wilson
from drift.phrases import number, percent, whereabouts
from drift.problems.taxonomy import type_of
from drift.windows.metrics import WatchedMetric

LEAST = 100  # records
_SCORES = ("accuracy", "retrieval")


def constant_metrics(found: Mapping[Group, Measured], metrics: Mapping[str, WatchedMetric]) -> list[Finding]:
    """Of the primary metrics of an application, whatever model it had; guards at their best are left out."""
    whole: dict[tuple[str, str, str], Measured] = {}
    for group, own in sorted(found.items()):
        key = (group.app, group.environment, group.metric)
        whole[key] = whole[key] + own if key in whole else own
    return [
        _finding(app, environment, metrics[name], own)
        for (app, environment, name), own in whole.items()
        if metrics[name].metric.primary
        and own.n >= LEAST
        and own.least == own.greatest
        and not _guards(metrics[name], own.least)
    ]


def _guards(watched: WatchedMetric, value: float) -> bool:
    """Whether it is there to find what is rare, and found nothing: that nothing leaked is what one wants to hear."""
    best = watched.metric.high if watched.metric.better == "higher" else watched.metric.low
    rule = watched.evaluator.rule_of(watched.metric)
    return value == best and (rule != "mean" or type_of(watched, rule) not in _SCORES)


def _finding(app: str, environment: str, watched: WatchedMetric, own: Measured) -> Finding:
    others = wilson(Share(0, own.n))
    return Finding(
        type="data",
        app=app,
        environment=environment,
        identity=("constant", watched.name),
        description=(
            f"{whereabouts(app, environment)}: {watched.name} was {number(own.least)} on all of {own.n} traces, so it "
            f"does not tell them apart; at most {percent(others.high)} of answers would have another value."
        ),
        attributes={
            "kind": "constant",
            "metric": watched.name,
            "value": own.least,
            "samples": own.n,
            "others_share": 0.0,
            "others_share_interval": list(others),
        },
        examples=(),
        actions=(
            "Look at a few traces: does the evaluator get what it needs (contexts, references, classes)?",
            "Where it does and nothing can be told by it here, switch it off: evaluators.enabled.",
        ),
    )
