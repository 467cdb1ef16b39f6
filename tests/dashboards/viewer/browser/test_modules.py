"""The viewer's modules by themselves: texts of numbers, times, links and frames, against values worked by hand."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.dashboards.macros import interpolate
from tests.dashboards.test_hostile_names import HOSTILE
from tests.dashboards.viewer.drawable import CAPABILITIES
from tests.dashboards.viewer.serving import serving
from tests.dashboards.viewer.test_access import NOWHERE
from tests.dashboards.viewer.test_static_files import STATIC

pytestmark = pytest.mark.browser

BASE = "[...document.scripts].find((one) => one.src.endsWith('/app.js')).src.replace('app.js', '')"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    with serving(NOWHERE) as served:
        opened = browser.new_page(timezone_id="Europe/Berlin")
        opened.goto(f"{served.url}/d/ragtide-application")
        yield opened
        opened.close()


def call(page: Page, module: str, expression: str, *arguments: Any) -> Any:
    """The value of an expression over a module's exports and arguments a, b, c."""
    script = f"async ([a, b, c]) => {{ const m = await import({BASE} + '{module}.js'); return {expression}; }}"
    return page.evaluate(script, [*arguments, *[None] * (3 - len(arguments))])


# value, unit, decimals, text: as Grafana writes them, zeros that say nothing left out.
TEXTS = [
    (1234567, "short", None, "1.23 Mil"), (999.96, "short", None, "1 K"), (1500, "short", None, "1.5 K"),
    (0, "short", None, "0"), (-2500, "short", None, "-2.5 K"), (0.00012345, "none", None, "0.000123"),
    (1234.5, "none", None, "1,235"), (12.345, "none", 1, "12.3"), (0.4237, "percentunit", None, "42.4%"),
    (1, "percentunit", None, "100%"), (42.37, "percent", None, "42.4%"), (0.0005, "s", None, "500 µs"),
    (0.121, "s", None, "121 ms"), (90, "s", None, "1.5 min"), (7200, "s", None, "2 hours"), (1500, "ms", None, "1.5 s"),
    (0, "s", None, "0 s"), (12.5, "currencyUSD", None, "$12.50"), (0.000585, "currencyUSD", None, "$0.000585"),
    (-3, "currencyUSD", None, "-$3.00"), (1234.5, "currencyUSD", None, "$1.23 K"), (1536, "bytes", None, "1.5 KiB"),
    (100, "bytes", None, "100 B"), (120, "reqpm", None, "120 per min"), (None, "s", None, ""),
    ("text", "s", None, "text"), (5, "string", None, "5"), (1000, "an unknown one", None, "1 K"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "unit", "decimals", "text"), TEXTS)
def test_numbers_as_text(page: Page, value: Any, unit: str, decimals: int | None, text: str) -> None:
    assert call(page, "units", "m.formatValue(a, b, c ?? undefined)", value, unit, decimals) == text


@pytest.mark.parametrize(
    ("ticks", "unit", "texts"),
    [
        ([0.68, 0.7, 0.72], "none", ["0.68", "0.70", "0.72"]),
        ([0, 0.5, 1], "none", ["0", "0.5", "1.0"]),
        ([0.5, 0.75, 1], "currencyUSD", ["$0.50", "$0.75", "$1.00"]),
        ([-0.5, 0, 0.25, None], "percentunit", ["-50%", "0%", "25%", ""]),
        ([0, 30, 60, 90], "s", ["0 s", "30 s", "1 min", "1.5 min"]),
        ([1000, 1500, 2000], "short", ["1.0 K", "1.5 K", "2.0 K"]),
    ],
)
def test_ticks_of_an_axis_have_as_many_decimals(page: Page, ticks: list[float], unit: str, texts: list[str]) -> None:
    assert call(page, "units", "m.tickTexts(a, b)", ticks, unit) == texts


def test_times_as_text(page: Page) -> None:
    noon = 1_772_366_400_000  # 2026-03-01 12:00 UTC
    assert call(page, "units", "m.formatTime(a)", noon) == "2026-03-01 13:00:00"
    for ms, text in ((90_000, "1 minute ago"), (7_200_000, "2 hours ago"), (-90_000, "in 1 minute"), (0, "now")):
        assert call(page, "units", "m.fromNow(a - b, a)", noon, ms) == text


RANGES = [
    ("now-6h", False, -6 * 3600), ("now", True, 0), ("now-90s", False, -90), ("now/d", False, -13 * 3600),
    ("now/d", True, 11 * 3600 - 0.001), ("now-1d/d", False, -37 * 3600), ("now/w", False, -(6 * 24 + 13) * 3600),
    ("2026-03-01", False, -13 * 3600), ("2026-03-01 12:30", False, -1800), ("2026-03-01T12:00:00Z", False, 0),
    ("1772366400000", False, 0), ("now+1h", False, 3600),
]  # fmt: skip


@pytest.mark.parametrize(("text", "is_end", "seconds"), RANGES)
def test_times_are_read(page: Page, text: str, is_end: bool, seconds: float) -> None:
    noon = 1_772_366_400_000
    assert call(page, "timerange", "m.resolve(a, b, c)", text, is_end, noon) == noon + seconds * 1000


@pytest.mark.parametrize("text", ["", "yesterday", "now-", "now-6", "now-6x", "2026-02-31", "2026", "12:00", "now/x"])
def test_what_is_no_time_is_not_read(page: Page, text: str) -> None:
    assert call(page, "timerange", "m.resolve(a, false)", text) is None


@pytest.mark.parametrize(
    ("hours", "points", "seconds"), [(24, 600, 120), (1, 600, 5), (6, 1000, 20), (24 * 90, 800, 10800)]
)
def test_steps_of_graphs_are_grafanas(page: Page, hours: int, points: int, seconds: int) -> None:
    """By Grafana's roundInterval."""
    assert call(page, "timerange", "m.intervalOf({from: 0, to: a * 3600000}, b)", hours, points) == seconds


@pytest.mark.parametrize("kind", HOSTILE)
def test_names_are_encoded_as_grafana_encodes_them(page: Page, kind: str) -> None:
    for choice in (HOSTILE[kind], [HOSTILE[kind], "b"]):
        expected = interpolate("${app:percentencode}", {"app": choice})
        assert call(page, "links", "m.interpolate('${app:percentencode}', {variables: {app: a}})", choice) == expected


LINKS = [
    ("${__url_time_range}", "from=now-6h&to=now"),
    ("${run:queryparam}&${env:queryparam}", "var-run=live&var-env=a%20b&var-env=c"),
    ("${__all_variables}", "var-run=live&var-env=a%20b&var-env=c"),
    ("${__data.fields.app}/${__data.fields.app:percentencode}", "x y/x%20y"),
    ('${__data.fields["what to do"]}', "look: {here}"),
    ("${__field.labels.class}|${__field.name}|${__series.name}", "k|n|N k"),
    ("${__value.raw}|${__value.text}|${__value.time}", "0.5|50%|1700000000000"),
    ("${__dashboard.uid}|${unknown}|${__data.fields.none}", "u|${unknown}|"),
    ("$plain ${}", "$plain ${}"),
]


@pytest.mark.parametrize(("url", "filled"), LINKS)
def test_macros_of_links_are_filled_in(page: Page, url: str, filled: str) -> None:
    field = {"name": "n", "displayName": "N k", "labels": {"class": "k"}}
    columns = {"app": ["", "x y"], "what to do": ["", "look: {here}"], "time": [0, 1_700_000_000_000]}
    fields = [
        {"name": name, "type": "time" if name == "time" else "string", "values": v} for name, v in columns.items()
    ]
    scope = {
        "variables": {"datasource": "d", "run": "live", "env": ["a b", "c"]}, "range": {"from": "now-6h", "to": "now"},
        "uid": "u", "field": field, "frame": {"fields": fields}, "row": 1, "value": 0.5, "text": "50%",
    }  # fmt: skip
    assert call(page, "links", "m.interpolate(a, b)", url, scope) == filled


HREFS = [
    ("/d/a?b=1", "/d/a?b=1"), ("https://a.example/b", "https://a.example/b"), ("http://a.example", "http://a.example"),
    ("//evil.example", ""), ("/\\evil.example", ""), ("javascript:alert(1)", ""), (" javascript:alert(1)", ""),
    ("data:text/html,x", ""), ("d/a", ""), ("", ""), ("JaVaScRiPt:1", ""), ("vbscript:x", ""), ("https:evil", ""),
]  # fmt: skip


@pytest.mark.parametrize(("url", "href"), HREFS)
def test_links_lead_by_http_or_to_this_server(page: Page, url: str, href: str) -> None:
    assert call(page, "dom", "m.safeHref(a)", url) == href


def answer(columns: dict[str, str], *rows: list[Any]) -> dict[str, Any]:
    return {"meta": [{"name": name, "type": kind} for name, kind in columns.items()], "data": list(rows)}


def test_rows_become_a_series_for_each_label_with_gaps(page: Page) -> None:
    found = answer(
        {"time": "DateTime('UTC')", "app": "LowCardinality(String)", "mean": "Nullable(Float64)"},
        *(["1970-01-01T00:00:01Z", "a", 0.5], ["1970-01-01T00:00:01Z", "b", 1]),
        *(["1970-01-01T00:00:02Z", "b", None], ["1970-01-01T00:00:03Z", "a", 2]),
    )
    frame = call(page, "frames", "m.toFrame(a, 'A', true)", found)
    assert [(one["labels"], one["values"]) for one in frame["fields"]] == [
        (None, [1000, 2000, 3000]),
        ({"app": "a"}, [0.5, None, 2]),
        ({"app": "b"}, [1, None, None]),
    ]


def test_a_table_keeps_its_rows_and_types(page: Page) -> None:
    columns = {
        "t": "DateTime64(3, 'UTC')",
        "d": "Date",
        "n": "Nullable(UInt64)",
        "b": "Bool",
        "s": "Enum8('a' = 1)",
        "l": "Array(String)",
    }
    row = ["1970-01-01T00:00:01.500Z", "2026-03-01", None, True, "a", ["x"]]
    frame = call(page, "frames", "m.toFrame(a, 'A', false)", answer(columns, row))
    assert [(one["type"], one["values"]) for one in frame["fields"]] == [
        ("time", [1500]), ("string", ["2026-03-01"]), ("number", [None]), ("boolean", [True]), ("string", ["a"]),
        ("other", ['["x"]']),
    ]  # fmt: skip


def test_the_capabilities_are_those_of_the_modules(page: Page) -> None:
    """One list says what the viewer draws; the modules have exactly that."""
    assert sorted(call(page, "units", "m.UNITS")) == sorted(CAPABILITIES["units"])
    assert sorted(call(page, "fields", "Object.keys(m.CALC_NAMES)")) == sorted(CAPABILITIES["calcs"])
    assert sorted(call(page, "panel", "Object.keys(m.TYPES)")) == sorted(set(CAPABILITIES["panels"]) - {"row"})
    named = json.loads(json.dumps(CAPABILITIES["colors"]))
    colours = call(page, "colors", "a.map((name) => m.markColor(name))", named)
    assert len(set(colours)) == len(named)
    for transformation in CAPABILITIES["transformations"]:
        assert f"'{transformation}'" in (STATIC / "frames.js").read_text()
    known = (STATIC / "links.js").read_text()
    assert [macro for macro in CAPABILITIES["linkMacros"] if macro not in known.replace("__from", "__from __to")] == []


def test_files_are_asked_for_once(browser: Browser) -> None:
    """Files come once: the second dashboard asks for none."""
    with serving(NOWHERE) as served:
        context = browser.new_context()
        first = context.new_page()
        asked: list[str] = []
        first.on("response", lambda found: asked.append(found.url) if not found.from_service_worker else None)
        first.goto(f"{served.url}/d/ragtide-application")
        first.wait_for_selector(".board")
        files = [url for url in asked if url.endswith((".js", ".css"))]
        assert len(files) == len(set(files)) < 50
        asked.clear()
        first.locator("#dashboards").get_by_role("link", name="Classification").click()
        first.wait_for_function("() => document.title.startsWith('Classification')")
        assert [url for url in asked if url.endswith((".js", ".css"))] == []
        context.close()
