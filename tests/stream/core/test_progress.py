"""LaneProgress speaks only of what was handed over, never goes back, and is never ahead of the clock."""

from datetime import UTC, datetime, timedelta

from ragtide.sinks.rows import ProgressRow
from ragtide.stream.kafka.offsets import Lag
from ragtide.stream.telemetry.registry import Telemetry
from ragtide.stream.worker.lane import export_lag
from ragtide.stream.worker.progress import NOTHING_STORED, LaneProgress
from tests.stream.core.rows import record

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AT = ("rag.traces", 0)


def progress() -> LaneProgress:
    return LaneProgress("fast", "host:1:fast", lambda: NOW)


def test_a_slice_moves_offset_and_newest() -> None:
    row = progress().advance(AT, record(41), NOW - timedelta(minutes=5), Lag(40, 10))
    assert row == ProgressRow("fast", "rag.traces", 0, "host:1:fast", NOW - timedelta(minutes=5), 42, 8)


def test_newest_is_never_ahead_of_the_clock_and_never_goes_back() -> None:
    made = progress()
    assert made.advance(AT, record(1), NOW + timedelta(hours=1), None).newest == NOW
    assert made.advance(AT, record(2), NOW - timedelta(hours=1), None).newest == NOW
    assert made.advance(AT, record(3), None, None).newest == NOW


def test_a_heartbeat_says_lag_nought_only_where_all_is_handed_over() -> None:
    made = progress()
    made.advance(AT, record(41), NOW, Lag(0, 42))
    assert made.heartbeat([(AT, Lag(0, 42))])[0].lag == 0  # handed over, though not acknowledged yet
    assert made.heartbeat([(AT, Lag(0, 50))])[0].lag == 8


def test_a_partition_that_nothing_came_from_yet() -> None:
    (row,) = progress().heartbeat([(AT, Lag(7, 0))])
    assert (row.newest, row.offset, row.lag) == (NOTHING_STORED, 7, 0)


def test_another_owner_was_further_and_a_new_topic_is_shorter() -> None:
    made = progress()
    made.advance(AT, record(41), NOW, Lag(0, 42))
    assert made.heartbeat([(AT, Lag(100, 5))])[0][5:] == (100, 5)
    assert made.heartbeat([(AT, Lag(3, 0))])[0][5:] == (3, 0)


def test_age_is_that_of_the_newest_record_worked_off() -> None:
    made = progress()
    assert made.age_s(AT) is None
    made.advance(AT, record(1, timestamp=int(NOW.timestamp() * 1000) - 2500), NOW, None)
    assert made.age_s(AT) == 2.5


def test_how_old_what_waits_is_stays_untold_until_something_was_worked_off() -> None:
    telemetry, made, other = Telemetry(), progress(), ("rag.traces", 1)

    def shown(name: str, partition: int) -> float | None:
        where = {"lane": "fast", "topic": "rag.traces", "partition": str(partition)}
        return telemetry.registry.get_sample_value(f"ragtide_{name}", where)

    lags = {AT: Lag(0, 7), other: Lag(5, 0)}
    export_lag(telemetry, "fast", lags, made)
    assert [(shown("lag_records", at), shown("lag_seconds", at)) for at in (0, 1)] == [(7, None), (0, 0)]
    made.advance(AT, record(1, timestamp=int(NOW.timestamp() * 1000) - 2500), NOW, None)
    export_lag(telemetry, "fast", lags, made)
    assert shown("lag_seconds", 0) == 2.5
    export_lag(telemetry, "fast", {other: Lag(5, 0)}, made)
    assert shown("lag_records", 0) is None, "its partition is somebody else's by now"
