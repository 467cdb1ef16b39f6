"""What a soak calls well: growth is a slope that is neither noise nor small, and each bound can break by itself."""

import random
from typing import Any

import pytest

from tests.chaos.soak import verdicts
from tests.chaos.soak.verdicts import Outage, Rows, Sample, falls, grows, memory_slope


def _samples(mb_per_hour: float, noise_mb: float, lag: float = 0) -> list[Sample]:
    dice = random.Random(5)
    return [Sample(2.0 * n, 200 + mb_per_hour * 2.0 * n / 3600 + dice.gauss(0, noise_mb), lag) for n in range(600)]


def _lags(*lags: float) -> list[Sample]:
    return [Sample(2.0 * n, 300, lag) for n, lag in enumerate(lags)]


def _wrong(**seen: Any) -> list[str]:
    """What is said of bounds that do not hold, for an outage that is well but for this."""
    well = Outage(
        away_s=600,
        paused_s=590,
        input_bytes=256 << 20,
        in_flight_bytes=16 << 20,
        before_mb=200,
        allowed_mb=460,
        away=_lags(0, 9000, 9000),
        after=_lags(9000, 5000, 0),
        bound=9000,
        stored=Rows(9000, 9000),
        scored=Rows(9000, 9000),
    )
    return [verdict.said for verdict in verdicts.of_outage(well._replace(**seen)) if not verdict.well]


def test_the_slope_of_a_line_is_found() -> None:
    found = memory_slope(_samples(36.0, 0.0))
    assert found.per_hour == pytest.approx(36.0, rel=0.01)
    assert found.error == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(("steps", "expected"), [(1, False), (3, False), (12, True)])
def test_a_few_steps_are_no_growth_and_one_after_the_other_is(steps: int, expected: bool) -> None:
    samples = [Sample(2.0 * n, 230.0 + n * steps // 900, 0) for n in range(900)]
    assert grows(samples) is expected


@pytest.mark.parametrize(
    ("mb_per_hour", "noise_mb", "expected"), [(0, 3, False), (4, 0.1, False), (9, 0.1, True), (120, 3, True)]
)
def test_growth_is_more_than_noise_and_more_than_a_little(mb_per_hour: float, noise_mb: float, expected: bool) -> None:
    assert grows(_samples(mb_per_hour, noise_mb)) is expected


@pytest.mark.parametrize(
    ("mb_per_hour", "lag", "expected"), [(0, 1500, [True, True]), (0, 1501, [True, False]), (120, 0, [False, True])]
)
def test_memory_and_lag_of_steady_input(mb_per_hour: float, lag: float, expected: list[bool]) -> None:
    assert [verdict.well for verdict in verdicts.of_steady(_samples(mb_per_hour, 3, lag))] == expected


def test_an_outage_is_well_where_every_bound_holds() -> None:
    assert _wrong() == []
    assert _wrong(after=_lags(*range(9000, 1000, -400))) == [], "lag that falls is enough"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"input_bytes": 31 << 20}, "33 MB sent, 1.9 times"),
        ({"away": [Sample(0, 461, 0)]}, "at most 461.0 MB of 460.0 MB, 200.0 MB before"),
        ({"after": [Sample(0, 461, 0)]}, "at most 461.0 MB of 460.0 MB"),
        ({"paused_s": 299}, "299 of 600 s"),
        ({"after": _lags(*[9000] * 20)}, "9000 to 9000 records in 38 s"),
        ({"stored": Rows(8999, 8999)}, "9000 traces is stored once: 1 lost, 0 doubled"),
        ({"scored": Rows(9002, 9000)}, "9000 traces is scored once: 0 lost, 2 doubled"),
    ],
)
def test_each_bound_of_an_outage_breaks_by_itself(seen: dict[str, Any], said: str) -> None:
    (wrong,) = _wrong(**seen)
    assert said in wrong


@pytest.mark.parametrize(
    ("lags", "expected"),
    [(range(100, 0, -5), True), ([100] * 20, False), (range(20), False), ([90, 110] * 10, False), ([9, 5, 1], False)],
)
def test_lag_falls_by_more_than_noise_in_the_second_half(lags: list[float], expected: bool) -> None:
    assert falls(_lags(*lags)) is expected
