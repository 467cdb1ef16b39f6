"""Problems are acknowledged, muted and accepted by filters as by ids: what is chosen is shown and confirmed first."""

import json
from datetime import UTC, datetime

import pytest

from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import load_problems
from ragtide.sinks.clickhouse.database import Database
from tests.stream.pipe.problem_site import PLACE, Site

pytestmark = pytest.mark.clickhouse
OTHER_METRIC = PLACE._replace(metric="quality.other")
OTHER_APP = PLACE._replace(app="bank")


@pytest.fixture
def site(database: Database) -> Site:
    made = Site(database)
    made.sees("drift")
    made.sees("threshold", place=OTHER_METRIC)
    made.sees("drift", place=OTHER_APP)
    return made


def problems(site: Site) -> dict[tuple[str, str], Problem]:
    return {(one.app, one.metric): one for one in load_problems(site.database)}


def acknowledged(site: Site) -> set[tuple[str, str]]:
    return {place for place, one in problems(site).items() if one.acked_by}


def test_filters_show_what_they_choose_and_do_nothing_unless_confirmed(site: Site) -> None:
    shown = site.run("ack", "--app", "shop", "--by", "ada", exit_code=130).output
    assert "drift sees it at shop" in shown
    assert "threshold sees it at shop" in shown
    assert "bank" not in shown
    assert "acknowledge these 2 problems?" in shown
    assert acknowledged(site) == set()


def test_filters_combine_and_ids_still_work(site: Site) -> None:
    site.run("ack", "--app", "shop", "--kind", "drift", "--by", "ada", "--yes")
    assert acknowledged(site) == {("shop", "quality.good")}
    ids = [one.problem_id for one in problems(site).values()]
    site.run("ack", *ids[1:], "--by", "bob")
    assert {("shop", "quality.other"), ("bank", "quality.good")} & acknowledged(site)
    site.run("unack", "--metric", "quality", "--by", "ada", "--yes")
    assert acknowledged(site) == set()


def test_mute_and_unmute_by_type(site: Site) -> None:
    site.run("mute", "--type", "accuracy", "--until", "2h", "--why", "load test", "--by", "ada", "--yes")
    now = datetime.now(UTC)
    assert all(one.is_muted(now) for one in problems(site).values())
    site.run("unmute", "--app", "bank", "--by", "ada", "--yes")
    assert {app for (app, _), one in problems(site).items() if one.is_muted(now)} == {"shop"}
    assert site.run("mute", "--type", "cost", "--until", "2h", "--why", "x", "--yes").output == "no problems to mute\n"


def test_accept_by_app_leaves_what_has_no_baseline(site: Site) -> None:
    said = site.run("accept", "--app", "shop", "--why", "a new model", "--by", "ada", "--yes").output
    assert said.count("is accepted and is resolved") == 1
    assert {place: one.state for place, one in problems(site).items()} == {
        ("shop", "quality.good"): "resolved",
        ("shop", "quality.other"): "open",
        ("bank", "quality.good"): "open",
    }


@pytest.mark.parametrize("args", [("ack",), ("ack", "3f2a", "--app", "shop")], ids=" ".join)
def test_either_ids_or_filters(site: Site, args: tuple[str, ...]) -> None:
    assert "name problems by id, or choose them by --app" in site.run(*args, exit_code=2).output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--app", "shp"), "--app: there is no 'shp'; did you mean shop?"),
        (("--app", "shop,bnak"), "--app: there is no 'bnak'; did you mean bank?"),
        (("--type", "privcy"), "--type: there is no 'privcy'; did you mean privacy?"),
        (("--kind", "treshold"), "--kind: there is no 'treshold'; did you mean threshold?"),
        (("--metric", "groundednes"), "--metric: there is no 'groundednes'; did you mean groundedness"),
        (("--standard", "fare"), "--standard: there is no 'fare'; did you mean"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(site: Site, args: tuple[str, str], said: str) -> None:
    assert said in " ".join(site.run("list", *args, exit_code=2).output.split())
    if args[0] != "--standard":
        assert said in " ".join(site.run("ack", *args, "--yes", exit_code=2).output.split())


def test_a_known_name_without_problems_is_an_empty_list(site: Site) -> None:
    assert json.loads(site.run("list", "--metric", "groundedness", "--json").output) == []
