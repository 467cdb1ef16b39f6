"""A stuck lane is told from an idle one, and from one whose sink is away."""

from ragtide.stream.telemetry.health import LaneHealth


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_lane_without_commits_while_records_wait_is_stuck() -> None:
    clock = Clock()
    health = LaneHealth(clock, live_after_s=60)
    health.observe({0: 5}, work_waits=True, away=False)
    clock.now += 59
    health.observe({0: 5}, work_waits=True, away=False)
    assert health.live() == []
    clock.now += 2
    assert health.live() == ["records wait and nothing was committed for 61 s"]
    health.observe({0: 6}, work_waits=True, away=False)
    assert health.live() == []


def test_an_idle_lane_lives_for_ever_and_so_does_one_whose_sink_is_away() -> None:
    clock = Clock()
    health = LaneHealth(clock, live_after_s=60)
    for waits, away in [(False, False), (True, True)] * 5:
        health.observe({0: 5}, work_waits=waits, away=away)
        clock.now += 55
        assert health.live() == []


def test_a_watch_that_stopped_looking_is_stuck() -> None:
    clock = Clock()
    health = LaneHealth(clock, live_after_s=60)
    health.observe({}, work_waits=False, away=False)
    clock.now += 61
    assert health.live()


def test_ready_says_what_it_waits_for() -> None:
    health = LaneHealth(Clock(), 60)
    assert health.ready() == ["the worker is starting"]
    health.waits_for("start", None)
    assert health.ready() == []
    health.waits_for("sink", "the sink does not accept rows")
    assert health.ready() == ["the sink does not accept rows"]
    health.waits_for("sink", None)
    health.waits_for("sink", None)
    assert health.ready() == []
