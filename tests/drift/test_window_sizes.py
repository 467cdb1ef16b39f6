"""Windows of every size are made of the base: whatever it is, rules see what was scored."""

import pytest

from ragtide.drift.settings import RuleSettings, WindowSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World


@pytest.mark.clickhouse
def test_a_base_of_its_own_needs_no_other_setting(database: Database) -> None:
    windows = WindowSettings(base_s=300, out_of_orderness_s=0)
    world = World(database, windows=windows, rules=RuleSettings(min_sample=10, k=1, m=1))
    for minute in range(5):
        world.scores(60 * minute, [0.3] * 4)
    world.advance(300)
    rows = database.rows("SELECT size_s, scored FROM windows FINAL WHERE metric = 'quality.good'")
    assert [(row["size_s"], row["scored"]) for row in rows] == [(300, 20)]
    assert [problem.metric for problem in world.open()] == ["quality.good"]


@pytest.mark.parametrize("base_s", [1, 10, 300, 600, 3600])
def test_the_base_is_the_least_size(base_s: int) -> None:
    assert WindowSettings(base_s=base_s).all_sizes_s == tuple(sorted({base_s, 3600, 86400}))


@pytest.mark.parametrize(
    ("base_s", "sizes_s", "said"),
    [
        (300, (60, 3600), r"60 is smaller than base_s = 300.*give sizes_s = \[3600\]"),
        (7200, (3600, 86400), r"3600 is smaller than base_s = 7200.*give sizes_s = \[86400\]"),
        (50, (60,), "60 is not a multiple of 50"),
        (60, (7, 3600), "7 is smaller than base_s"),
        (60, (50_400,), "50400 does not divide a day"),
    ],
)
def test_sizes_that_do_not_nest_are_refused(base_s: int, sizes_s: tuple[int, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        WindowSettings(base_s=base_s, sizes_s=sizes_s)
