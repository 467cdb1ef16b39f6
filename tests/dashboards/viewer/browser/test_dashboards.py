"""The product's dashboards in a browser: each opens, links lead there and back, filters work, problems come and go."""

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from ragtide.dashboards.build import build
from ragtide.evaluators.registry import load
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.lint import panels
from tests.dashboards.sample_rows import APP, NOON, event, ordinary, window
from tests.dashboards.shown_application import END, Shown
from tests.dashboards.test_trace import rows as rows_of_traces
from tests.dashboards.viewer.browser.conftest import Open, settle
from tests.dashboards.viewer.browser.screenshots import SIZES, photograph, scroll_through
from tests.dashboards.viewer.serving import Served, serving
from tests.infra.fresh_database import fresh_database

pytestmark = [pytest.mark.browser, pytest.mark.clickhouse]

DASHBOARDS = build(load())
RANGE = f"from={int(NOON.timestamp() * 1000)}&to={int(END.timestamp() * 1000)}"
SCREENSHOTS = os.environ.get("RAGTIDE_TEST_SCREENSHOTS", "")


def path(name: str, **variables: str) -> str:
    chosen = "".join(f"&var-{key}={value}" for key, value in variables.items())
    return f"/d/ragtide-{name}?{RANGE}&refresh=&var-app={APP}{chosen}"


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_dashboard_opens_without_an_error(viewer: Served, opened: Open, name: str) -> None:
    page = opened(viewer, path(name))
    expect(page.locator("h1")).to_have_text(DASHBOARDS[name]["title"])
    closed = page.locator(".row.closed .row-title")
    for _ in range(min(closed.count(), 6)):  # rows of evaluators are alike
        closed.first.click()
    scroll_through(page)
    assert page.locator(".panel-state.error").all_inner_texts() == []
    for panel in page.locator(".panel:visible").all():
        assert panel.locator(".panel-body > *").count(), panel.inner_text()
    assert page.locator(".panel").count() == sum(panel["type"] != "row" for panel in panels(DASHBOARDS[name]))


@pytest.mark.skipif(not SCREENSHOTS, reason="RAGTIDE_TEST_SCREENSHOTS names no folder")
@pytest.mark.parametrize("name", DASHBOARDS)
@pytest.mark.parametrize("kind", SIZES)
def test_screenshots(viewer: Served, browser: Browser, name: str, kind: str) -> None:
    photograph(browser, f"{viewer.url}{path(name)}", kind, Path(SCREENSHOTS) / f"{name}-{kind}.png")


def test_the_runbook_of_a_problem_is_one_click_away(viewer: Served, opened: Open) -> None:
    page = opened(viewer, path("problems"))
    cell = page.locator("[data-title=Problems] tbody tr").first.locator("a", has_text="threshold")
    cell.click()
    settle(page)
    expect(page.locator(".panel:visible h3")).to_have_text("threshold")
    expect(page.locator(".panel:visible .markdown")).to_contain_text("Look here first")


def test_links_between_dashboards_keep_time_and_variables_and_lead_back(viewer: Served, opened: Open) -> None:
    page = opened(viewer, path("application", environment="prod"))
    page.evaluate("window.stays = true")
    page.locator("#dashboards").get_by_role("link", name="Classification").click()
    expect(page.locator("h1")).to_have_text(DASHBOARDS["classification"]["title"])
    settle(page)
    found = query(page)
    assert (found["var-app"], found["var-environment"]) == ([APP], ["prod"])
    assert f"from={found['from'][0]}&to={found['to'][0]}" == RANGE
    page.go_back()
    expect(page.locator("h1")).to_have_text(DASHBOARDS["application"]["title"])
    settle(page)
    assert query(page)["var-environment"] == ["prod"]
    assert page.evaluate("window.stays"), "the page was loaded anew"


@pytest.fixture(scope="module")
def traced(clickhouse_server: EmbeddedClickHouse) -> Iterator[Served]:
    """Dashboards over windows of an application and one of its traces with texts, scores and evidence."""
    days = ("traces_days", "texts_days", "labels_days", "windows_minute_days")
    with fresh_database(clickhouse_server, **dict.fromkeys(days, 100_000)) as database:
        database.insert("windows", list(ordinary()))
        for table, made in rows_of_traces():
            database.insert(table, made)
        with serving(database) as served:
            yield served


def test_from_the_fleet_to_a_coloured_sentence_of_a_trace_and_back(traced: Served, opened: Open) -> None:
    page = opened(traced, f"/d/ragtide-fleet?{RANGE}&refresh=")
    page.evaluate("window.stays = true")
    steps = [
        ("application", "Applications", APP),
        ("metric", "Quality", "groundedness.groundedness"),
        ("trace", "Worst traces", "t1"),
    ]
    for name, panel, link in steps:
        page.locator(f"[data-title='{panel}']").scroll_into_view_if_needed()
        page.locator(f"[data-title='{panel}'] td a").get_by_text(link, exact=True).first.click()
        expect(page.locator("h1")).to_have_text(DASHBOARDS[name]["title"])
        settle(page)
        assert query(page)["var-app"] == [APP]
        if name != "trace":  # found by its id, whatever the time
            assert f"from={query(page)['from'][0]}&to={query(page)['to'][0]}" == RANGE
    page.locator("[data-title=Answer]").scroll_into_view_if_needed()
    sentence = page.locator("[data-title=Answer] tr", has_text="It costs 5 €")
    verdict = sentence.locator("td.filled", has_text="bad")
    expect(verdict).to_be_visible()
    expect(sentence).to_contain_text("groundedness: least grounded 0.25")
    red, _, blue = map(int, re.findall(r"\d+", verdict.evaluate("cell => getComputedStyle(cell).color"))[:3])
    assert red > blue
    for name in ("metric", "application", "fleet"):
        page.go_back()
        expect(page.locator("h1")).to_have_text(DASHBOARDS[name]["title"])
        settle(page)
    assert page.evaluate("window.stays"), "the page was loaded anew"


def test_a_link_of_a_cell_leads_to_its_time_and_back(viewer: Served, opened: Open) -> None:
    page = opened(viewer, path("application"))
    before = page.url
    cell = page.locator("[data-title='Open problems'] td a", has_text=str(NOON.year)).first
    cell.click()
    page.wait_for_url(lambda url: url != before)
    settle(page)
    opened_at = NOON.timestamp() * 1000 + 5 * 60_000
    assert query(page)["from"] == [str(int(opened_at - 1_800_000))]
    page.go_back()
    settle(page)
    assert query(page)["from"] == [str(int(NOON.timestamp() * 1000))]


def test_the_application_filters_every_panel(viewer: Served, opened: Open, shown: Shown) -> None:
    page = opened(viewer, path("application"))
    traces = page.locator(".panel-stat[data-title=Traces] .stat-value")
    expect(traces).to_have_text("230")
    page.get_by_role("button", name=f"Application: {APP}").click()
    page.get_by_label("Search Application").fill("anoth")
    page.get_by_role("button", name="another").click()
    expect(page.get_by_role("button", name="Application: another")).to_be_visible()
    expect(traces).to_have_text("1.01 K")
    assert query(page)["var-app"] == ["another"]
    page.go_back()
    settle(page)
    expect(traces).to_have_text("230")


def test_a_problem_opens_and_resolves_before_ones_eyes(viewer: Served, opened: Open, shown: Shown) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    shown.database.insert("windows", [window("operations.error", now.replace(second=0), [0.0], app="live shop")])
    page = opened(viewer, "/d/ragtide-application?var-app=live%20shop&refresh=1s&from=now-1h&to=now")
    page.evaluate("window.stays = true")
    table = page.locator("[data-title='Open problems']")
    number = page.locator(".panel-stat[data-title='Open problems'] .stat-value")
    expect(number).to_have_text("0")
    told = {"app": "live shop", "severity": "critical", "description": "answers <i>invent</i> facts"}
    shown.database.insert("problem_events", [event("new", "n1", "opened", 1, now - timedelta(minutes=1), **told)])
    expect(table.locator("td", has_text="answers <i>invent</i> facts")).to_be_visible()
    expect(number).to_have_text("1")
    expect(page.locator("#activity")).to_contain_text("Problem opened")
    shown.database.insert("problem_events", [event("new", "n2", "resolved", 1, now, **told)])
    expect(number).to_have_text("0")
    expect(table.locator("td", has_text="invent")).to_have_count(0)
    expect(page.locator("#activity .latest")).to_contain_text("Problem resolved")
    assert page.evaluate("window.stays"), "the page was loaded anew"


def test_a_page_that_is_no_dashboard_says_so(viewer: Served) -> None:
    assert viewer.get("/explore?panes=x").status_code == 404
    assert "dashboards and nothing else" in viewer.get("/explore").text
