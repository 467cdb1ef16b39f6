"""Metrics against people's labels: the threshold that agrees best, and how well it does on other answers."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_score, recall_score

from ragtide.drift.calibration import LabelledScore, calibrate
from ragtide.drift.windows import MetricRef
from ragtide.evaluators.spec import Metric
from tests.drift.world import made

HIGHER = [Metric("good", threshold=0.75, primary=True)]
LOWER = [Metric("bad", better="lower", threshold=0.25, primary=True)]
SPEED = [Metric("seconds", high=float("inf"), better="lower", primary=True)]


def of(metrics: list[Metric]) -> MetricRef:
    evaluator = made("rated", metrics)
    return MetricRef(evaluator, evaluator.metrics[0])


def answers(number: int, line: float = 0.4, noise: float = 0.1, seed: int = 1) -> list[LabelledScore]:
    """People call an answer bad if its score, and something that the metric does not see, is below the line."""
    rng = np.random.default_rng(seed)
    values = rng.random(number)
    bad = values + rng.normal(0, noise, number) < line
    return [LabelledScore(float(value), bool(one)) for value, one in zip(values, bad, strict=True)]


def test_the_proposed_threshold_is_where_people_draw_the_line() -> None:
    scores = answers(1_000)
    found = calibrate(of(HIGHER), scores, 0.75)
    assert found.now is not None
    assert found.proposed is not None
    assert found.proposed.threshold == pytest.approx(0.4, abs=0.05)
    said, called = [one.is_bad for one in scores], [one.value < 0.75 for one in scores]
    assert found.now.kappa is not None
    assert found.now.precision is not None
    assert found.now.recall is not None
    assert found.now.kappa.value == pytest.approx(cohen_kappa_score(called, said))
    assert found.now.precision.value == pytest.approx(precision_score(said, called))
    assert found.now.recall.value == pytest.approx(recall_score(said, called))
    assert found.proposed.kappa is not None
    assert found.proposed.kappa.value > found.now.kappa.value
    assert found.bad == sum(said)


def test_where_small_is_good_bad_is_above() -> None:
    scores = [LabelledScore(1 - one.value, one.is_bad) for one in answers(1_000)]
    found = calibrate(of(LOWER), scores, 0.25)
    assert found.proposed is not None
    assert found.proposed.threshold == pytest.approx(0.6, abs=0.05)


def test_an_unbounded_metric_has_a_threshold_among_its_values() -> None:
    scores = [LabelledScore(20 * (1 - one.value), one.is_bad) for one in answers(1_000)]
    found = calibrate(of(SPEED), scores, None)
    assert found.now is None
    assert found.proposed is not None
    assert found.proposed.threshold == pytest.approx(12, abs=1)


def test_on_other_answers_a_threshold_without_a_meaning_agrees_by_chance_only() -> None:
    """The best of a hundred thresholds agrees with random labels; on answers that did not choose it, it does not."""
    better, elsewhere = 0, []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = [LabelledScore(float(rng.random()), bool(rng.random() < 0.5)) for _ in range(60)]
        found = calibrate(of(HIGHER), scores, 0.75)
        assert found.proposed is not None
        assert found.proposed.kappa is not None
        assert found.kappa_elsewhere is not None
        better += found.proposed.kappa.value > found.kappa_elsewhere.value
        elsewhere.append(found.kappa_elsewhere.value)
    assert better >= 18
    assert abs(np.mean(elsewhere)) < 0.1


def test_too_few_labels_choose_no_threshold() -> None:
    few = [LabelledScore(0.1, True)] * 9 + [LabelledScore(0.9, False)] * 50
    found = calibrate(of(HIGHER), few, 0.75)
    assert found.proposed is None
    assert found.now is not None
    assert found.now.precision is not None
    assert found.now.precision.value == 1.0
    assert calibrate(of(HIGHER), [LabelledScore(0.5, True), LabelledScore(0.5, False)] * 50, 0.75).proposed is None
    assert calibrate(of(HIGHER), [], 0.75) == (0, 0, None, None, None)


def test_of_equally_good_thresholds_the_nearest_to_that_of_now_is_proposed() -> None:
    scores = [LabelledScore(0.2, True)] * 20 + [LabelledScore(0.8, False)] * 20
    for now, proposed in ((0.75, 0.75), (0.1, 0.21), (0.9, 0.8), (None, 0.51)):
        found = calibrate(of(HIGHER), scores, now).proposed
        assert found is not None
        assert found.threshold == pytest.approx(proposed)
