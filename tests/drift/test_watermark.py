"""Which event times are all stored: partitions that lag, idle, are stuck, vanish."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.watermark import (
    Idleness,
    PartitionProgress,
    Watermark,
    lane_watermarks,
    monotonic,
    watermarks,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = WindowSettings(
    out_of_orderness_s=30, heartbeat_timeout_s=20, stuck_wait_s=100, idle_after_s=10, partition_expiry_s=1000
)
KEY = ("fast", "rag.traces")


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def said(
    partition: int, newest_s: float, *, lag: int = 0, offset: int = 7, heartbeat_s: float = 0
) -> PartitionProgress:
    """Newest event time and heartbeat so many seconds ago."""
    return PartitionProgress("fast", "rag.traces", partition, ago(newest_s), offset, lag, ago(heartbeat_s))


def mark(*progress: PartitionProgress, idleness: Idleness | None = None) -> Watermark:
    return watermarks(progress, NOW, idleness or Idleness(), SETTINGS)[KEY]


def test_the_slowest_partition_counts_less_the_out_of_orderness() -> None:
    assert mark(said(0, 5, lag=3), said(1, 60, lag=9)) == Watermark(ago(90), False)


def test_lag_0_alone_is_not_idle() -> None:
    """Traffic that is worked off at once has lag 0 all the time; nothing new must have come for a while."""
    idleness = Idleness()
    first = said(0, 25, heartbeat_s=15)
    assert mark(first, idleness=idleness) == Watermark(ago(55), False)
    assert mark(said(0, 12, offset=8, heartbeat_s=2), idleness=idleness) == Watermark(ago(42), False)


def test_an_idle_partition_holds_nothing_back() -> None:
    idleness = Idleness()
    mark(said(0, 500, heartbeat_s=12), idleness=idleness)
    both = mark(said(0, 500, heartbeat_s=1), said(1, 5, lag=1), idleness=idleness)
    assert both == Watermark(ago(35), False)


def test_where_all_are_idle_everything_up_to_their_heartbeats_is_stored() -> None:
    idleness = Idleness()
    mark(said(0, 500, heartbeat_s=15), said(1, 400, heartbeat_s=14), idleness=idleness)
    assert mark(said(0, 500, heartbeat_s=2), said(1, 400, heartbeat_s=1), idleness=idleness) == Watermark(
        ago(32), False
    )


def test_a_new_leader_calls_nobody_idle_at_first() -> None:
    assert mark(said(0, 500, heartbeat_s=1)) == Watermark(ago(530), False)


def test_a_partition_without_any_record_is_idle_at_once() -> None:
    never = PartitionProgress("fast", "rag.traces", 1, datetime.fromtimestamp(0, UTC), 0, 0, NOW)
    assert mark(said(0, 5, lag=1), never) == Watermark(ago(35), False)


def test_a_partition_whose_backlog_has_just_begun_holds_everything_back() -> None:
    never = PartitionProgress("fast", "rag.traces", 1, datetime.fromtimestamp(0, UTC), 0, 900, NOW)
    assert mark(said(0, 5, lag=1), never).at < ago(86400)


def test_no_heartbeat_means_stuck_and_not_idle() -> None:
    idleness = Idleness()
    mark(said(0, 80, heartbeat_s=70), idleness=idleness)
    stuck = mark(said(0, 80, heartbeat_s=50), said(1, 5, lag=1), idleness=idleness)
    assert stuck == Watermark(ago(110), False)


def test_a_stuck_partition_is_waited_for_in_vain_only_so_long() -> None:
    assert mark(said(0, 130, heartbeat_s=119), said(1, 5, lag=1)) == Watermark(ago(160), False)
    assert mark(said(0, 130, heartbeat_s=121), said(1, 5, lag=1)) == Watermark(ago(35), True)


def test_where_every_partition_is_given_up_what_is_stored_counts() -> None:
    assert mark(said(0, 300, heartbeat_s=200), said(1, 250, heartbeat_s=180)) == Watermark(ago(280), True)


def test_a_partition_that_nobody_speaks_of_any_more_is_gone() -> None:
    assert mark(said(0, 5000, heartbeat_s=1001), said(1, 5, lag=1)) == Watermark(ago(35), False)
    assert watermarks([said(0, 5000, heartbeat_s=1001)], NOW, Idleness(), SETTINGS) == {}


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_stored_watermark_never_goes_back(stored: int, found: int) -> None:
    marks = monotonic({KEY: Watermark(ago(found), False)}, {KEY: ago(stored)})
    assert marks[KEY].at == max(ago(stored), ago(found))


def test_a_lane_closes_on_the_lower_of_its_own_and_fast_over_all_topics() -> None:
    marks = {
        ("fast", "a"): Watermark(ago(10), False),
        ("fast", "b"): Watermark(ago(20), True),
        ("model", "a"): Watermark(ago(40), False),
        ("judge", "a"): Watermark(ago(5), False),
    }
    assert lane_watermarks(marks) == {
        "fast": Watermark(ago(20), True),
        "model": Watermark(ago(40), True),
        "judge": Watermark(ago(20), True),
    }
    assert lane_watermarks({("model", "a"): Watermark(ago(40), False)}) == {}
