"""Windows of method `window`: their numbers and those of their classes, made of parts, in every size and revision."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ragtide.drift.rules.resolve import check_settings
from ragtide.drift.settings import RuleOverride, RuleSettings, WindowSettings
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.parts import MOST_CLASSES, POOLED, ClassValue, Combined, name_and_labels, part_key
from ragtide.evaluators.spec import Metric
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import ScoreRow
from tests.drift.world import EVALUATORS, World, made, score_row

pytestmark = pytest.mark.clickhouse

METRICS = [
    Metric("right", threshold=0.75, primary=True),
    Metric("caught", threshold=0.5),
    Metric("class_right", per=("class",)),
]


def combine(parts: Mapping[str, float]) -> Combined:
    """`right`: of all records; `caught`: right ones of class `yes`; `class_right`: right ones of each class."""
    of: dict[tuple[str, ...], dict[str, float]] = {}
    for key, count in parts.items():
        name, labels = name_and_labels(key)
        of.setdefault(labels, {})[name] = count
    records = sum(found["of"] for found in of.values())
    if not records:
        return Combined()
    per = {labels: ClassValue(found.get("right", 0.0) / found["of"], int(found["of"])) for labels, found in of.items()}
    metrics = {"right": sum(found.get("right", 0.0) for found in of.values()) / records}
    if ("yes",) in per:
        metrics["caught"] = per["yes",].value
    return Combined(metrics, {"class_right": per})


RATED = made("rated", METRICS, method="window", combine=combine)
ALL = {**EVALUATORS, "rated": RATED}


def world(database: Database, **rules: Any) -> World:
    frames = WindowSettings(out_of_orderness_s=0, segments={"tenant": ("a",)})
    return World(database, windows=frames, rules=RuleSettings(min_sample=4, k=1, m=1, **rules), evaluators=ALL)


def rated(world: World, second: float, name: str, class_: str, right: bool, **fields: Any) -> ScoreRow:
    parts = {part_key("of", class_): 1.0} | ({part_key("right", class_): 1.0} if right else {})
    return score_row(
        world.at(second), name, {"right": float(right)}, evaluator="rated", parts=parts, **{"model": "m1", **fields}
    )


def stored(database: Database, size_s: int = 60) -> dict[tuple[str, str, int], tuple[Any, ...]]:
    """Value, records and revision by metric, class or tenant, and start in windows from the first."""
    rows = database.rows(
        "SELECT metric, segment_value, intDiv(toUnixTimestamp(start), size_s) AS at, value, scored, revision "
        "FROM windows FINAL WHERE evaluator = 'rated' AND size_s = {size_s:UInt32} ORDER BY start",
        {"size_s": size_s},
    )
    first = min((row["at"] for row in rows), default=0)
    return {
        (row["metric"].removeprefix("rated."), row["segment_value"], row["at"] - first): (
            row["value"],
            row["scored"],
            row["revision"],
        )
        for row in rows
    }


def written(database: Database) -> int:
    return int(database.rows("SELECT count() AS n FROM windows WHERE evaluator = 'rated'")[0]["n"])


def test_a_window_has_its_own_number_and_one_for_each_class(database: Database) -> None:
    here = world(database)
    here.store(
        [
            rated(here, 1, "a", "yes", True),
            rated(here, 2, "b", "yes", False),
            rated(here, 3, "c", "no", True, segments={"tenant": "a"}),
        ]
    )
    here.advance(60)
    assert stored(database) == {
        ("right", "", 0): (pytest.approx(2 / 3), 3, 1),
        ("right", "a", 0): (1.0, 1, 1),
        ("caught", "", 0): (0.5, 3, 1),
        ("class_right", "yes", 0): (0.5, 2, 1),
        ("class_right", "no", 0): (1.0, 1, 1),
    }
    (carrier,) = database.rows("SELECT parts FROM windows FINAL WHERE notEmpty(parts) AND segment = ''")
    assert carrier["parts"] == {"of\tno": 1.0, "of\tyes": 2.0, "right\tno": 1.0, "right\tyes": 1.0}
    classes = database.rows("SELECT DISTINCT segment FROM windows FINAL WHERE metric = 'rated.class_right'")
    assert classes == [{"segment": "class"}]


def test_where_nothing_was_to_be_counted_there_is_no_number(database: Database) -> None:
    here = world(database)
    skipped = score_row(here.at(1), "a", evaluator="rated", status="not_applicable", reason="missing_labels")
    here.store([skipped, score_row(here.at(2), "b", evaluator="rated", status="failed", reason="crashed")])
    here.advance(3600)
    for size_s in (60, 3600):
        assert stored(database, size_s) == {("right", "", 0): (None, 0, 1), ("caught", "", 0): (None, 0, 1)}
    assert database.rows("SELECT count() AS n FROM verdicts WHERE rule_id LIKE 'value:%'") == [{"n": 0}]


def test_where_combining_breaks_that_window_alone_has_no_number(database: Database) -> None:
    def breaks(parts: Mapping[str, float]) -> Combined:
        if part_key("of", "unspeakable") in parts:
            raise ValueError("unspeakable")
        return Combined({"right": math.nan}) if part_key("of", "odd") in parts else combine(parts)

    here = world(database)
    here.evaluators = {**EVALUATORS, "rated": made("rated", METRICS, method="window", combine=breaks)}
    here.elect()
    for minute, class_ in enumerate(("yes", "unspeakable", "odd", "no")):
        here.store([rated(here, 60 * minute + 1, f"r{minute}", class_, True)])
        here.scores(60 * minute + 2, [0.5])
    here.advance(240)
    numbers = {at: value for (metric, segment, at), (value, _, _) in stored(database).items() if metric == "right"}
    assert numbers == {0: 1.0, 1: None, 2: None, 3: 1.0}
    others = database.rows(
        "SELECT scored FROM windows FINAL WHERE metric = 'quality.good' AND size_s = 60 AND segment = ''"
    )
    assert [row["scored"] for row in others] == [1, 1, 1, 1]


def test_nothing_that_did_not_change_is_written_again(database: Database) -> None:
    here = world(database)
    rows = [rated(here, 1, "a", "yes", True), rated(here, 2, "b", "no", False)]
    here.store(rows)
    here.advance(3600)
    once = written(database)
    here.store(rows)
    here.advance(3601)
    assert written(database) == once
    assert {revision for _, _, revision in stored(database).values()} == {1}


def test_a_late_row_revises_numbers_and_a_class_that_is_gone_has_no_records(database: Database) -> None:
    here = world(database)
    here.store([rated(here, 1, "a", "yes", True, version=1), rated(here, 2, "b", "no", True, version=2)])
    here.advance(3600)
    # Trace b was labelled anew: as many records as before, but of another class and wrong.
    here.store([rated(here, 2, "b", "yes", False, version=3)])
    here.advance(3601)
    for size_s in (60, 3600):
        assert stored(database, size_s) == {
            ("right", "", 0): (0.5, 2, 2),
            ("caught", "", 0): (0.5, 2, 2),  # its counts are the same: it was revised for its number
            ("class_right", "yes", 0): (0.5, 2, 2),
            ("class_right", "no", 0): (None, 0, 2),
        }
    states = database.rows("SELECT DISTINCT state FROM windows FINAL WHERE evaluator = 'rated'")
    assert states == [{"state": "revised"}]


def test_hours_and_days_are_what_one_computation_over_all_gives(database: Database) -> None:
    here = world(database)
    here.start = here.start.replace(hour=0)  # all of one day, whatever time it is
    outcomes = [
        ("yes", True),
        ("yes", False),
        ("no", True),
        ("maybe", False),
        ("no", True),
        ("yes", True),
        ("no", False),
    ]
    rows = [rated(here, 700 * i, f"t{i}", *outcome) for i, outcome in enumerate(outcomes)]
    here.store(rows[:3])
    here.store(rows[3:])
    here.advance(2 * 86400)
    whole = combine(_sum(rows))
    [day] = [stored(database, 86400)]
    assert day["right", "", 0][0] == pytest.approx(whole.metrics["right"])
    assert day["caught", "", 0][0] == pytest.approx(whole.metrics["caught"])
    for labels, found in whole.per["class_right"].items():
        assert day["class_right", labels[0], 0][:2] == (pytest.approx(found.value), found.records)
    assert len([key for key in stored(database, 3600) if key[0] == "right"]) == 2


def test_a_run_has_the_same_numbers(database: Database) -> None:
    here = world(database)
    for run_id in ("live", "again"):
        here.store(
            [rated(here, i, f"t{i}", class_, i > 1, run_id=run_id) for i, class_ in enumerate(["yes", "no"] * 2)]
        )
    database.command("INSERT INTO runs (run_id, state, version) VALUES ('again', 'completed', 1)")
    here.advance(60)
    rows = database.rows(
        "SELECT metric, segment_value, groupArray(value) AS found FROM windows FINAL "
        "WHERE evaluator = 'rated' AND size_s = 60 GROUP BY metric, segment_value"
    )
    assert len(rows) == 4
    assert all(len(row["found"]) == 2 and len(set(row["found"])) == 1 for row in rows)


def test_who_stopped_before_the_numbers_were_stored_left_nothing_wrong(database: Database) -> None:
    here = world(database)
    here.store([rated(here, 1, "a", "yes", True)])

    class Stopped(Exception):
        """In place of a kill."""

    class Stopping(Database):
        def insert(self, table: str, rows: Any) -> None:
            if table == "windows":
                raise Stopped
            super().insert(table, rows)

    here.jobs.database = Stopping(database.settings)
    with pytest.raises(Stopped):
        here.advance(60)
    here.jobs.database.close()
    assert stored(database)["right", "", 0][0] is None
    here.elect()
    here.watch(61)
    assert stored(database)["right", "", 0][0] == 1.0
    assert stored(database)["class_right", "yes", 0] == (1.0, 1, 1)


@pytest.mark.parametrize("classes", [MOST_CLASSES, MOST_CLASSES + 20])
def test_a_window_holds_so_many_classes_and_pools_the_rarest(database: Database, classes: int) -> None:
    here = world(database)
    rows = [rated(here, 1, f"big{i}-{j}", f"c{i:03d}", True) for i in range(MOST_CLASSES - 1) for j in range(2)]
    rows += [rated(here, 2, f"small{i}", f"s{i:03d}", i % 2 == 0) for i in range(classes - MOST_CLASSES + 1)]
    here.store(rows)
    here.advance(3600)
    for size_s in (60, 3600):
        found = stored(database, size_s)
        names = {name for metric, name, _ in found if metric == "class_right"}
        assert len(names) == MOST_CLASSES
        assert (POOLED in names) == (classes > MOST_CLASSES)
        assert found["right", "", 0][0] == pytest.approx(combine(_sum(rows)).metrics["right"])
    if classes > MOST_CLASSES:  # 21 classes of one record each, every other one wrong
        assert stored(database)["class_right", POOLED, 0][:2] == (pytest.approx(11 / 21), 21)


def test_a_rule_judges_the_pooled_parts_and_names_the_wrong_records(database: Database) -> None:
    """Two minutes of 1/1 and 1/4 right: 2/5 together, where the mean of the windows' numbers would be 5/8."""
    here = world(database)
    here.store([rated(here, 1, "fine", "yes", True)])
    here.store([rated(here, 61 + i, f"t{i}", "no", i == 3) for i in range(4)])
    here.advance(120)
    (verdict,) = database.rows("SELECT * FROM verdicts FINAL WHERE metric = 'rated.right' AND rule_id LIKE 'value:%'")
    assert (verdict["value"], verdict["samples"], verdict["wrong"], verdict["breached"]) == (0.4, 5, 3, 1)
    (problem,) = here.open()
    assert (problem.metric, problem.kinds, problem.type) == ("rated.right", ("threshold",), "accuracy")
    assert problem.description.startswith(
        "shop (prod, model m1): rated.right is 0.4, below 0.75, on 5 traces (3 failed), since "
    )
    assert problem.examples == ("t2", "t1", "t0")


def test_other_metrics_and_classes_are_judged_where_settings_say_so(database: Database) -> None:
    overrides = (
        RuleOverride(metric="rated.right", enabled=False),
        RuleOverride(metric="rated.caught", min=0.9),
        RuleOverride(metric="rated.class_right", segment="class", segment_value="no", min=0.9),
    )
    here = world(database, overrides=overrides)
    here.store([rated(here, i, f"y{i}", "yes", i != 0, prompt_version=f"p{i % 2}") for i in range(4)])
    here.store([rated(here, 10 + i, f"n{i}", "no", i > 1, prompt_version=f"p{i % 2}") for i in range(4)])
    here.store([rated(here, 20 + i, f"m{i}", "maybe", False) for i in range(4)])
    here.advance(60)
    found = {(p.metric, p.segment_value): p for p in here.open()}
    assert set(found) == {("rated.caught", ""), ("rated.class_right", "no")}
    assert found["rated.caught", ""].attributes["value"] == 0.75  # prompt versions together: 3 of 4
    assert sorted(found["rated.caught", ""].examples) == ["m0", "m1", "m2", "m3", "n0", "n1", "y0"]
    of_class = found["rated.class_right", "no"]
    assert (of_class.attributes["value"], of_class.attributes["sample_size"]) == (0.5, 4)
    assert of_class.examples == ("n1", "n0")
    assert "class no): rated.class_right is 0.5, below 0.9, on 4 traces, since" in of_class.description


def test_rules_of_records_and_of_windows_are_not_mixed_up() -> None:
    for override, said in (
        (
            RuleOverride(metric="rated.right", rule="mean"),
            "rule = 'mean' of rated.right: it is a metric of whole",
        ),
        (RuleOverride(metric="rated.class_right", rule="any", min=0.5), "a metric of whole windows; use value"),
        (RuleOverride(metric="quality.good", rule="value"), "a metric of records; use mean or share or any"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_settings(RuleSettings(overrides=(override,)), ALL)
    check_settings(RuleSettings(overrides=(RuleOverride(metric="rated.class_right", rule="value", min=0.5),)), ALL)


def _sum(rows: Sequence[ScoreRow]) -> dict[str, float]:
    total: dict[str, float] = {}
    for row in rows:
        for key, count in row.parts.items():
            total[key] = total.get(key, 0.0) + count
    return total
