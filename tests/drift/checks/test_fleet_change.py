"""Changes of most applications within an hour are one problem, which explains theirs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.checks.fleet_change import FleetChanges, most_simultaneous
from ragtide.drift.notify.annotations import AnnotationChannel
from ragtide.drift.notify.messages import enqueue
from ragtide.drift.problems import Clear, Detection, Kind, ProblemKey, build_details, group, report_detections
from ragtide.drift.problems.model import Problem
from ragtide.drift.settings import JobSettings, RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.problems.test_groups import ANSWERS, ERRORS, FLIP, LATENCY, NOON, PII, problem
from tests.drift.world import World

APPS = ("billing", "docs", "hr", "shop", "travel")


class Fleet:
    """Applications with traffic, and problems of their latency."""

    def __init__(self, database: Database, rules: RuleSettings | None = None) -> None:
        self.world = World(database, rules=rules or RuleSettings(update_every_s=0, flap_s=60))
        for app in APPS:
            self.world.scores(0, [0.9] * 12, app=app, name=app)
        self.world.advance(3700)

    def begin(
        self,
        minute: float,
        *apps: str,
        metric: str = LATENCY["metric"],
        type_: str = "efficiency",
        kind: Kind = "change_point",
        window_m: float | None = None,
    ) -> None:
        """A change of each application is seen ten minutes later, by a window of a length."""
        found = []
        window = window_m and {
            "start": self.at(minute).isoformat(),
            "end": self.at(minute + window_m).isoformat(),
        }
        for app in apps:
            key = ProblemKey(app, "prod", "", "level", metric)
            where = (key, None, "It changed.", {"value": 2, "window": window}, self.world.rules)
            details = build_details(kind, *where, type_=type_, severity="critical")
            found.append(Detection(key, details, self.at(minute), self.at(minute + 10)))
        self.report(found, minute + 10)

    def end(self, minute: float, *apps: str) -> None:
        keys = [ProblemKey(app, "prod", "", "level", LATENCY["metric"]) for app in apps]
        self.report([Clear(key, "change_point", self.at(minute)) for key in keys], minute)

    def check(self, minute: float) -> list[Problem]:
        """The open problems of the fleet after a run."""
        self.world.check(FleetChanges(), self.at(minute))
        return [one for one in self.world.problems() if one.aspect == "fleet" and one.state == "open"]

    def at(self, minute: float) -> datetime:
        return self.world.at(60 * minute)

    def send(self, minute: float, wait_s: float = 30) -> None:
        """Store the messages that are due."""
        enqueue(self.world.database, AnnotationChannel(), 1, self.at(minute), timedelta(seconds=wait_s))

    def opened(self) -> list[str]:
        """The applications whose problems were announced, by name; empty: that of all."""
        rows = self.world.database.rows("SELECT subject FROM outbox FINAL WHERE action = 'open' ")
        ids = [row["subject"].partition(":")[0] for row in rows]
        apps = {one.problem_id: one.app for one in self.world.problems()}
        return sorted(apps[one] for one in ids)

    def report(self, what: Sequence[Detection | Clear], minute: float) -> None:
        report_detections(self.world.database, what, self.world.rules, self.world.term, self.at(minute))


@pytest.mark.clickhouse
def test_most_applications_at_once_are_one_problem_until_few_are_left(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, "shop")
    fleet.begin(80, "docs")
    assert fleet.check(95) == []
    fleet.begin(100, "hr")
    [found] = fleet.check(111)
    assert found.severity == "critical"
    assert found.description.startswith("3 of 5 applications changed between")
    assert "docs, hr, shop" in found.description
    groups = group(fleet.world.problems(), fleet.at(111))
    assert {one.app for one in groups.symptoms_of(found)} == {"docs", "hr", "shop"}
    fleet.begin(400, "travel")
    [later] = fleet.check(411)
    assert "travel" not in later.description


@pytest.mark.clickhouse
def test_it_stays_open_until_the_last_application_has_recovered(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, *APPS)
    assert len(fleet.check(71)) == 1
    fleet.send(72)
    fleet.end(100, *APPS[:3])
    [found] = fleet.check(101)
    assert found.description.startswith("5 of 5 applications")
    fleet.send(130)
    assert fleet.opened() == [""], "those that are left are still its symptoms"
    fleet.end(140, *APPS[3:])
    assert fleet.check(141) == []


@pytest.mark.clickhouse
def test_a_second_change_is_a_problem_of_its_own_and_moves_nothing_of_the_first(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, *APPS[:3])
    [first] = fleet.check(71)
    fleet.send(72)
    fleet.begin(90, APPS[3])
    assert [one.problem_id for one in fleet.check(101)] == [first.problem_id], "within its hour"
    fleet.begin(400, *APPS, metric=ANSWERS["metric"], type_="accuracy")
    second, still = fleet.check(411)
    assert (still.problem_id, still.onset) == (first.problem_id, first.onset)
    assert second.onset == fleet.at(400)
    assert second.description.startswith("5 of 5 applications")
    fleet.send(412)
    fleet.check(700)
    fleet.send(701)
    assert fleet.opened() == ["", ""], "symptoms of neither are announced"
    groups = group(fleet.world.open(), fleet.at(701))
    assert [len(groups.symptoms_of(one)) for one in (still, second)] == [4, 5]
    fleet.end(800, *APPS)
    assert [one.problem_id for one in fleet.check(801)] == [second.problem_id]


@pytest.mark.clickhouse
def test_only_changes_whose_onset_is_known_count(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, *APPS, kind="drift")
    fleet.begin(60, *APPS, metric=ANSWERS["metric"], type_="accuracy", window_m=1440)
    assert fleet.check(71) == []
    fleet.begin(60, *APPS, metric=ERRORS["metric"], type_="runtime", window_m=15)
    assert len(fleet.check(72)) == 1


@pytest.mark.clickhouse
def test_it_opens_before_messages_of_its_symptoms_are_due(database: Database) -> None:
    fleet, settings = Fleet(database), JobSettings()
    fleet.check(70 - 1 / 60)
    fleet.begin(60, *APPS[:3])
    for second in range(60):
        minute = 70 + second / 60
        if (second + 1) % FleetChanges().interval_s(settings) == 0:
            fleet.check(minute)
        fleet.send(minute, settings.group_wait_s)
    assert fleet.opened() == [""]


@pytest.mark.clickhouse
def test_applications_that_changed_earlier_are_announced_and_the_later_ones_are_not(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, *APPS[:2])
    fleet.send(71)
    fleet.begin(80, *APPS[2:])
    fleet.check(90)
    fleet.send(91)
    assert fleet.opened() == ["", *APPS[:2]]


@pytest.mark.clickhouse
def test_groups_are_stored_as_soon_as_it_opens(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, *APPS)
    fleet.world.jobs.run_checks([FleetChanges()], fleet.at(71))
    [row] = database.rows("SELECT count() AS n FROM problem_groups FINAL WHERE parent_id != ''")
    assert row["n"] == len(APPS)


@pytest.mark.clickhouse
def test_changes_of_more_than_an_hour_apart_are_of_their_own(database: Database) -> None:
    fleet = Fleet(database)
    for hour, app in enumerate(APPS):
        fleet.begin(60 + 61 * hour, app)
    assert fleet.check(400) == []


@pytest.mark.clickhouse
def test_the_share_is_a_setting(database: Database) -> None:
    fleet = Fleet(database, RuleSettings(fleet_share=0.9, update_every_s=0))
    fleet.begin(60, *APPS[:4])
    assert fleet.check(71) == []
    fleet.begin(75, APPS[4])
    assert len(fleet.check(86)) == 1


@pytest.mark.clickhouse
def test_applications_without_traffic_for_hours_count_for_a_day(database: Database) -> None:
    fleet = Fleet(database, RuleSettings(fleet_share=0.9, update_every_s=0))
    fleet.begin(300, *APPS[:4])
    assert fleet.check(311) == [], "four of five"
    fleet.begin(1800, *APPS[:4], metric=ANSWERS["metric"], type_="accuracy")
    assert len(fleet.check(1811)) == 1, "four of those that have traffic"


@pytest.mark.clickhouse
def test_two_applications_are_no_fleet(database: Database) -> None:
    fleet = Fleet(database, RuleSettings(fleet_share=0.1, update_every_s=0))
    fleet.begin(60, *APPS[:2])
    assert fleet.check(71) == []


@pytest.mark.clickhouse
def test_what_a_judge_explains_does_not_count(database: Database) -> None:
    fleet = Fleet(database)
    judge = ProblemKey("", "", "", "judge", "quality.good")
    window = {"start": fleet.at(40).isoformat(), "end": fleet.at(60).isoformat()}
    what = (judge, None, "It scores otherwise.", {"window": window}, fleet.world.rules)
    details = build_details("judge_shift", *what, severity="warning")
    fleet.report([Detection(judge, details, fleet.at(60), fleet.at(70))], 70)
    fleet.begin(61, *APPS, metric="quality.good", type_="accuracy")
    assert fleet.check(72) == []
    fleet.begin(62, *APPS)
    assert len(fleet.check(73)) == 1


@pytest.mark.clickhouse
def test_leaks_do_not_count(database: Database) -> None:
    fleet = Fleet(database)
    fleet.begin(60, *APPS, metric="pii_leakage.passes", type_="privacy")
    assert fleet.check(71) == []


def test_the_hour_with_most_applications_is_found_not_that_with_most_problems() -> None:
    many = [
        problem(f"m{i}", i, app="shop", **{**LATENCY, "segment": "tenant", "segment_value": f"{i}"}) for i in range(9)
    ]
    few = [problem(f"f{app}", 200 + 10 * i, app=app, **LATENCY) for i, app in enumerate(APPS[:3])]
    assert most_simultaneous([*many, *few]).apps == list(APPS[:3])
    assert most_simultaneous([]).problems == []


@pytest.mark.parametrize(("what", "explained"), [(LATENCY, True), (ANSWERS, True), (PII, False)])
@pytest.mark.parametrize(("after_m", "within"), [(-9, True), (45, True), (69, True), (71, False), (-11, False)])
def test_a_change_of_most_explains_what_began_in_its_hour(
    what: dict[str, Any], explained: bool, after_m: float, within: bool
) -> None:
    of_fleet: dict[str, Any] = {
        "aspect": "fleet",
        "app": "",
        "environment": "",
        "model": "",
        "type": "runtime",
        "interval_m": 60,
    }
    fleet, own = problem("fleet", **of_fleet), problem("own", after_m, **what)
    parents = group([fleet, own], NOON + timedelta(minutes=90)).parents
    assert ({key.problem_id: parent.problem_id for key, parent in parents.items()} == {"own": "fleet"}) == (
        explained and within
    )


def test_flips_are_explained_in_applications_that_changed_only() -> None:
    of_fleet: dict[str, Any] = {"aspect": "fleet", "app": "", "environment": "", "model": "", "type": "runtime"}
    fleet, errors = problem("fleet", interval_m=60, **of_fleet), problem("errors", 5, app="shop", **ERRORS)
    own, other = problem("own", 90, app="shop", **FLIP), problem("other", 90, app="hr", **FLIP)
    parents = group([fleet, errors, own, other], NOON + timedelta(minutes=95)).parents
    assert {key.problem_id: parent.problem_id for key, parent in parents.items()} == {"errors": "fleet", "own": "fleet"}
