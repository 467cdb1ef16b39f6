"""Bad windows are a problem once chance does not explain them; what is beyond its line by far opens as k of m say."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from scipy import stats

from ragtide.drift.problems.rule_lifecycle import next_transition
from ragtide.drift.rules.model import Rule, Series, Verdict
from ragtide.drift.rules.resolve import rules_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats.significance import (
    BadCount,
    EstimatedValue,
    binomial_tail,
    within_binomial_noise,
    within_mean_noise,
    within_sampling_noise,
)
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.evaluators.builtin.operations import operations

ERRORS = Series("shop", "prod", "operations.error", "m1", "", "")
RULE: Rule = rules_for(ERRORS, metrics_by_name({operations.id: operations})[ERRORS.metric], RuleSettings())[0]
START = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wrong", "records", "share"), [(2, 30, 0.05), (12, 120, 0.05), (300, 1000, 0.2), (90, 90, 0.5)]
)
def test_the_tail_is_that_of_the_binomial_distribution(wrong: int, records: int, share: float) -> None:
    assert binomial_tail(wrong, records, share) == pytest.approx(stats.binom.sf(wrong - 1, records, share), rel=1e-5)


@pytest.mark.parametrize("wrong", [91, 92, 1000])
def test_more_wrong_records_than_records_have_no_chance(wrong: int) -> None:
    """Windows that somebody else wrote may say so; one of them must not end the job for all applications."""
    assert binomial_tail(wrong, 90, 0.05) == 0.0
    assert not within_binomial_noise([BadCount(90, wrong)], 0.05, 0.001)


def test_more_stretches_tell_what_few_do_not() -> None:
    """10 % against 5 %: of 90 records chance has as many one time in 28, of 600 never."""
    few = [*[BadCount(30, 3)] * 3, *[BadCount(30, 1)] * 8]
    assert within_binomial_noise(few, 0.05, 0.001)
    assert not within_binomial_noise(few, 0.05, 0.05)
    assert not within_binomial_noise(few, 0.05, 1)
    assert not within_binomial_noise([BadCount(30, 3)] * 20, 0.05, 0.001)
    assert not within_binomial_noise([BadCount(30, 30)] * 3, 0.05, 0.001)


def test_means_are_judged_by_how_far_they_step() -> None:
    usual = (0.77 + 0.02 * np.random.default_rng(1).standard_normal(17)).tolist()
    assert within_mean_noise([*usual, 0.745, 0.76, 0.745], 0.75, 0.001)
    assert not within_mean_noise([*usual, 0.65, 0.65, 0.65], 0.75, 0.001)


def test_estimates_are_judged_by_their_errors() -> None:
    """At 0.05 beyond the limit with an error of 0.03: one tells nothing, five together have an error of 0.013."""
    one = EstimatedValue(0.70, 0.03, 30, 1e9)
    assert within_sampling_noise([one] * 3, 0.75, 0.001)
    assert not within_sampling_noise([one] * 4, 0.75, 0.001)
    assert not within_sampling_noise([one], 0.75, 0.05)
    assert not within_sampling_noise([one], 0.75, 1)
    assert not within_sampling_noise([one._replace(error=0.0)], 0.75, 0.001)
    above = [EstimatedValue(0.80, 0.03, 30, 1e9)] * 4
    assert not within_sampling_noise(above, 0.75, 0.001)
    assert within_sampling_noise([above[0], *[one] * 3], 0.75, 0.001)
    many = EstimatedValue(0.70, 0.01, 300, 1e9)
    assert not within_sampling_noise([above[0]._replace(value=0.74), many], 0.75, 0.001)


def test_estimates_at_the_limit_hardly_ever_look_significant() -> None:
    """Each from seven scores, whose variance tells the error with six degrees of freedom."""
    rng = np.random.default_rng(3)
    scores = 0.75 + 0.1 * rng.standard_normal((20_000, 3, 7))
    values, errors = scores.mean(2), scores.std(2, ddof=1) / 7**0.5
    found = 0
    for window, error in zip(values, errors, strict=True):
        some = [EstimatedValue(float(at), float(by), 7, 6.0) for at, by in zip(window, error, strict=True)]
        found += not within_sampling_noise(some, 0.75, 0.001)
    assert found / 20_000 < 0.006, "up to three tests of 0.001 on either side"


def test_a_value_whose_error_is_not_known_is_no_evidence() -> None:
    unknown = EstimatedValue(0.1, 0.0, 30, 4.9)
    assert within_sampling_noise([unknown] * 5, 0.75, 0.001)
    known = EstimatedValue(0.70, 0.01, 30, 29.0)
    assert not within_sampling_noise([unknown, known], 0.75, 0.001)
    assert within_sampling_noise([unknown, known._replace(value=0.74)], 0.75, 0.001)


def opened(wrong: list[int], settings: RuleSettings) -> int | None:
    """After how many stretches of thirty records, of which so many are wrong each, a problem opens."""
    verdicts = []
    for nth, bad in enumerate(wrong):
        start, end = (START + timedelta(minutes=25 * step) for step in (nth, nth + 1))
        share = bad / 30
        verdicts.append(
            Verdict(RULE.rule_id, "live", *ERRORS, "f1", start, end, 1, int(share > 0.05), share, 0.05, 30, bad, 0, nth)
        )
        step = next_transition("id", RULE, verdicts, [], settings, end, end)
        if step is not None and step.transition.event == "opened":
            return nth + 1
    return None


def test_a_service_well_within_its_limit_raises_nothing() -> None:
    """3 % of the requests fail, 5 % may: three of five stretches are above the limit by chance, again and again."""
    wrong = np.random.default_rng(1).binomial(30, 0.03, 400).tolist()
    assert opened(wrong, RuleSettings()) is None
    assert opened(wrong, RuleSettings(chance=1)) is not None
    assert opened([0, 0, 2, 2, 2], RuleSettings()) is None  # 6 of 90 records, where 4.5 are expected
    assert opened([0, 0, 9, 9, 9], RuleSettings()) == 4
    assert opened([*[0, 1] * 8, 9, 9, 9], RuleSettings()) == 18
    assert opened([1, 0, 1, *[3] * 17], RuleSettings()) is not None
