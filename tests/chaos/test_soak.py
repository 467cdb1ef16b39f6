"""What a soak calls growth: a slope that is neither noise nor small."""

import random

import pytest

from tests.chaos.soak import Sample, grows, slope


def _samples(mb_per_hour: float, noise_mb: float) -> list[Sample]:
    dice = random.Random(5)
    return [Sample(2.0 * n, 200 + mb_per_hour * 2.0 * n / 3600 + dice.gauss(0, noise_mb), 0) for n in range(600)]


def test_the_slope_of_a_line_is_found() -> None:
    found = slope(_samples(36.0, 0.0))
    assert found.per_hour == pytest.approx(36.0)
    assert found.error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("mb_per_hour", "noise_mb", "expected"), [(0, 3, False), (20, 0.1, False), (120, 3, True)])
def test_growth_is_more_than_noise_and_more_than_a_little(mb_per_hour: float, noise_mb: float, expected: bool) -> None:
    assert grows(_samples(mb_per_hour, noise_mb)) is expected
