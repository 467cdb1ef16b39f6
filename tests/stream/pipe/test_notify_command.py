"""`ragtide notify` upon the real engine, a receiver, the contract Grafana and the embedded broker."""

import json
import threading
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ragtide.drift.leadership import Term
from ragtide.drift.notify.alert import AlertContext, alert_of
from ragtide.drift.notify.delivery import deliver
from ragtide.drift.notify.posted_alerts import PostedAlert, store_posted
from ragtide.drift.notify.previews import sample_problem
from ragtide.drift.problems import ProblemKey, load_problems
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.stream.cli import main
from ragtide.stream.job_schedule import job_schedule
from ragtide.stream.jobs_process import run_jobs
from ragtide.stream.local.broker import EmbeddedBroker
from ragtide.stream.settings.loader import load
from ragtide.stream.telemetry.registry import Telemetry
from tests.contracts.alertmanager_server import AlertmanagerFault
from tests.contracts.alertmanager_server import serving as serving_alertmanager
from tests.contracts.grafana_server import TOKEN, GrafanaServer, serving
from tests.drift.notify.webhook_site import target, webhook
from tests.drift.test_jobs_process import Clock, Leads, scheduled
from tests.infra.alertmanager import Receiver as AlertReceiver
from tests.infra.alertmanager import config_for, running, wait_for
from tests.infra.fresh_database import reached
from tests.infra.webhook_receiver import SECRET, Answer, Receiver, receiving
from tests.stream.pipe.problem_site import Site

pytestmark = pytest.mark.clickhouse


class Scene:
    """Problems, a settings file with targets, and commands upon them."""

    def __init__(self, database: Database, receiver: Receiver, file: Path) -> None:
        self.site, self.receiver, self.file = Site(database), receiver, file
        self.sections: list[str] = []

    def add(self, section: str) -> None:
        self.sections.append(section)

    def hook(self, name: str = "pager", more: str = "") -> None:
        self.add(f'[[webhooks]]\nname = "{name}"\nurl = "{self.receiver.url}"\nsecret = "{SECRET}"\n{more}\n')

    def run(self, *args: str, exit_code: int = 0) -> Result:
        self.file.write_text("\n".join(self.sections))
        environment = {"RAGTIDE_CONFIG": str(self.file), **reached(self.site.database)}
        found = CliRunner().invoke(main, ["notify", *args], env=environment)
        assert found.exit_code == exit_code, found.output + found.stderr
        assert "top-secret-path" not in found.output + found.stderr
        return found


@pytest.fixture
def scene(database: Database, tmp_path: Path) -> Iterator[Scene]:
    with receiving() as receiver:
        yield Scene(database, receiver, tmp_path / "ragtide.toml")


def test_without_targets_it_says_what_to_set(scene: Scene) -> None:
    assert "set grafana.url, [[webhooks]]" in scene.run("test", exit_code=2).stderr
    assert scene.run("list").stdout == "no message waits, was refused or was given up\n"
    scene.hook()
    assert "there is no 'webhook:pagr'; did you mean webhook:pager?" in (
        scene.run("test", "--target", "webhook:pagr", exit_code=2).stderr
    )


def test_what_waits_and_what_was_refused_is_listed_with_age_and_why(scene: Scene) -> None:
    database, hook = scene.site.database, target(webhook(scene.receiver.url))
    scene.site.sees("drift")
    scene.receiver.script += [Answer(422, b"no such field"), Answer(503, b"deploying")]
    deliver(database, hook, 1, lambda: datetime.now(UTC))
    scene.site.on("accept", "--why", "so be it", "--by", "ada")
    with pytest.raises(Transient):
        deliver(database, hook, 1, lambda: datetime.now(UTC))
    said = scene.run("list").stdout
    assert "webhook:pager: 1 waiting, 1 refused; the oldest is 0:0" in said
    assert "answered 422: no such field" in said
    assert "answered 503: deploying" in said
    found = json.loads(scene.run("list", "--json").stdout)
    assert [(one["state"], one["action"], one["attempts"]) for one in found] == [
        ("refused", "open", 1), ("pending", "close", 1),
    ]  # fmt: skip
    assert all(0 <= one["age_s"] < 600 for one in found)
    assert "422" not in scene.run("list", "--state", "pending").stdout
    limited = scene.run("list", "--limit", "1")
    assert "1 more; --limit 2 shows them" in limited.stderr
    scene.run("list", "--target", "webhook:none", exit_code=2)


def test_a_preview_shows_what_each_target_gets_or_why_not(scene: Scene) -> None:
    scene.site.sees("threshold")
    scene.add('[grafana]\nurl = "http://127.0.0.1:1"\ntoken = "x"\n[kafka]\nproblems_topic = "rag.problems"\n')
    scene.hook()
    scene.hook("leaks", 'type = "privacy"')
    problem = scene.site.problem
    found = {one["target"]: one for one in json.loads(scene.run("preview", problem.problem_id[:6], "--json").stdout)}
    assert set(found) == {"grafana", "webhook:pager", "webhook:leaks", "topic:rag.problems"}
    assert f"id:{problem.problem_id}:1" in found["grafana"]["content"]["tags"]
    said = found["webhook:pager"]["content"]["event"]
    assert (said["type"], said["data"]["problem_id"]) == ("ragtide.problem.opened", problem.problem_id)
    assert found["topic:rag.problems"]["content"]["key"] == problem.problem_id
    assert found["webhook:leaks"]["why_not"] == "type 'accuracy' does not match 'privacy'"
    assert found["webhook:pager"]["why_not"] == ""
    scene.site.on("mute", "--why", "known", "--until", "2h", "--by", "bob")
    said = scene.run("preview", problem.problem_id).stdout
    assert "webhook:pager: nothing now: muted by bob until" in said
    assert "\ntopic:rag.problems\n" in said
    assert scene.receiver.calls == []
    assert scene.site.database.rows("SELECT count() AS n FROM outbox") == [{"n": 0}]
    assert "no problem 'zzz'" in scene.run("preview", "zzz", exit_code=2).stderr


def test_a_preview_shows_the_alert_of_a_problem_or_why_there_is_none(scene: Scene) -> None:
    scene.site.sees("drift")
    problem = scene.site.problem
    scene.add('[alertmanager]\nurls = ["http://127.0.0.1:9"]\n[alertmanager.labels]\ncluster = "eu"\n')
    scene.add('[[routes]]\nowner = "quality-team"\n')

    def preview() -> dict[str, Any]:
        (found,) = json.loads(scene.run("preview", problem.problem_id, "--json").stdout)
        return dict(found)

    found = preview()
    assert (found["target"], found["why_not"]) == ("alertmanager:http://127.0.0.1:9", "")
    labels = found["content"]["labels"]
    assert (labels["alertname"], labels["cluster"], labels["owner"], labels["problem_id"]) == (
        "RagtideDrift", "eu", "quality-team", problem.problem_id,
    )  # fmt: skip
    assert found["content"]["annotations"]["summary"]
    scene.site.on("mute", "--why", "known", "--until", "2h", "--by", "bob")
    assert preview()["why_not"].startswith("muted by bob until")
    scene.site.on("unmute", "--by", "bob")
    scene.site.on("accept", "--why", "so be it", "--by", "ada")
    assert preview()["why_not"] == "the problem is resolved"


def test_alerts_that_were_refused_are_listed_while_their_problem_is_open(scene: Scene) -> None:
    database = scene.site.database
    scene.site.sees("drift")
    alert = alert_of(load_problems(database)[0], AlertContext())
    gone = alert_of(sample_problem(datetime.now(UTC)), AlertContext())
    other = PostedAlert(gone, "refused", why="answered 400: no such label")
    store_posted(database, "http://am:9093", [other], Term(1, datetime.now(UTC)))
    refused = PostedAlert(alert, "refused", why="answered 400: no such label")
    store_posted(scene.site.database, "http://am:9093", [refused], Term(1, datetime.now(UTC)))
    (found,) = json.loads(scene.run("list", "--json", "--target", "alertmanager:http://am:9093").stdout)
    assert (found["state"], found["subject"], found["why"]) == (
        "refused", alert.problem_id, "answered 400: no such label",
    )  # fmt: skip


def test_the_job_of_alerts_posts_counts_and_says_why_they_wait(scene: Scene) -> None:
    """As the schedule makes it."""
    with serving_alertmanager() as server:
        scene.add(f'[alertmanager]\nurls = ["{server.url}"]\n[[routes]]\nowner = "search-team"\n')
        scene.file.write_text("\n".join(scene.sections))
        settings, telemetry = load(scene.file, {}).settings, Telemetry()
        planned = job_schedule(settings, scene.site.database, telemetry, lambda: False)
        [(every_s, job)] = [(every_s, job) for name, every_s, job in planned if name == "alerts"]
        world = scene.site.world
        jobs, _, _ = scheduled(world, Leads(world.term), Clock(), lambda: datetime.now(UTC))
        scene.site.sees("drift")
        assert every_s == settings.alertmanager.every_s
        assert jobs.run("alerts", job)
        firing = {"url": server.url}
        assert telemetry.registry.get_sample_value("ragtide_alerts_firing", firing) == 1
        assert server.posted[0][0]["labels"]["owner"] == "search-team"
        assert scene.run("list").stderr == ""
        server.faults.append(AlertmanagerFault("POST", "/alerts", 407, b'"log in"'))
        scene.site.sees("drift", place=ProblemKey("docs", "prod", "m1", "level", "quality.good"))
        assert not jobs.run("alerts", job)
        said = scene.run("list")
        assert "alerts wait for Alertmanager" in said.stderr
        assert "answered POST /api/v2/alerts with 407: log in" in said.stderr
        scene.hook("pager")
        deliver(scene.site.database, target(webhook(scene.receiver.url)), 1, lambda: datetime.now(UTC))
        assert scene.run("list", "--target", "webhook:pager").stderr == ""


def test_a_sample_alert_says_what_alertmanager_answered(scene: Scene) -> None:
    with serving_alertmanager() as server:
        scene.add(f'[alertmanager]\nurls = ["{server.url}"]\n')
        assert scene.run("test").stdout == (
            f"ok      alertmanager:{server.url}: answered 200; sample alerts (no owner) end in 120 s\n"
        )
        server.faults.append(AlertmanagerFault("POST", "/alerts", 400, b'"bad label"'))
        assert "answered POST /api/v2/alerts with 400: bad label" in scene.run("test", exit_code=1).stdout
    ((alert,),) = server.posted
    assert (alert["labels"]["app"], alert["labels"]["severity"]) == ("ragtide-test", "info")
    assert server.violations == []


@pytest.mark.alertmanager
def test_a_sample_alert_reaches_each_receiver_and_ends_by_itself(scene: Scene, tmp_path: Path) -> None:
    with AlertReceiver() as receiver, running(tmp_path / "am", config_for(receiver)) as alertmanager:
        scene.add(f'[alertmanager]\nurls = ["{alertmanager.url}"]\n')
        scene.add('[[routes]]\napp = "search-*"\nowner = "search-team"\n[[routes]]\nowner = "search-team"\n')
        said = scene.run("test", "--severity", "critical").stdout
        assert "sample alerts (search-team, no owner) end in 120 s" in said
        heard = {"search-team-pager", "pager"}
        wait_for(lambda: {one.receiver for one in receiver.notifications} == heard, "a page of each")
        (alert,) = receiver.notifications[0].alerts
        ends_in_s = (datetime.fromisoformat(alert["endsAt"]) - datetime.now(UTC)).total_seconds()
    assert alert["labels"]["app"] == "ragtide-test"
    assert alert["status"] == "firing"
    assert ends_in_s < 120


@pytest.mark.broker
def test_a_sample_goes_through_every_target(scene: Scene, broker: EmbeddedBroker) -> None:
    name = uuid.uuid4().hex[:8]
    with serving() as grafana:
        scene.add(f'[grafana]\nurl = "{grafana.url}"\ntoken = "{TOKEN}"\n')
        scene.add(f'[kafka]\nbootstrap_servers = "{broker.bootstrap}"\n')
        scene.add(f'problems_topic = "problems-{name}"\ninsights_topic = "insights-{name}"\n')
        scene.hook("pager", 'severities = ["critical"]')
        scene.hook("insights", 'events = ["insight.found"]')
        answers = json.loads(scene.run("test", "--json").stdout)
        assert [(one["target"], one["ok"]) for one in answers] == [
            ("grafana", True), ("webhook:pager", True), ("webhook:insights", True), (f"topic:problems-{name}", True),
            (f"topic:insights-{name}", True),
        ]  # fmt: skip
        assert [one["says"] for one in answers][1:3] == ["200", "200"]
        assert _annotations(grafana) == (1, 0)
    told = [type_ for type_, _ in scene.receiver.told]
    assert told[:2] == ["problem.opened", "problem.resolved"]
    assert told[2] == "insight.found"
    assert scene.receiver.calls[0].event["data"]["app"] == "ragtide-test"
    assert scene.site.database.rows("SELECT count() AS n FROM outbox") == [{"n": 0}]


CONTACT_POINTS = """
[grafana_alerting]
contact_point = "operators"
[grafana_alerting.contact_points.operators]
type = "webhook"
url = "https://hooks.example.org/top-secret-path"
[grafana_alerting.contact_points.pager]
type = "slack"
token = "xoxb-top-secret-path"
channel = "#pager"
[[grafana_alerting.routes]]
severities = ["critical"]
contact_point = "pager"
"""


def test_a_sample_goes_through_the_contact_points_that_push_made(scene: Scene) -> None:
    with serving() as grafana:
        scene.add(f'[grafana]\nurl = "{grafana.url}"\ntoken = "{TOKEN}"\n{CONTACT_POINTS}')
        chosen = ("--target", "contact_point:operators,contact_point:pager")
        said = scene.run("test", exit_code=1).stdout.splitlines()
        assert [line[:31] for line in said[1:]] == [
            "FAILED  contact_point:operators",
            "FAILED  contact_point:pager: Gr",
        ]
        assert "shows no contact point ragtide-operators to this token: run `ragtide dashboards push" in said[1]
        pushed = CliRunner().invoke(main, ["dashboards", "push", "--alerts"], env={"RAGTIDE_CONFIG": str(scene.file)})
        assert pushed.exit_code == 0, pushed.output
        assert scene.run("test", *chosen, "--severity", "critical").stdout == (
            "ok      contact_point:operators: webhook: sent\nok      contact_point:pager: slack: sent\n"
        )
        assert {one.labels["severity"] for one in grafana.state.receivers.tested} == {"critical"}
        failure = 'Post "https://hooks.example.org/top-secret-path": EOF'
        grafana.state.receivers.failures["webhook"] = failure
        answers = json.loads(scene.run("test", *chosen, "--json", exit_code=1).stdout)
        assert answers == [
            {"target": "contact_point:operators", "ok": False,
             "says": 'webhook: Post "https://hooks.example.org/…": EOF'},
            {"target": "contact_point:pager", "ok": True, "says": "slack: sent"},
        ]  # fmt: skip


def test_an_older_grafana_fails_only_if_a_contact_point_is_named(scene: Scene) -> None:
    with serving() as grafana:
        grafana.state.receivers.is_old = True
        scene.add(f'[grafana]\nurl = "{grafana.url}"\ntoken = "{TOKEN}"\n{CONTACT_POINTS}')
        said = scene.run("test").stdout.splitlines()
        assert [line.split(":")[0] for line in said] == ["ok      grafana", *["-       contact_point"] * 2]
        assert "not tested: " in said[1]
        assert "Testing contact points needs Grafana 13 or newer" in said[1]
        answers = json.loads(scene.run("test", "--json").stdout)
        assert [one["ok"] for one in answers] == [True, None, None]
        [named] = scene.run("test", "--target", "contact_point:pager", exit_code=1).stdout.splitlines()
        assert named.startswith("FAILED  contact_point:pager: not tested: ")


def test_a_contact_point_that_no_route_names_is_tested_by_its_name(scene: Scene) -> None:
    spare = '[grafana_alerting.contact_points.spare]\ntype = "email"\naddresses = ["kim@example.org"]\n'
    with serving() as grafana:
        scene.add(f'[grafana]\nurl = "{grafana.url}"\ntoken = "{TOKEN}"\n{CONTACT_POINTS}{spare}')
        scene.file.write_text("\n".join(scene.sections))
        pushed = CliRunner().invoke(main, ["dashboards", "push", "--alerts"], env={"RAGTIDE_CONFIG": str(scene.file)})
        assert pushed.exit_code == 0, pushed.output
        usual = [one["target"] for one in json.loads(scene.run("test", "--json").stdout)]
        assert usual == ["grafana", "contact_point:operators", "contact_point:pager"]
        assert (
            scene.run("test", "--target", "contact_point:spare").stdout == "ok      contact_point:spare: email: sent\n"
        )


def test_a_preview_shows_the_alert_that_grafana_makes(scene: Scene) -> None:
    scene.site.sees("drift")
    problem = scene.site.problem
    assert problem.severity == "info", "operators get it, pager gets what is critical"
    scene.add(f'[grafana]\nurl = "http://127.0.0.1:1"\ntoken = "x"\n{CONTACT_POINTS}[jobs]\ngroup_wait_s = 0\n')
    found = {one["target"]: one for one in json.loads(scene.run("preview", problem.problem_id, "--json").stdout)}
    assert set(found) == {"grafana", "contact_point:operators", "contact_point:pager"}
    content = found["contact_point:operators"]["content"]
    assert (content["labels"]["problem"], content["labels"]["problem_id"]) == ("RagtideDrift", problem.problem_id)
    assert content["annotations"]["dashboard_url"].startswith("http://127.0.0.1:1/d/ragtide-problems?")
    routed = {name: one["why_not"] for name, one in found.items() if name != "grafana"}
    assert routed == {
        "contact_point:operators": "", "contact_point:pager": "[grafana_alerting] sends the alert to operators",
    }  # fmt: skip


def test_a_target_that_fails_says_why_and_the_others_are_tried(scene: Scene) -> None:
    scene.hook("first")
    scene.hook("second")
    scene.receiver.script.append(Answer(410, b"gone"))
    said = scene.run("test", exit_code=1).stdout.splitlines()
    assert said[0].startswith("FAILED  webhook:first: http://127.0.0.1:")
    assert said[0].endswith("answered 410: gone")
    assert said[1] == "ok      webhook:second: answered 200"


def test_an_alertmanager_that_cannot_be_asked_hides_no_other_answer(scene: Scene) -> None:
    scene.add('[alertmanager]\nurls = ["http://127.0.0.1:9"]\nbearer_token = "tök"\n')
    scene.hook()
    first, second = scene.run("test", exit_code=1).stdout.splitlines()
    assert first == "ok      webhook:pager: answered 200"
    assert second.startswith("FAILED  alertmanager:http://127.0.0.1:9: alertmanager.bearer_token holds characters")


def _annotations(grafana: GrafanaServer) -> tuple[int, int]:
    """How many were made, and how many are left."""
    return len(grafana.made("POST", "/api/annotations")), len(grafana.state.annotations)


def test_every_target_has_a_job_of_its_own(scene: Scene) -> None:
    """So that one that hangs holds back no other."""
    scene.add('[grafana]\nurl = "http://127.0.0.1:1"\ntoken = "x"\n[kafka]\nproblems_topic = "rag.problems"\n')
    scene.hook("a")
    scene.hook("b")
    scene.file.write_text("\n".join(scene.sections))
    settings = load(scene.file, {}).settings
    names = [name for name, _, _ in job_schedule(settings, scene.site.database, Telemetry(), lambda: False)]
    assert {"announce", "webhook:a", "webhook:b", "topic:rag.problems"} <= set(names)


def test_jobs_that_hang_leave_a_thread_for_each_other_job() -> None:
    hanging, ran, stop = threading.Barrier(13), threading.Event(), threading.Event()

    class Runner:
        def run(self, name: str, job: object) -> bool:
            if name == "last":
                ran.set()
            else:
                hanging.wait(30)
            return True

    jobs: list[Any] = [(f"webhook:{number}", 0.01, None) for number in range(12)]
    running = threading.Thread(target=run_jobs, args=(Runner(), [*jobs, ("last", 0.05, None)], stop))
    running.start()
    try:
        assert ran.wait(30)
    finally:
        hanging.abort()
        stop.set()
        running.join()
