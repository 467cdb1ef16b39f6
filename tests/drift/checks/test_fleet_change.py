"""Changes of most applications within an hour are one problem, which explains theirs."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from ragtide.drift.checks.fleet_change import FleetChanges, most_simultaneous
from ragtide.drift.problems import Clear, Detection, ProblemKey, build_details, group, report_detections
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.report import Details
from ragtide.drift.settings import RuleSettings
from ragtide.sinks.clickhouse.database import Database
from tests.drift.problems.test_groups import ANSWERS, LATENCY, NOON, PII, problem
from tests.drift.world import World

APPS = ("billing", "docs", "hr", "shop", "travel")


class Fleet:
    """Applications with traffic, and problems of their latency."""

    def __init__(self, database: Database, rules: RuleSettings | None = None) -> None:
        self.world = World(database, rules=rules or RuleSettings(update_every_s=0, flap_s=60))
        for app in APPS:
            self.world.scores(0, [0.9] * 12, app=app, name=app)
        self.world.advance(60)

    def begin(self, minute: float, *apps: str, metric: str = LATENCY["metric"], type_: str = "efficiency") -> None:
        """A change of each application is seen ten minutes later."""
        found = []
        for app in apps:
            key = ProblemKey(app, "prod", "", "level", metric)
            found.append(Detection(key, self._details(key, type_), self.at(minute), self.at(minute + 10)))
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

    def _details(self, key: ProblemKey, type_: str) -> Details:
        where = (key, None, "It changed.", {"value": 2}, self.world.rules)
        return build_details("change_point", *where, type_=type_, severity="critical")

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
    fleet.end(500, "shop")
    assert fleet.check(501) == []


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
def test_the_fleets_problem_explains_what_began_in_its_hour(
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
