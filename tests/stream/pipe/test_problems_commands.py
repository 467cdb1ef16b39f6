"""What a person says of problems by commands, on the real engine: kept with who, when and why."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.problems.operator_actions import acceptances
from ragtide.drift.problems.report import Clear, ProblemKey, report_detections
from ragtide.drift.problems.store import load_problems
from ragtide.sinks.clickhouse.database import Database
from tests.stream.pipe.problem_site import PLACE, Site

pytestmark = pytest.mark.clickhouse


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


def test_a_list_without_running_jobs_says_so(site: Site) -> None:
    site.database.command("TRUNCATE TABLE job_runs")
    assert "job watch never ran" in site.run("list").stderr
    record = "INSERT INTO job_runs (job, epoch, finished_at) VALUES ('watch', 1, now64(3) - INTERVAL {} SECOND)"
    site.database.command(record.format(3 * 3600))
    assert "job watch last succeeded 3:00:0" in site.run("list").stderr
    assert site.run("list", "--json").output == "[]\n"
    site.database.command(record.format(1))
    found = site.run("list")
    assert (found.stdout, found.stderr) == ("no problems\n", "")


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
    assert r"where: sh\x1b[2Jop\nb prod" in shown
    assert "\x1b" not in shown


def test_the_metric_is_drawn_around_the_onset_and_json_has_all(site: Site) -> None:
    for minute in range(12):
        site.world.scores(minute * 60, [0.9 if minute < 6 else 0.3] * 10)
    site.world.advance(720)
    (problem,) = load_problems(site.database)
    shown = site.run("show", problem.problem_id).output
    assert "* mean, ^ onset" in shown
    assert f"{problem.onset:%Y-%m-%d %H:%M:%S}" in site.run("list").output  # as the sentence has it
    assert "0.75 -----" in shown
    site.sees("missing_data", place=ProblemKey("shop", "prod", "", "missing", ""))
    site.sees("coverage", place=PLACE._replace(aspect="coverage"))
    listed = {one["aspect"]: one for one in json.loads(site.run("list", "--all", "--json").output)}
    missing, symptoms = listed["missing"], [listed["coverage"], listed["level"]]
    assert listed["level"]["group"] == "shop/prod/m1/accuracy"
    assert [one["parent"] for one in (missing, *symptoms)] == [None, missing["problem_id"], missing["problem_id"]]
    assert sorted(missing["symptoms"]) == sorted(one["problem_id"] for one in symptoms)
    assert listed["level"]["by_kind"]["threshold"]["active"] is True
    assert [one["aspect"] for one in json.loads(site.run("list", "--json").output)] == ["missing"]
    [parent] = json.loads(site.run("list", "--json", "--type", "accuracy").output)  # its parent is not shown
    assert parent["aspect"] == "level"
    _, line = site.run("list").output.splitlines()
    assert f" {len(symptoms)} " in line
    _, *lines = site.run("list", "--all").output.splitlines()
    assert [f"of {missing['problem_id'][:8]}" in line for line in lines] == [False, True, True]
    shown = site.run("show", missing["problem_id"]).output
    assert all(one["problem_id"] in shown for one in symptoms)
    assert f"symptom of {missing['problem_id']}" in site.run("show", symptoms[0]["problem_id"]).output


def test_a_problem_that_looks_back_at_a_fault_that_is_over_is_listed_with_it(site: Site) -> None:
    site.sees("threshold")
    site.sees("inconsistency", place=PLACE._replace(aspect="inconsistency", model=""))
    (symptom,) = [one for one in load_problems(site.database) if one.aspect == "inconsistency"]
    clear = Clear(PLACE, "threshold", site.world.at(120))
    report_detections(site.database, [clear], site.world.rules, site.world.term, datetime.now(UTC))

    def listed(*args: str) -> list[str]:
        return [one["aspect"] for one in json.loads(site.run("list", "--json", *args).output)]

    assert [one.state for one in load_problems(site.database) if one.aspect == "level"] == ["resolved"]
    assert listed() == ["level"]
    assert listed("--state", "open") == []
    assert listed("--state", "open", "--all") == ["inconsistency"]
    assert "symptom of" in site.run("show", symptom.problem_id).output


def test_problems_are_chosen_by_type_severity_and_standard(site: Site) -> None:
    site.sees("drift")
    site.sees("coverage", place=PLACE._replace(aspect="coverage"))

    def listed(*args: str) -> list[str]:
        return [one["aspect"] for one in json.loads(site.run("list", "--all", "--json", *args).output)]

    assert sorted(listed("--standard", "ongoing monitoring")) == ["coverage", "level"]
    assert listed("--standard", "Accountable and Transparent") == ["coverage"]
    assert listed("--type", "accuracy") == ["level"]
    assert sorted(listed("--type", "accuracy", "--type", "data_quality", "--severity", "info")) == ["coverage", "level"]
    assert listed("--severity", "critical", "--severity", "warning") == []
    assert "data_quality" in site.run("list", "--type", "data_quality").output


def test_what_to_do_comes_first_and_times_of_two_clocks_are_apart(site: Site) -> None:
    site.world.scores(0, [0.3] * 10)
    site.world.advance(60)
    (problem,) = load_problems(site.database)
    assert problem.actions
    assert problem.examples
    shown = site.run("show", problem.problem_id).output
    parts = ("severity", problem.actions[0], f"ragtide trace {problem.examples[0]} --app shop", "details:")
    assert [shown.index(part) for part in parts] == sorted(shown.index(part) for part in parts)
    (event_time,) = [line for line in shown.splitlines() if "event time" in line]
    (processing_time,) = [line for line in shown.splitlines() if "processing time" in line]
    assert f"since {site.world.at(0):%Y-%m-%d %H:%M:%S}" in event_time
    assert f"opened {problem.opened_at:%Y-%m-%d %H:%M:%S}" in processing_time
    raw = [f"    {name}: {value}" for name, value in problem.attributes.items() if value not in (None, "", [], [""])]
    assert not set(raw[-3:]) & set(shown.splitlines())
    assert set(raw) <= set(site.run("show", problem.problem_id, "--verbose").output.splitlines())


def test_a_silence_of_alertmanager_shows_with_who_and_until_when(site: Site) -> None:
    site.sees("drift")
    site.database.command(
        "INSERT INTO alert_silences (url, problem_id, silence_id, created_by, comment, starts_at, ends_at, version) "
        f"SELECT 'http://a', '{site.problem.problem_id}', 's' || toString(number), ['kim', 'ada'][number + 1], "
        "'known', now64(3), now64(3) + if(number = 0, 3600, -1), 1 FROM numbers(2)"
    )
    assert "open, silenced" in site.run("list").output
    assert "silenced in Alertmanager by kim until" in site.on("show")
    assert "ada" not in site.on("show")  # it has ended
    [shown] = json.loads(site.on("show", "--json"))
    assert [one["created_by"] for one in shown["silences"]] == ["kim"]
