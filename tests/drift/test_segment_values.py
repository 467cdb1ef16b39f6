"""Values of a segment that are not listed are chosen once a day, and hold until the next choice."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from ragtide.drift.settings import AppWindows, WindowSettings
from ragtide.drift.windows.contents import OTHER_VALUES
from ragtide.drift.windows.scope import WindowKey
from ragtide.drift.windows.segments import Choice, SegmentValues, load_segment_values
from ragtide.sinks.clickhouse.database import Database
from tests.drift.world import World

pytestmark = pytest.mark.clickhouse
DAY = 86_400
FRAMES = WindowSettings(out_of_orderness_s=0, segments={"tenant": (), "region": ("eu",)}, segment_values=2)


def traffic(world: World, second: float, counts: Mapping[str, int]) -> None:
    for tenant, count in counts.items():
        world.scores(second, [0.9] * count, segments={"tenant": tenant}, name=f"{tenant}{second}")


def cut_by(world: World, second: float) -> dict[str, int]:
    rows = world.database.rows(
        "SELECT segment_value, seen FROM windows FINAL WHERE metric = 'quality.good' AND segment = 'tenant' "
        "AND size_s = 60 AND start = {at:DateTime('UTC')}",
        {"at": world.at(second)},
    )
    return {row["segment_value"]: row["seen"] for row in rows}


def chosen(world: World) -> list[set[str]]:
    rows = world.database.rows("SELECT values FROM segment_values FINAL WHERE segment = 'tenant' ORDER BY holds_from")
    return [set(row["values"]) for row in rows]


def test_the_values_with_most_traces_have_series_of_their_own(database: Database) -> None:
    world = World(database, windows=FRAMES)
    traffic(world, 0, {"a": 3, "b": 5, "c": 1, "d": 2})
    world.advance(60)
    assert chosen(world) == [{"a", "b"}]
    assert cut_by(world, 0) == {"a": 3, "b": 5, "__other__": 3}


def test_small_apps_are_not_crowded_out(database: Database) -> None:
    world = World(database, windows=FRAMES)
    traffic(world, 0, {"a": 5, "b": 5, "c": 5})
    world.scores(0, [0.9], app="small", segments={"tenant": "s"}, name="s")
    world.advance(60)
    assert chosen(world) == [{"a", "b", "s"}]


def test_a_choice_holds_all_day_whoever_leads(database: Database) -> None:
    world = World(database, windows=FRAMES)
    traffic(world, 0, {"a": 3, "b": 5, "c": 1})
    world.advance(60)
    traffic(world, 120, {"c": 9})
    world.elect()
    world.advance(180)
    assert chosen(world) == [{"a", "b"}]
    assert cut_by(world, 120) == {"__other__": 9}


def test_the_next_day_chooses_anew_and_what_still_ranks_high_stays(database: Database) -> None:
    world = World(database, windows=FRAMES)
    traffic(world, 0, {"a": 3, "b": 5, "c": 1})
    world.advance(60)
    traffic(world, DAY, {"c": 9, "d": 7, "e": 6, "b": 2, "f": 3})
    world.advance(DAY + 60)
    traffic(world, DAY + 120, {"c": 1, "e": 1})
    world.advance(DAY + 180)
    assert chosen(world) == [{"a", "b"}, {"c", "d"}]  # b is the fifth: more than twice the two that are chosen
    assert cut_by(world, DAY + 120) == {"c": 1, "__other__": 1}
    traffic(world, 2 * DAY, {"e": 9, "f": 8, "g": 8, "d": 7, "c": 5})
    world.advance(2 * DAY + 60)
    assert chosen(world)[-1] == {"e", "f", "d"}


def test_windows_of_the_day_before_keep_their_values_when_late_rows_come(database: Database) -> None:
    world = World(database, windows=FRAMES)
    traffic(world, 0, {"a": 3, "b": 5, "c": 1})
    world.advance(60)
    traffic(world, DAY, {"c": 9, "d": 7})
    world.advance(DAY + 60)
    world.scores(30, [0.9], segments={"tenant": "c"}, name="late")
    world.advance(DAY + 120)
    assert cut_by(world, 0) == {"a": 3, "b": 5, "__other__": 2}


def test_a_segment_that_no_trace_has_is_looked_for_again_and_cuts_nothing(database: Database) -> None:
    world = World(database, windows=FRAMES)
    world.scores(0, [0.9], name="plain")
    world.advance(60)
    assert chosen(world) == [set()]
    traffic(world, 60, {"a": 2})
    world.advance(120)
    assert cut_by(world, 60) == {}
    traffic(world, 720, {"a": 2})
    world.advance(780)
    assert chosen(world) == [set(), {"a"}]
    assert cut_by(world, 720) == {"a": 2}


def test_what_holds_is_told_by_the_start_of_a_window(database: Database) -> None:
    world = World(database)
    start = int(world.start.timestamp())
    choices = [Choice("tenant", world.start + timedelta(days=n), (f"v{n}",), 1) for n in (1, 2)]
    values = SegmentValues({"region": ("eu",), "tenant": ()}, choices, {"docs": {"topic": ("json",)}})
    assert values.at(start, "shop")["tenant"] == ("v1",), "nothing held before the first choice"
    assert values.at(start + DAY, "shop") == {"region": ("eu",), "tenant": ("v1",)}
    assert values.at(start + 2 * DAY, "shop")["tenant"] == ("v2",)
    assert values.at(start + DAY, "docs") == {"topic": ("json",)}
    windows = [WindowKey("live", "shop", "prod", start + n * DAY - 60) for n in (1, 2, 3)]
    assert [(cut["tenant"], scope.windows) for cut, scope in values.batch_scopes(windows, DAY, ())] == [
        (("v1",), (windows[0],)),
        (("v1",), (windows[1],)),
        (("v2",), (windows[2],)),
    ]


def test_an_app_has_segments_of_its_own(database: Database) -> None:
    """Listed, chosen, or none; how many are chosen of one app changes nothing for another."""
    own = {
        "wide": AppWindows(segment_values=3),
        "listed": AppWindows(segments={"region": (), "tenant": ("x",)}),
        "whole": AppWindows(segments={}),
    }
    frames = WindowSettings(out_of_orderness_s=0, segments={"tenant": ()}, segment_values=1, apps=own)
    world = World(database, windows=frames)
    for app in ("shop", *own):
        for index in range(4):
            cut = {"tenant": f"{app}{index}", "region": "eu"}
            world.scores(0, [0.9] * (4 - index), app=app, segments=cut, name=f"{app}{index}")
    world.scores(0, [0.9], app="listed", segments={"tenant": "x"}, name="x")
    world.advance(60)
    assert chosen(world) == [{"shop0", "wide0", "wide1", "wide2"}]
    world.advance(3600)
    rows = world.database.rows(
        "SELECT app, groupUniqArray((segment, segment_value)) AS cuts FROM windows FINAL "
        "WHERE metric = 'quality.good' AND size_s = 3600 GROUP BY app"
    )
    assert {row["app"]: set(row["cuts"]) for row in rows} == {
        "shop": {("", ""), ("tenant", "shop0"), ("tenant", OTHER_VALUES)},
        "wide": {("", ""), *(("tenant", f"wide{n}") for n in range(3)), ("tenant", OTHER_VALUES)},
        "listed": {("", ""), ("tenant", "x"), ("tenant", OTHER_VALUES), ("region", "eu")},
        "whole": {("", "")},
    }


def test_chosen_values_take_bounded_room_and_the_rest_counts_as_others(database: Database) -> None:
    world = World(database, windows=FRAMES)
    long = "l" * 100_000
    traffic(world, 0, {long: 5, "a": 3, "b": 2})
    world.advance(60)
    assert chosen(world) == [{"a", "b"}]
    assert cut_by(world, 0) == {"a": 3, "b": 2, "__other__": 5}
    many = [f"{i:03d}".ljust(500, "x") for i in range(100)]
    world.database.insert("segment_values", [Choice("tenant", world.at(120), [*many, long], world.term.epoch)])
    known = load_segment_values(world.database, FRAMES)
    assert known.at(int(world.at(120).timestamp()), "shop")["tenant"] == many[:65]
    assert known.omitted == 36
