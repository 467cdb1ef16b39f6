"""Contrast of texts in both themes (WCAG AA), and pages 390 pixels wide."""

from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboards.viewer.browser.conftest import Open
from tests.dashboards.viewer.serving import Served, serving
from tests.dashboards.viewer.test_access import BEARER, NOWHERE, TOKEN

pytestmark = [pytest.mark.browser, pytest.mark.clickhouse]

Theme = Literal["dark", "light"]
# Ratio of luminances of each text and what lies behind it: 4.5, and 3 for large texts.
_LIGHT = """
  const light = (rgb) => {
    const [r, g, b] = rgb.map((one) => {
      const share = one / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratioOf = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
"""
CONTRAST = (
    f"() => {{ {_LIGHT}"
    + """
  const parse = (text) => { const n = text.match(/[\\d.]+/g).map(Number); return [...n.slice(0, 3), n[3] ?? 1]; };
  const blend = ([r, g, b, a], below) => [r, g, b].map((one, at) => one * a + below[at] * (1 - a));
  const behind = (node) => {
    const layers = [];
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => blend(layer, below), [255, 255, 255]);
  };
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const node = walker.currentNode.parentElement;
    if (!text || !node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (node.closest('.visually-hidden, script, noscript, option')) continue;
    seen++;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const ground = behind(node);
    const ratio = ratioOf(light(blend(parse(style.color), ground)), light(ground));
    if (ratio < (large ? 3 : 4.5)) wrong.push(`${text.slice(0, 40)} (${node.className}): ${ratio.toFixed(2)}`);
  }
  return { wrong: [...new Set(wrong)], seen };
}
"""
)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_texts_have_enough_contrast(generated: Served, viewer: Served, opened: Open, theme: str) -> None:
    for served, path in ((generated, "/d/gallery"), (viewer, "/d/ragtide-application")):
        page = opened(served, path, color_scheme=theme)
        found = page.evaluate(CONTRAST)
        assert found["wrong"] == [], path
        assert found["seen"] > 30


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("path", ["/login", "/explore"])
def test_pages_without_dashboards_have_enough_contrast(browser: Browser, path: str, theme: Theme) -> None:
    with serving(NOWHERE, token=TOKEN) as locked:
        page = browser.new_page(color_scheme=theme, extra_http_headers=BEARER if path == "/explore" else {})
        page.goto(f"{locked.url}{path}")
        found = page.evaluate(CONTRAST)
        page.close()
    assert found["wrong"] == []
    assert found["seen"] >= 3


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_what_opens_above_the_page_has_enough_contrast(generated: Served, opened: Open, theme: str) -> None:
    page = opened(generated, "/d/gallery", color_scheme=theme)
    for key in ("t", "?"):
        page.keyboard.press(key)
        assert page.evaluate(CONTRAST)["wrong"] == [], key
        page.keyboard.press("Escape")
    page.locator("[data-variable=app]").click()
    assert page.evaluate(CONTRAST)["wrong"] == []
    page.keyboard.press("Escape")
    page.locator("[data-title='Two axes'] .u-over").hover(position={"x": 60, "y": 40})
    assert page.evaluate(CONTRAST)["wrong"] == []


MARKS = (
    f"async () => {{ {_LIGHT}"
    + """
  const base = [...document.scripts].find((one) => one.src.endsWith('/app.js')).src.replace('app.js', '');
  const { markColor } = await import(`${base}colors.js`);
  const channels = (text) => text.startsWith('#')
    ? [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)) : text.match(/[\\d.]+/g).map(Number);
  const ground = light(channels(getComputedStyle(document.querySelector('.panel')).backgroundColor));
  const palette = Array.from({ length: 12 }, (_, at) => `palette-${at}`);
  const names = ['green', 'yellow', 'orange', 'red', 'blue', 'purple', 'text', ...palette];
  return names.filter((name) => ratioOf(light(channels(markColor(name))), ground) < 3);
}
"""
)


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_colours_of_lines_and_bars_can_be_seen(generated: Served, opened: Open, theme: str) -> None:
    """Marks need a contrast of 3 against the panel."""
    assert opened(generated, "/d/gallery", color_scheme=theme).evaluate(MARKS) == []


def test_a_narrow_page_has_one_column_and_scrolls_tables_inside_their_panel(
    generated: Served, viewer: Served, opened: Open
) -> None:
    long = "answer_semantic_sentence_similarity.mean_answer_similarity"
    paths = ("/d/ragtide-application", f"/d/ragtide-metric?var-metric={long}")
    for served, path in ((generated, "/d/gallery"), *((viewer, path) for path in paths)):
        page = opened(served, path, viewport={"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        widths = page.locator(".panel:not(.panel-stat):visible").evaluate_all(
            "panels => panels.map(one => Math.round(one.getBoundingClientRect().width))"
        )
        assert set(widths) == {374}
        page.get_by_role("button", name="Dashboards").click()
        expect(page.locator("#dashboards a").first).to_be_in_viewport(ratio=1)
        page.keyboard.press("Escape")
        expect(page.locator("#dashboards a").first).not_to_be_in_viewport()


@pytest.mark.parametrize("minutes", [1, 6, 10, 60, 8 * 60, 3 * 1440, 40 * 1440])
def test_every_graph_over_time_has_several_ticks(generated: Served, opened: Open, minutes: int) -> None:
    now = 1_772_366_400_000
    page = opened(generated, f"/d/gallery?from={now - minutes * 60_000}&to={now}&refresh=")
    ticks = page.evaluate(
        "[...document.querySelectorAll('.panel-timeseries')].filter(one => one.panel.state.plot?.u)"
        ".map(one => one.panel.state.plot.u.axes[0]._values.length)"
    )
    assert ticks
    assert min(ticks) >= 3
