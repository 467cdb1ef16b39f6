"""Which limits hold for an app and an evaluator."""

import pytest

from ragtide.drift.rule_settings import AppRules
from ragtide.drift.rules.resolve import Limits, check_settings, limits_for
from ragtide.drift.settings import LimitOverride, RuleSettings
from ragtide.evaluators.errors import ConfigError
from tests.drift.world import EVALUATORS

SETTINGS = RuleSettings(
    error_limit=0.05,
    finding_traces=10,
    finding_limit=0.1,
    apps={"docs": AppRules(error_limit=0.3, finding_limit=0.4)},
    limits=(
        LimitOverride(app="shop", evaluator="leak", finding_traces=1),
        LimitOverride(app="shop", error_limit=0.5, finding_traces=99),
        LimitOverride(evaluator="leak", error_limit=0.0),
        LimitOverride(finding_limit=0.2),
    ),
)


@pytest.mark.parametrize(
    ("app", "evaluator", "expected"),
    [
        ("other", "quality", Limits(0.05, 10, 0.2)),
        ("docs", "quality", Limits(0.3, 10, 0.2)),  # what limits say goes before what is said of the app on the whole
        ("shop", "quality", Limits(0.5, 99, 0.2)),
        ("other", "leak", Limits(0.0, 10, 0.2)),
        ("shop", "leak", Limits(0.0, 1, 0.2)),  # of equally specific ones the last
    ],
)
def test_the_most_specific_wins_field_by_field(app: str, evaluator: str, expected: Limits) -> None:
    assert limits_for(app, evaluator, SETTINGS) == expected


def test_an_evaluator_that_is_none_is_refused_with_the_nearest() -> None:
    check_settings(SETTINGS, EVALUATORS)
    wrong = RuleSettings(limits=(LimitOverride(evaluator="qualty", error_limit=0.5),))
    with pytest.raises(ConfigError, match=r"rules\.limits: no evaluator 'qualty'; did you mean 'quality'"):
        check_settings(wrong, EVALUATORS)
