"""A kind of rule is one class: a new one is evaluated, described, explained by examples and charted like the others."""

from typing import cast, get_args

import pytest

from ragtide.drift.attributes import Evidence
from ragtide.drift.problems.chart import chart_points, chart_series
from ragtide.drift.rules.kinds import RULE_KINDS, bad_share_series, breached_bound
from ragtide.drift.rules.model import ChartSeries, Rule, RuleKind, RuleResult, Series, Statistics, Window
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import MetricRef
from ragtide.evaluators import spec
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World, made


class Median(RuleKind):
    """The middle one of the records' scores is beyond a bound, to a hundredth of the range."""

    name = "median"

    def evaluate(self, window: Window, rule: Rule, series: Series, allowed: int = 0) -> RuleResult:
        scores = sorted(index for index, count in window.bins.items() for _ in range(count))
        median = rule.metric_ref.scale.edge(scores[len(scores) // 2])
        threshold, breached = breached_bound(median, rule)
        return RuleResult(median, threshold, breached, window.scored, rule.bad_count(window))

    def describe(self, series: Series, rule: Rule, statistics: Statistics) -> str:
        return f"the median of {series.metric} is {statistics.value:.2f}, it was {statistics.baseline:.2f}"

    def chart_series(self, evidence: Evidence, metric: MetricRef | None) -> ChartSeries | None:
        return bad_share_series(evidence, metric)


def test_each_declared_kind_has_a_class_and_only_coverage_is_not_declared() -> None:
    assert set(RULE_KINDS) - set(get_args(spec.RuleKind)) == {"coverage"}
    assert set(get_args(spec.RuleKind)) <= set(RULE_KINDS)


def test_a_judges_window_without_a_score_of_its_sample_has_no_mean() -> None:
    """The mean of scores that are no sample says nothing about the other traces."""
    declared = spec.Metric("good", threshold=0.5, primary=True)
    rule = Rule(RULE_KINDS["mean"], MetricRef(made("quality", [declared]), declared), min=0.5, max=None)
    series = Series("shop", "", "quality.good", "", "", "")
    window = Window(0, 60, seen=9, scored=1, sum=0.1, parts={"ppi.good.n": 9.0, "ppi.good.f": 4.0})
    assert rule.kind.evaluate(window, rule, series) is None
    of_another = Window(0, 60, seen=9, scored=1, sum=0.1, parts={"ppi.other.n": 9.0})
    assert rule.kind.evaluate(of_another, rule, series) == RuleResult(0.1, 0.5, True, 1, 0)


@pytest.mark.clickhouse
def test_a_new_kind_raises_a_problem_with_its_sentence_its_examples_and_its_chart(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RULE_KINDS, "median", Median())
    declared = spec.Metric("good", threshold=0.5, primary=True, rule=cast(spec.RuleKind, "median"))
    quality = made("quality", [declared])
    rules = RuleSettings(min_sample=10, k=1, m=1)
    world = World(database, rules=rules, evaluators={"quality": quality})
    world.scores(0, [0.8] * 11 + [0.0] * 9)  # the mean 0.44 would be bad, the median is not
    world.advance(60)
    assert world.problems() == []
    world.scores(60, [0.9] * 9 + [0.2] * 11, name="bad")  # the mean 0.515 would be good
    world.advance(120)
    (problem,) = world.problems()
    said = problem.attributes
    assert (said["rule"], said["value"], said["threshold"], said["wrong"], said["limit"]) == (
        "median",
        0.2,
        0.5,
        11,
        None,
    )
    assert said["effect_size"] == pytest.approx(-0.75)
    assert "the median of quality.good is 0.20, it was 0.80, since" in problem.description
    assert problem.kinds == ("threshold",)
    assert len(problem.examples) == 10
    assert all(trace_id.startswith("bad") for trace_id in problem.examples)
    series = chart_series(problem, MetricRef(quality, declared))
    assert series is not None
    assert [point.value for point in chart_points(database, problem, series, 60)] == [0.45, 0.55]
