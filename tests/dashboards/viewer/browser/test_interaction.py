"""What people do with a dashboard: choose, sort, filter, zoom, look closer, by mouse and by keyboard."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from ragtide.sinks.clickhouse.database import Database
from tests.dashboards.viewer.browser.conftest import Open, settle
from tests.dashboards.viewer.serving import Served, serving
from tests.dashboards.viewer.test_closed_pages import DOCUMENT, LIMITS, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.clickhouse]


def query(page: Page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query, keep_blank_values=True)


def bring(page: Page, title: str) -> None:
    """Panels ask for their data once they are in sight."""
    panel = page.locator(f"[data-title='{title}']")
    panel.scroll_into_view_if_needed()
    expect(panel.locator(".panel-body > *").first).to_be_attached()


def column(page: Page, at: int) -> list[str]:
    return page.locator(f"[data-title=Table] tbody tr td:nth-child({at})").all_inner_texts()


def test_several_values_or_all_can_be_chosen(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    assert len(column(page, 1)) == 40
    page.get_by_role("button", name="Application: All").click()
    for name in ("APP 3", "APP 5"):
        page.get_by_role("button", name=name, exact=True).click()
    page.keyboard.press("Escape")
    expect(page.locator("[data-title=Table] tbody tr")).to_have_count(2)
    assert query(page)["var-app"] == ["app 3", "app 5"]
    assert page.locator("[data-variable=app]").inner_text().split("\n") == ["Application", "APP 3, APP 5"]
    page.reload()
    settle(page)
    assert column(page, 1) == ["app 3", "app 5"]
    page.locator("[data-variable=app]").click()
    page.get_by_role("button", name="All", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.locator("[data-title=Table] tbody tr")).to_have_count(40)


def test_a_text_is_a_variable_too(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    page.get_by_role("textbox", name="Text").fill("word word word word word word word")
    page.keyboard.press("Enter")
    expect(page.locator("[data-title=Table] tbody tr")).to_have_count(8)
    assert query(page)["var-words"] == ["word word word word word word word"]


def test_tables_sort_and_filter_and_keep_both_over_a_refresh(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    head = page.locator("[data-title=Table] th[data-name=rate]")
    head.locator(".sort").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column(page, 2)[:2] == ["58.5", "57"]
    head.locator(".sort").click()
    assert column(page, 2)[:2] == ["0", "1.5"]
    page.get_by_role("button", name="Filter state").click()
    page.get_by_label("down").check()
    page.keyboard.press("Escape")
    assert set(column(page, 4)) == {"down"}
    expect(page.locator("[data-title=Table]")).to_contain_text("13 of 40 rows match")
    page.keyboard.press("r")
    settle(page)
    assert set(column(page, 4)) == {"down"}
    page.get_by_role("button", name="Clear filters").click()
    assert len(column(page, 4)) == 40


def test_cells_are_drawn_as_configured(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    table = page.locator("[data-title=Table]")
    assert table.locator("th").all_inner_texts() == ["app", "rate", "share", "state", "text", "seen"]
    row = table.locator("tbody tr").nth(10)
    assert row.locator(".gauge-bar").evaluate("bar => bar.style.width") == "25%"
    expect(row.locator("td").nth(2)).to_have_text("25%")
    link = row.locator("td a").first
    assert link.get_attribute("href") is not None
    assert re.fullmatch(
        r"/d/gallery\?var-app=app%2010&from=now-2h&to=now&var-words=secret", link.get_attribute("href") or ""
    )
    row.locator(".cell-links").click()
    menu = page.get_by_role("menu")
    assert menu.get_by_role("menuitem").all_inner_texts() == ["One", "Elsewhere"], "javascript: is no link"
    assert menu.get_by_text("Elsewhere").get_attribute("href") == "https://example.org/15"


def test_matrices_and_empty_and_broken_panels(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    bring(page, "Matrix")
    matrix = page.locator("[data-title=Matrix] tbody tr").all_inner_texts()
    assert [row.split("\t") for row in matrix] == [["a", "0", "2"], ["b", "1", "3"]]
    expect(page.locator("[data-title=Nothing]")).to_contain_text("No rows: all is well.")
    broken = page.locator("[data-title=Broken]")
    expect(broken).to_contain_text("This query failed.")
    expect(broken.get_by_role("button", name="Try again")).to_be_visible()
    expect(page.locator("[data-title='No number'] .stat-value")).to_have_text("nothing yet")
    numbers = page.locator(".panel-stat .stat-value").all_inner_texts()
    assert numbers[:3] == ["1.23 Mil", "42.4%", "$12.50"]


def test_a_legend_shows_one_series_alone_or_hides_one(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    panel = page.locator("[data-title='Stacked bars']")
    pressed = "buttons => buttons.map(one => one.getAttribute('aria-pressed'))"
    names = panel.locator(".legend-name")
    assert names.all_inner_texts() == ["n scored", "n failed", "n skipped"]
    names.nth(1).click()
    assert names.evaluate_all(pressed) == ["false", "true", "false"]
    names.nth(1).click()
    assert names.evaluate_all(pressed) == ["true", "true", "true"]
    names.nth(2).click(modifiers=["Control"])
    assert names.evaluate_all(pressed) == ["true", "true", "false"]
    page.keyboard.press("r")
    settle(page)
    assert names.evaluate_all(pressed) == ["true", "true", "false"]


def test_a_drag_zooms_into_its_time_and_zooming_out_widens(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    plot = page.locator("[data-title='Two axes'] .u-over")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, y, steps=4)
    page.mouse.up()
    page.wait_for_function("() => /from=\\d+/.test(location.search)")
    settle(page)
    zoomed = [int(query(page)[end][0]) for end in ("from", "to")]
    assert zoomed[1] - zoomed[0] == pytest.approx(30 * 60_000, rel=0.05)
    page.keyboard.press("z")
    settle(page)
    wider = [int(query(page)[end][0]) for end in ("from", "to")]
    assert wider[1] - wider[0] == pytest.approx(2 * (zoomed[1] - zoomed[0]), abs=2)
    page.keyboard.press("[")
    settle(page)
    assert int(query(page)["from"][0]) < wider[0]


def test_tooltips_tell_values_annotations_and_descriptions(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    tooltip = page.locator(".tooltip")
    plot = page.locator("[data-title='Lines in a band'] .u-over")
    plot.hover(position={"x": 60, "y": 40})
    expect(tooltip).to_contain_text("mean")
    assert "%" in tooltip.inner_text()
    page.locator("[data-title='Two axes'] .annotation").first.hover()
    expect(tooltip).to_contain_text("It <b>fell</b>")
    expect(tooltip).to_contain_text("critical")
    page.get_by_role("button", name="About Heat map").focus()
    expect(tooltip).to_have_text("What Heat map shows.")
    page.keyboard.press("Escape")
    expect(tooltip).to_be_hidden()
    page.locator("[data-title=States] .u-over").hover(position={"x": 20, "y": 20})
    expect(tooltip).to_contain_text("good")
    page.locator("[data-title='Heat map'] .u-over").hover(position={"x": 20, "y": 20})
    expect(tooltip).to_contain_text("count")
    page.locator("[data-title=Curves] .u-over").hover(position={"x": 4, "y": 4})
    expect(tooltip).to_contain_text("recall")


def test_one_panel_fills_the_screen_and_escape_leads_back(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    page.get_by_role("button", name="Menu of Curves").click()
    page.get_by_text("View on the whole screen").click()
    expect(page.locator(".panel:visible")).to_have_count(1)
    number = query(page)["viewPanel"]
    page.reload()
    settle(page)
    expect(page.locator(".panel:visible")).to_have_count(1)
    assert query(page)["viewPanel"] == number
    page.keyboard.press("Escape")
    assert page.locator(".panel:visible").count() > 10
    assert "viewPanel" not in query(page)


def test_a_text_is_drawn_as_markdown_and_markup_in_it_is_text(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    bring(page, "Words")
    text = page.locator("[data-title=Words] .markdown")
    expect(text.locator("h4")).to_have_text("A heading")
    assert [text.locator(tag).inner_text() for tag in ("em", "strong", "pre", "th >> nth=1")] == [
        "word", "another", "SELECT '<script>'", "value",
    ]  # fmt: skip
    expect(text).to_contain_text('<b onclick="alert(1)">markup</b>')
    expect(text).to_contain_text("1 < 2")
    assert text.locator("b, img, script").count() == 0
    assert [link.get_attribute("href") for link in text.locator("a").all()] == ["/d/gallery?viewPanel=632"]
    page.get_by_role("button", name="Menu of Words").click()
    assert page.get_by_role("menuitem").all_inner_texts() == ["View on the whole screen"]
    page.keyboard.press("Escape")
    text.get_by_role("link", name="a panel").click()
    expect(page.locator(".panel:visible")).to_have_count(1)
    expect(page.locator(".panel:visible h3")).to_have_text("Curves")


def test_the_query_of_a_panel_can_be_read(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    page.get_by_role("button", name="Menu of Two axes").click()
    page.get_by_text("View query").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("pre")).to_have_count(2)
    expect(dialog.locator("pre").first).to_contain_text("toDateTime(")
    assert "$__" not in dialog.inner_text()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_rows_ask_nothing_until_they_are_opened(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    page.locator(".row-title").scroll_into_view_if_needed()
    inside = page.locator("[data-title=Inside]")
    expect(inside).to_be_hidden()
    with page.expect_request("**/api/query"):
        page.locator(".row-title").click()
    expect(inside.locator("canvas")).to_be_visible()


def test_every_key_does_what_the_help_says(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Filter the panels by title")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("/")
    page.keyboard.type("curv")
    expect(page.locator(".panel:visible")).to_have_count(1)
    page.keyboard.press("Escape")
    assert page.locator(".panel:visible").count() > 10
    page.keyboard.press("t")
    page.get_by_label("From").fill("yesterday")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("is no time")
    page.get_by_label("From").fill("now-3h")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.search.includes('from=now-3h')")
    expect(page.get_by_label("From")).to_have_count(0)
    settle(page)
    page.keyboard.press("d")
    page.wait_for_function("() => document.activeElement.textContent === 'Gallery'")


def test_the_keyboard_reaches_the_panels_first_by_the_skip_link(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    expect(skip).to_be_focused()
    assert (skip.bounding_box() or {"y": -1})["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.panel') !== null")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_a_theme_is_remembered(generated: Served, opened: Open) -> None:
    page = opened(generated, "/d/gallery")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "dark"
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(theme) == "light"
    page.reload()
    settle(page)
    assert page.evaluate(theme) == "light"


def test_a_page_that_is_closed_or_refreshed_leaves_no_query_behind(browser: Browser, database: Database) -> None:
    with serving(database, documents={"endless": DOCUMENT}, **LIMITS) as served:
        page = browser.new_page()
        page.goto(f"{served.url}/d/endless")
        wait_for(database, 1)
        shown = page.locator(".time-button")
        before = shown.inner_text()
        page.keyboard.press("z")  # another time range: the query of the former one ends
        expect(shown).not_to_have_text(before)
        wait_for(database, 1)
        page.close()
        wait_for(database, 0)
