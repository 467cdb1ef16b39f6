"""Links to traces open what they name, whatever signs an id has."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError

from ragtide.dashboards.trace_links import trace_link
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import GrafanaSettings
from tests.dashboards.macros import VARIABLE
from tests.drift.world import World, score_row, text_row

HOSTILE = "it's \\ a/b?c#d\" {app} &x=1 ${__from} $__fromTime [[a]] ü"


def test_the_named_page_gets_the_id_and_nothing_of_it_leads_elsewhere() -> None:
    settings = GrafanaSettings(trace_url="https://t.example/{app}/{trace_id}?view=1", url="https://g.example")
    assert trace_link("t1", "docs bot", settings) == "https://t.example/docs%20bot/t1?view=1"
    assert trace_link("../a?b", "x", settings) == "https://t.example/x/..%2Fa%3Fb?view=1"
    assert trace_link("t1", "x", GrafanaSettings()) == ""


@pytest.mark.clickhouse
def test_explore_asks_for_the_texts_of_this_trace_alone(database: Database) -> None:
    world = World(database)
    for trace_id in (HOSTILE, "another"):
        database.insert("trace_texts", [text_row(score_row(world.at(0), trace_id, {"good": 0.1}), "Why?")])
    link = urlsplit(trace_link(HOSTILE, "shop", GrafanaSettings(url="https://g.example/", org_id=3)))
    asked = parse_qs(link.query, strict_parsing=True)
    assert (link.netloc, link.path, asked["orgId"]) == ("g.example", "/explore", ["3"])
    (pane,) = json.loads(asked["panes"][0]).values()
    (query,) = pane["queries"]
    assert VARIABLE.findall(query["rawSql"]) == []
    (row,) = database.rows(query["rawSql"])
    assert row["trace_id"] == HOSTILE


@pytest.mark.parametrize("url", ["traces.example/{trace_id}", "https://t.example/", "javascript:alert({trace_id})"])
def test_a_page_that_names_no_trace_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="trace_id"):
        GrafanaSettings(trace_url=url)
