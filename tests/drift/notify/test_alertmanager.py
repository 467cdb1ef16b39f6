"""Problems at the people's end: what a webhook receiver behind the real Alertmanager hears of them."""

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ragtide.drift.problems import load_silences
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database
from tests.drift.notify.alert_scene import Scene
from tests.infra.alertmanager import Alertmanager, Receiver, cluster_of_two, config_for, running, wait_for

pytestmark = [pytest.mark.alertmanager, pytest.mark.clickhouse]


GROUP_INTERVAL_S = 1  # of `config_for`: a second notification of a group would follow within it


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


@pytest.fixture
def alertmanager(tmp_path: Path, receiver: Receiver) -> Iterator[Alertmanager]:
    with running(tmp_path / "alertmanager", config_for(receiver)) as made:
        yield made


@pytest.fixture
def scene(database: Database, alertmanager: Alertmanager) -> Iterator[Scene]:
    made = Scene(database, alertmanager.url)
    yield made
    made.close()


def test_each_owner_and_severity_hears_of_its_problems_once_and_of_their_ends(scene: Scene, receiver: Receiver) -> None:
    scene.opens("warned")
    scene.opens("paged", severity="critical")
    scene.opens("leaking", app="docs", type="privacy", severity="critical")
    scene.opens("unowned", app="docs")
    assert scene.run().begun == 4
    wait_for(lambda: len(receiver.states()) == 4, "four notifications")
    for _ in range(3):
        assert scene.run().begun == 0
    scene.resolves("warned")
    scene.resolves("paged", severity="critical")
    assert scene.run().ended == 2
    wait_for(lambda: len(receiver.states()) == 6, "two resolutions")
    assert receiver.states("warned") == [("search-team", "firing"), ("search-team", "resolved")]
    assert receiver.states("paged") == [("search-team-pager", "firing"), ("search-team-pager", "resolved")]
    assert receiver.states("leaking") == [("pager", "firing")]
    assert receiver.states("unowned") == [("operators", "firing")]
    assert receiver.firing() == {"leaking", "unowned"}
    assert receiver.repeats() == []
    [labels] = [one.alerts[0]["labels"] for one in receiver.notifications if one.receiver == "pager"]
    assert labels["owner"] == "privacy-team"
    assert labels["cluster"] == "eu"


def test_posting_again_keeps_an_alert_alive_and_tells_nobody(
    scene: Scene, receiver: Receiver, alertmanager: Alertmanager
) -> None:
    scene.opens("p1")
    scene.run()
    wait_for(receiver.states, "the notification")
    before = alertmanager.alerts()[0]
    assert scene.run(later_s=59).reposted == 0
    assert scene.run(later_s=60).reposted == 1
    [after] = alertmanager.alerts()
    assert after["endsAt"] > before["endsAt"]
    assert after["startsAt"] == before["startsAt"]
    time.sleep(3 * GROUP_INTERVAL_S)
    assert len(receiver.notifications) == 1


def test_one_that_is_not_posted_any_more_ends_by_itself(
    database: Database, alertmanager: Alertmanager, receiver: Receiver
) -> None:
    scene = Scene(database, alertmanager.url, repost_s=1)
    scene.opens("p1")
    scene.run()
    wait_for(lambda: receiver.states("p1") == [("search-team", "firing"), ("search-team", "resolved")], "its end")
    scene.run()  # the jobs are back
    wait_for(lambda: receiver.states("p1")[2:] == [("search-team", "firing")], "its return")
    scene.close()


def test_an_open_problem_is_repeated_as_the_route_says(tmp_path: Path, database: Database, receiver: Receiver) -> None:
    with running(tmp_path / "am", config_for(receiver, repeat_interval="1s")) as alertmanager:
        scene = Scene(database, alertmanager.url)
        scene.opens("p1")
        scene.run()
        wait_for(lambda: len(receiver.notifications) >= 3, "repeats")
        scene.close()
    assert receiver.states("p1") == [("search-team", "firing")]


def test_a_thousand_symptoms_of_one_problem_are_one_alert(scene: Scene, receiver: Receiver) -> None:
    scene.opens("cause", aspect="missing", kind="missing_data", type="data_quality", severity="critical", metric="")
    scene.opens(*(f"p{n}" for n in range(1000)))
    assert scene.run().begun == 1
    wait_for(receiver.states, "the notification")
    assert receiver.firing() == {"cause"}


def test_a_thousand_problems_of_one_cause_are_a_handful_of_notifications(scene: Scene, receiver: Receiver) -> None:
    names = [f"p{n}" for n in range(1000)]
    scene.opens(*names[:500])
    scene.opens(*names[500:], model="m2")
    assert scene.run().begun == 1000
    wait_for(lambda: receiver.firing() == set(names), "all of them")
    scene.resolves(*names[:500])
    scene.resolves(*names[500:], model="m2")
    assert scene.run(later_s=50).ended == 1000
    wait_for(lambda: not receiver.firing(), "their ends")
    assert len(receiver.notifications) <= 5
    [summary] = {one["annotations"]["summary"] for each in receiver.notifications for one in each.alerts}
    assert summary == "Accuracy problems in search-web (prod)"


def test_a_new_severity_or_owner_ends_the_alert_under_the_old_labels(scene: Scene, receiver: Receiver) -> None:
    scene.opens("p1")
    scene.run()
    wait_for(receiver.states, "the warning")
    scene.happens("updated", "p1", severity="critical")
    assert scene.run().begun == 1
    wait_for(lambda: len(receiver.states("p1")) == 3, "the page")
    assert set(receiver.states("p1")[1:]) == {("search-team", "resolved"), ("search-team-pager", "firing")}
    scene.resolves("p1", severity="critical")
    scene.run()
    wait_for(lambda: not receiver.firing(), "the end")
    assert Counter(receiver.states("p1")).most_common(1)[0][1] == 1


def test_a_silence_keeps_it_quiet_and_shows_on_the_problem_until_it_ends(
    scene: Scene, receiver: Receiver, alertmanager: Alertmanager
) -> None:
    until = datetime.now(UTC) + timedelta(hours=2)
    silence = alertmanager.silence(until.isoformat(), problem_id="p1")
    scene.opens("p1", "p2")
    scene.run()
    wait_for(lambda: receiver.states("p2"), "the other one")
    scene.run(later_s=15)
    [(problem, (shown,))] = load_silences(scene.database, scene.now()).items()
    assert (problem, shown.created_by, shown.comment) == ("p1", "kim", "we know")
    assert abs(shown.ends_at - until) < timedelta(milliseconds=1)
    assert load_silences(scene.database, until + timedelta(seconds=1)) == {}
    assert receiver.states("p1") == []
    scene.elect()
    alertmanager.expire(silence)
    scene.run()
    assert load_silences(scene.database, scene.now()) == {}
    wait_for(lambda: receiver.states("p1"), "the one that was silenced")


def test_inhibition_keeps_what_one_alert_covers_from_people(
    scene: Scene, receiver: Receiver, alertmanager: Alertmanager
) -> None:
    scene.opens("silent", aspect="missing", kind="missing_data", severity="critical", metric="")
    scene.run()
    wait_for(lambda: receiver.states("silent"), "the cause")
    scene.opens("covered", aspect="level", at=scene.now() - timedelta(hours=2))  # so that ragtide posts it
    scene.opens("other", app="docs")
    scene.run()
    assert alertmanager.problems() == {"silent", "covered", "other"}
    wait_for(lambda: receiver.states("other"), "what is not covered")
    assert receiver.firing() == {"silent", "other"}


def test_muted_problems_and_symptoms_are_not_posted(
    scene: Scene, receiver: Receiver, alertmanager: Alertmanager
) -> None:
    failing = {"aspect": "coverage", "kind": "coverage", "type": "data_quality"}
    scene.opens("cause", metric="quality.quality", **failing)
    scene.opens("symptom", metric="quality.quality", aspect="level")
    scene.opens("muted")
    until = json.dumps({"until": (scene.now() + timedelta(seconds=30)).isoformat()})
    scene.happens("muted", "muted", actor="kim", attributes=until)
    scene.run()
    assert alertmanager.problems() == {"cause"}
    scene.run(later_s=31)
    assert alertmanager.problems() == {"cause", "muted"}
    wait_for(lambda: receiver.firing() == {"cause", "muted"}, "the mute's end")
    scene.happens("muted", "muted", actor="kim")
    scene.run()
    wait_for(lambda: receiver.firing() == {"cause"}, "the end of the muted one")


def test_a_symptom_that_was_posted_before_its_cause_goes_on_until_it_ends(scene: Scene, receiver: Receiver) -> None:
    scene.opens("symptom", metric="quality.quality", aspect="level")
    scene.run()
    wait_for(lambda: receiver.firing() == {"symptom"}, "the symptom")
    scene.opens("cause", metric="quality.quality", aspect="coverage", kind="coverage", type="data_quality")
    scene.run()
    wait_for(lambda: receiver.firing() == {"symptom", "cause"}, "the cause")
    scene.resolves("symptom", metric="quality.quality", aspect="level")
    scene.run()
    wait_for(lambda: receiver.firing() == {"cause"}, "the end of the symptom")
    assert len(receiver.states("symptom")) == 2


@pytest.mark.chaos
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_away_for_ten_minutes_it_gets_what_holds_and_the_ends_of_what_it_knew(
    scene: Scene, receiver: Receiver, alertmanager: Alertmanager, number: signal.Signals
) -> None:
    """Ended by SIGTERM, it stores what it notified of; ended by SIGKILL, it may repeat that once."""
    scene.opens("before")
    scene.opens("stays")
    scene.run()
    wait_for(lambda: receiver.firing() == {"before", "stays"}, "both")
    alertmanager.kill(number)
    scene.resolves("before")
    scene.opens("short", "during")
    for later_s in range(0, 600, 60):
        with pytest.raises(Transient, match="cannot be reached"):
            scene.run(later_s)
    scene.resolves("short")
    alertmanager.start()
    scene.run(later_s=600)
    wait_for(lambda: receiver.firing() == {"stays", "during"}, "the new one, and the end of the old one")
    assert Counter(
        (one, *state) for one in ("before", "stays", "during", "short") for state in receiver.states(one)
    ) == {
        ("before", "search-team", "firing"): 1,
        ("before", "search-team", "resolved"): 1,
        ("stays", "search-team", "firing"): 1,
        ("during", "search-team", "firing"): 1,
    }
    time.sleep(3 * GROUP_INTERVAL_S)
    assert receiver.firing() == {"stays", "during"}
    assert len(receiver.repeats()) <= (number == signal.SIGKILL)


@pytest.mark.chaos
def test_killed_after_it_accepted_an_end_it_is_told_again(
    scene: Scene, receiver: Receiver, alertmanager: Alertmanager
) -> None:
    """Alertmanager holds alerts in memory: an end that it had not sent on when it was killed would be lost."""
    scene.opens("p1")
    scene.run()
    wait_for(lambda: receiver.firing() == {"p1"}, "the problem")
    alertmanager.kill(signal.SIGTERM)
    alertmanager.configure(config_for(receiver, group_interval="1h"))
    alertmanager.start()
    scene.run(later_s=60)  # it knows the alert again, and sends nothing on for an hour
    scene.resolves("p1")
    assert scene.run(later_s=70).ended == 1
    alertmanager.kill(signal.SIGTERM)
    alertmanager.configure(config_for(receiver))
    alertmanager.start()
    scene.run(later_s=140)
    scene.run(later_s=150)
    wait_for(lambda: not receiver.firing(), "the end")


@pytest.mark.chaos
def test_a_cluster_of_two_notifies_once_and_one_member_is_enough(
    tmp_path: Path, database: Database, receiver: Receiver
) -> None:
    with cluster_of_two(tmp_path, config_for(receiver, group_wait="1s")) as (one, other):
        scene = Scene(database, one.url, other.url)
        scene.opens("p1")
        assert scene.run().begun == 2
        wait_for(lambda: receiver.states("p1"), "the notification")
        time.sleep(2)  # the other has word of it: what was killed before that is notified of again
        one.kill()
        scene.opens("p2")
        with pytest.raises(Transient, match="cannot be reached"):
            scene.run()
        wait_for(lambda: receiver.states("p2"), "the other problem")
        scene.resolves("p1", "p2")
        with pytest.raises(Transient):
            scene.run()
        wait_for(lambda: not receiver.firing(), "both ends")
        one.start()
        scene.run()
        scene.run(later_s=1)  # it may have begun in the second in which it was told
        assert scene.holdings[one.url].waiting == 0
        time.sleep(3 * GROUP_INTERVAL_S)
        scene.close()
    assert [len(receiver.states(name)) for name in ("p1", "p2")] == [2, 2]
    assert receiver.repeats() == []


@pytest.mark.chaos
def test_two_that_do_not_know_each_other_both_notify(tmp_path: Path, database: Database, receiver: Receiver) -> None:
    """So the test above finds a second notification."""
    with cluster_of_two(tmp_path, config_for(receiver), gossip=False) as (one, other):
        scene = Scene(database, one.url, other.url)
        scene.opens("p1")
        scene.run()
        wait_for(receiver.repeats, "the second notification")
        scene.close()


def test_the_next_leader_ends_what_the_one_before_had_posted(scene: Scene, receiver: Receiver) -> None:
    scene.opens("p1", "p2")
    scene.run()
    wait_for(lambda: receiver.firing() == {"p1", "p2"}, "both")
    scene.elect()
    scene.resolves("p1")
    assert scene.run().ended == 1
    wait_for(lambda: receiver.firing() == {"p2"}, "the end")
    scene.opens("p3")
    assert scene.run_old_leader(later_s=61) == type(scene.run())()  # it stops before it posts
    scene.run()
    wait_for(lambda: receiver.firing() == {"p2", "p3"}, "the third")
    assert [len(receiver.states(name)) for name in ("p1", "p2", "p3")] == [2, 1, 1]
