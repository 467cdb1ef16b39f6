"""What a person says of problems by commands, on the real engine: kept with who, when and why."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.problems.chart import onset_of
from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.operator_actions import acceptances
from ragtide.drift.problems.report import Detection, ProblemKey, build_details, report
from ragtide.drift.problems.store import load_problems
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from tests.drift.world import EVALUATORS, World
from tests.infra.fresh_database import reached

pytestmark = pytest.mark.clickhouse
PLACE = ProblemKey("shop", "prod", "m1", "level", "quality.good")


class Site:
    """A database with problems, and commands upon it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.world = World(database, rules=RuleSettings(min_sample=10, k=1, m=1, resolve_after=1))

    def sees(self, kind: Kind, second: float = 60, place: ProblemKey = PLACE) -> list[str]:
        metric = metrics_by_name(EVALUATORS)["quality.good"]
        said = build_details(
            kind, place, metric, f"{kind} sees it at {place.app}", {"threshold": 0.75}, self.world.rules
        )
        trouble = Detection(place, said, self.world.at(0), self.world.at(second))
        told = report(self.database, [trouble], self.world.rules, self.world.term, datetime.now(UTC))
        return [event.event for event in told]

    def run(self, *args: str, exit_code: int = 0) -> Result:
        variables = {"RAGTIDE_CONFIG": None, "COLUMNS": "100", **reached(self.database)}
        found = CliRunner().invoke(main, ["problems", *args], env=variables)
        assert found.exit_code == exit_code, found.output
        return found

    def on(self, what: str, *args: str, exit_code: int = 0) -> str:
        return self.run(what, self.problem.problem_id[:6], *args, exit_code=exit_code).output

    def events(self) -> list[dict[str, Any]]:
        return self.database.rows("SELECT event, actor, attributes FROM problem_events FINAL ORDER BY at")

    @property
    def problem(self) -> Problem:
        (found,) = load_problems(self.database)
        return found


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


def test_acks_and_mutes_are_kept_with_who_and_why_and_shown(site: Site) -> None:
    site.sees("drift")
    site.on("ack", "--why", "looking into it", "--by", "ada")
    said = site.on("mute", "--until", "2h", "--why", "mended tonight", "--by", "bob")
    assert "is muted until" in said
    problem = site.problem
    assert (problem.acked_by, problem.muted_by) == ("ada", "bob")
    assert problem.muted_until is not None
    assert timedelta(minutes=119) < problem.muted_until - datetime.now(UTC) <= timedelta(hours=2)
    assert "open, acked, muted" in site.run("list").output
    shown = site.on("show")
    assert "acked by ada: looking into it" in shown
    assert "by bob: mended tonight" in shown
    site.on("unack", "--by", "ada")
    site.on("unmute", "--by", "bob")
    assert (site.problem.acked_by, site.problem.muted_by) == ("", "")
    assert [(row["event"], row["actor"]) for row in site.events()] == [
        ("opened", ""), ("acked", "ada"), ("muted", "bob"), ("unacked", "ada"), ("unmuted", "bob"),
    ]  # fmt: skip


def test_what_is_accepted_is_resolved_and_a_baseline_can_begin_anew(site: Site) -> None:
    site.sees("drift")
    assert "is accepted and is resolved" in site.on("accept", "--why", "shorter answers", "--by", "ada")
    assert (site.problem.state, site.problem.accepted_by) == ("resolved", "ada")
    (acceptance,) = acceptances(site.database)
    assert (acceptance.key, acceptance.kinds) == (PLACE, ("drift",))
    assert (acceptance.since, acceptance.by, acceptance.why) == (site.world.at(0), "ada", "shorter answers")
    assert site.sees("drift") == []  # windows from before the acceptance say nothing new
    assert "only an open one" in site.on("accept", "--why", "again", exit_code=2)
    assert "is resolved" in site.on("ack", "--by", "ada", exit_code=2)
    assert [(row["event"], row["actor"]) for row in site.events()] == [
        ("opened", ""), ("accepted", "ada"), ("resolved", "ada"),
    ]  # fmt: skip


def test_what_a_threshold_sees_stays_open_and_alone_cannot_be_accepted(site: Site) -> None:
    site.sees("threshold")
    assert "rules.overrides" in site.on("accept", "--why", "so be it", exit_code=2)
    site.sees("drift")
    site.sees("change_point")
    assert "stays open: it is seen by threshold too" in site.on("accept", "--why", "so be it", "--by", "ada")
    assert (site.problem.state, site.problem.active_kinds) == ("open", ("threshold",))
    assert site.problem.kinds == ("threshold", "drift", "change_point")


@pytest.mark.parametrize(
    "args",
    [
        ["--why", "x"],
        ["--until", "2h"],
        ["--until", "2h", "--why", " "],
        ["--until", "9999-12-31T23:59:59-12:00", "--why", "x"],
        ["--until", "2020-01-01", "--why", "x"],
        ["--until", "soon", "--why", "x"],
    ],
)
def test_a_mute_needs_an_end_to_come_and_a_reason(site: Site, args: list[str]) -> None:
    site.sees("drift")
    site.on("mute", *args, exit_code=2)
    assert [row["event"] for row in site.events()] == ["opened"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["unack"], "is not acknowledged"),
        (["unmute"], "is not muted"),
        (["accept", "--why", ""], "say why"),
        (["ack", "--why", "na\udcefve"], r"'na\udcefve' is not UTF-8"),
    ],
)
def test_nothing_is_said_that_is_no_word_of_this_problem(site: Site, args: list[str], said: str) -> None:
    site.sees("drift")
    assert said in site.on(*args, exit_code=2)
    assert [row["event"] for row in site.events()] == ["opened"]


def test_what_an_application_is_called_stays_on_its_line_and_steers_no_terminal(site: Site) -> None:
    site.sees("drift", place=PLACE._replace(app="sh\x1b[2Jop\nb"))
    _, line = site.run("list").output.splitlines()
    assert r"sees it at sh\x1b[2Jop\nb" in line
    shown = site.on("show")
    assert r"in sh\x1b[2Jop\nb prod" in shown
    assert "\x1b" not in shown


def test_the_metric_is_drawn_around_the_onset_and_json_has_all(site: Site) -> None:
    for minute in range(12):
        site.world.scores(minute * 60, [0.9 if minute < 6 else 0.3] * 10)
    site.world.advance(720)
    (problem,) = load_problems(site.database)
    shown = site.run("show", problem.problem_id).output
    assert "* mean, ^ onset" in shown
    assert f"{onset_of(problem):%Y-%m-%d %H:%M:%S}" in site.run("list").output  # as the sentence has it
    assert "0.75 -----" in shown
    site.sees("missing_data", place=ProblemKey("shop", "prod", "", "missing", ""))
    site.sees("coverage", place=PLACE._replace(aspect="coverage"))
    listed = {one["aspect"]: one for one in json.loads(site.run("list", "--json").output)}
    assert listed["level"]["group"] == "shop/prod/m1/accuracy"
    assert listed["level"]["inhibited_by"] == [listed["coverage"]["problem_id"]]
    assert listed["coverage"]["inhibited_by"] == [listed["missing"]["problem_id"]]
    assert listed["level"]["by_kind"]["threshold"]["active"] is True


def test_problems_are_chosen_by_type_severity_and_standard(site: Site) -> None:
    site.sees("drift")
    site.sees("coverage", place=PLACE._replace(aspect="coverage"))

    def listed(*args: str) -> list[str]:
        return [one["aspect"] for one in json.loads(site.run("list", "--json", *args).output)]

    assert sorted(listed("--standard", "ongoing monitoring")) == ["coverage", "level"]
    assert listed("--standard", "Accountable and Transparent") == ["coverage"]
    assert listed("--type", "accuracy") == ["level"]
    assert sorted(listed("--type", "accuracy", "--type", "data_quality", "--severity", "info")) == ["coverage", "level"]
    assert listed("--severity", "critical", "--severity", "warning") == []
    assert "data_quality" in site.run("list", "--type", "data_quality").output
