"""What settings say of one application counts there, and for no other; a metric's override goes before it."""

import pytest

from ragtide.drift.problems.report import ProblemKey, build_details
from ragtide.drift.rule_settings import AppRules
from ragtide.drift.rules.model import Series
from ragtide.drift.rules.resolve import any_rule_prefilter, coverage_rule_for, rule_for
from ragtide.drift.settings import JobSettings, RuleOverride, RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import EVALUATORS, World, made

METRICS = metrics_by_name(EVALUATORS)
RULES = RuleSettings(
    apps={"docs": AppRules(min_sample=50, coverage_limit=0.5, severity_critical=0.6)},
    overrides=(RuleOverride(metric="checked.passes", min_sample=70),),
)


@pytest.mark.parametrize(("app", "default"), [("docs", 50), ("shop", 30)])
def test_a_rule_asks_for_so_many_records(app: str, default: int) -> None:
    for name, expected in (("quality.good", default), ("checked.passes", 70)):
        rule = rule_for(Series(app, "prod", name, "m1", "", ""), METRICS[name], RULES)
        assert rule is not None
        assert rule.min_sample == expected


def test_one_app_has_rules_on_metrics_that_are_not_primary() -> None:
    spare = {"spare": made("spare", [Metric("leaks", threshold=0.5)], domain="privacy")}
    metrics = metrics_by_name(spare)
    rules = RuleSettings(apps={"docs": AppRules(primary_only=False)})
    for app, watched in (("docs", True), ("shop", False)):
        found = rule_for(Series(app, "prod", "spare.leaks", "m1", "", ""), metrics["spare.leaks"], rules)
        assert (found is not None) is watched
    assert [rule.metric_ref.name for rule in any_rule_prefilter(metrics, rules)] == ["spare.leaks"]
    assert any_rule_prefilter(metrics, RuleSettings()) == []


@pytest.mark.parametrize(("app", "limit", "severity"), [("docs", 0.5, "warning"), ("shop", 0.2, "critical")])
def test_coverage_and_severity(app: str, limit: float, severity: str) -> None:
    metric = METRICS["quality.good"]
    rule = coverage_rule_for(Series(app, "prod", metric.name, "m1", "", ""), metric, RULES)
    assert rule is not None
    assert rule.limit == limit
    place = ProblemKey(app, "prod", "m1", "level", metric.name)
    assert build_details("threshold", place, metric, "said", {}, RULES, bad=50, traffic=100).severity == severity


@pytest.mark.clickhouse
@pytest.mark.parametrize(("default_s", "own_s"), [(300.0, 3600.0), (3600.0, 300.0)])
def test_each_app_may_be_silent_for_its_own_time(database: Database, default_s: float, own_s: float) -> None:
    rules = RuleSettings(missing_after_s=default_s, apps={"docs": AppRules(missing_after_s=own_s)})
    world = World(database, rules=rules, settings=JobSettings(reconcile_every_s=0.001))
    for minute in range(3):
        world.scores(minute * 60, [0.9])
        world.scores(minute * 60, [0.9], app="docs")
    world.advance(600)
    assert [problem.app for problem in world.problems()] == ["shop" if default_s < own_s else "docs"]
