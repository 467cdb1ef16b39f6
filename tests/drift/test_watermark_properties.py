"""Whatever partitions do (lag, idle, get stuck, vanish, come back), the watermark is the rule's and never falls."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.drift.settings import WindowSettings
from ragtide.drift.windows.watermark import Idleness, PartitionProgress, monotonic, watermarks

START = datetime(2026, 3, 1, tzinfo=UTC)
SETTINGS = WindowSettings(
    out_of_orderness_s=3, heartbeat_timeout_s=20, stuck_wait_s=30, idle_after_s=10, partition_expiry_s=100
)
KEY = ("fast", "rag.traces")

# What each of three partitions does in a round: its worker says nothing, or what came and what is left.
silent = st.none()
heard = st.tuples(st.sampled_from([0, 0, 0, 3, 20]), st.sampled_from([0, 0, 3]))
lasts_s = st.sampled_from([5, 5, 5, 10, 40, 60])
rounds = st.lists(st.tuples(lasts_s, st.tuples(*[st.one_of(silent, heard, heard)] * 3)), min_size=1, max_size=30)


class Partition:
    """One partition, and what its worker last said: seconds since START."""

    def __init__(self) -> None:
        self.newest = 0
        self.offset = 0
        self.lag = 0
        self.heartbeat: int | None = None
        self.still_since: int | None = None  # as the leader saw it

    def hears(self, now: int, came: int, lag: int) -> None:
        self.newest = min(self.newest + came, now)
        self.offset += came
        if came or lag or self.heartbeat is None:
            self.still_since = now
        self.lag, self.heartbeat = lag, now


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def said(partitions: Sequence[Partition]) -> list[PartitionProgress]:
    return [
        PartitionProgress(*KEY, number, at(each.newest), each.offset, each.lag, at(each.heartbeat))
        for number, each in enumerate(partitions)
        if each.heartbeat is not None
    ]


def expected(partitions: Sequence[Partition], now: int) -> tuple[int, bool] | None:
    """The rule, told anew: who holds it back, else how far the idle were seen, else what there is."""
    there = [(each, each.heartbeat, now - each.heartbeat) for each in partitions if each.heartbeat is not None]
    there = [(each, heartbeat, quiet) for each, heartbeat, quiet in there if quiet < 100]
    if not there:
        return None
    given_up = [each for each, _, quiet in there if quiet > 50]
    idle, holding, idle_heartbeats = [], [], []
    for each, heartbeat, quiet in there:
        if quiet > 50:
            continue
        assert each.still_since is not None
        if quiet <= 20 and each.lag == 0 and heartbeat - each.still_since >= 10:
            idle.append(each)
            idle_heartbeats.append(heartbeat)
        else:
            holding.append(each)
    if holding:
        found = min(each.newest for each in holding)
    elif idle:
        found = min(idle_heartbeats)
    else:
        found = max(each.newest for each in given_up)
    return found - 3, bool(given_up)


@settings(max_examples=200, deadline=None)
@given(rounds)
def test_the_watermark_is_the_rules_and_never_falls(
    story: list[tuple[int, tuple[tuple[int, int] | None, ...]]],
) -> None:
    partitions, idleness = [Partition() for _ in range(3)], Idleness()
    stored: dict[tuple[str, str], datetime] = {}
    now = 0
    for round_s, happened in story:
        now += round_s
        for partition, word in zip(partitions, happened, strict=True):
            if word is not None:
                partition.hears(now, *word)
        found = watermarks(said(partitions), at(now), idleness, SETTINGS)
        rule = expected(partitions, now)
        assert (rule is None) == (KEY not in found)
        if rule is None:
            continue
        second, incomplete = rule
        assert found[KEY] == (at(second), incomplete)
        before = stored.get(KEY)
        kept = monotonic(found, stored)[KEY]
        assert kept.at == (found[KEY].at if before is None else max(before, found[KEY].at))
        stored[KEY] = kept.at
