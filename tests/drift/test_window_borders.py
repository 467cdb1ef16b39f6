"""A record belongs to the window that begins at or before its millisecond, at every size."""

from collections import Counter
from datetime import timedelta

import pytest

from ragtide.drift.settings import WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World, score_row

pytestmark = pytest.mark.clickhouse

SIZES_S = (10, 60, 3600, 86_400)
BORDERS_S = (10, 20, 60, 120, 3590, 3600, 3660)
AROUND_MS = (-1, 0, 1)


def test_a_millisecond_before_a_border_is_the_window_before(database: Database) -> None:
    frames = WindowSettings(base_s=10, sizes_s=SIZES_S[1:], out_of_orderness_s=0)
    world = World(database, windows=frames)
    world.start = world.start.replace(hour=0) - timedelta(days=2)
    first_ms = int(world.start.timestamp()) * 1000
    times_ms = [first_ms + 1000 * border_s + around_ms for border_s in BORDERS_S for around_ms in AROUND_MS]
    world.store(
        [
            score_row(world.start + timedelta(milliseconds=at_ms - first_ms), f"t{at_ms}", {"good": 0.5})
            for at_ms in times_ms
        ]
    )
    world.advance(2 * 86_400)
    for size_s in SIZES_S:
        rows = database.rows(
            "SELECT toUnixTimestamp(start) AS at, scored FROM windows FINAL "
            "WHERE size_s = {size_s:UInt32} AND metric = 'quality.good'",
            {"size_s": size_s},
        )
        size_ms = size_s * 1000
        expected = Counter((at_ms - at_ms % size_ms) // 1000 for at_ms in times_ms)
        assert {row["at"]: row["scored"] for row in rows} == expected, size_s
