"""A dashboard with every panel type and option that the viewer draws, over generated rows."""

from typing import Any

SOURCE = {"type": "grafana-clickhouse-datasource", "uid": "${datasource}"}
UID = "gallery"
NAMES = ("rate", "share")
_TIMES = "SELECT $__fromTime + toIntervalSecond(number * 60) AS time"
STATES = {"good": "green", "late": "orange", "down": "red"}


def mapped(colours: dict[str, str]) -> list[dict[str, Any]]:
    options = {word: {"text": word, "color": colour, "index": at} for at, (word, colour) in enumerate(colours.items())}
    return [{"type": "value", "options": options}]


def by_name(name: str, **properties: Any) -> dict[str, Any]:
    found = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": found}


def query(sql: str, *, series: bool = False, ref: str = "A") -> dict[str, Any]:
    return {"refId": ref, "datasource": SOURCE, "format": 0 if series else 1, "rawSql": sql}


def panel(
    kind: str, title: str, place: tuple[int, int, int, int], *targets: dict[str, Any], **more: Any
) -> dict[str, Any]:
    x, y, w, h = place
    config = {"defaults": more.pop("defaults", {}), "overrides": more.pop("overrides", [])}
    return {
        "id": sum(map(ord, title)),
        "type": kind,
        "title": title,
        "description": f"What {title} shows.",
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": w, "h": h},
        "fieldConfig": config,
        "options": more.pop("options", {}),
        "targets": list(targets),
        **more,
    }


def thresholds(*steps: tuple[float | None, str]) -> dict[str, Any]:
    return {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps]}


LEGEND = {
    "legend": {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["lastNotNull", "max"]}
}
TOOLTIP = {"tooltip": {"mode": "multi", "sort": "desc"}}
LINES = (
    f"{_TIMES}, if(number < 90, 0.7 + 0.2 * sin(number / 9), NULL) AS mean, 0.55 AS low, 0.95 AS high FROM numbers(120)"
)
BARS = (
    "SELECT time, kind, n FROM (" + _TIMES + ", number AS i FROM numbers(60)) "
    "ARRAY JOIN ['scored', 'failed', 'skipped'] AS kind, [20 + i % 7, i % 4, 3] AS n ORDER BY time"
)
HEAT = (
    "SELECT time, bucket, n FROM (" + _TIMES + ", number AS i FROM numbers(60)) ARRAY JOIN "
    "['0.0', '0.2', '0.4', '0.6', '0.8'] AS bucket, [i % 3, i % 5, 9, 30 + i % 11, 50] AS n ORDER BY time"
)
TIMELINE = (
    "SELECT time, app, state FROM (" + _TIMES + ", number AS i FROM numbers(60)) ARRAY JOIN "
    "['shop', 'help'] AS app, [if(i < 20, 'good', if(i < 35, 'down', 'good')), if(i < 50, 'good', 'late')] AS state "
    "ORDER BY time"
)
ROWS = (
    "SELECT concat('app ', toString(number)) AS app, number * 1.5 AS rate, number / 40 AS share, "
    "['good', 'late', 'down'][number % 3 + 1] AS state, concat('A sentence that is long enough to be wrapped: ', "
    "repeat('word ', number % 9)) AS text, $__toTime - toIntervalHour(number) AS seen, 'secret' AS hidden "
    "FROM numbers(40) WHERE $__conditionalAll(concat('app ', toString(number)) IN "
    "(arrayMap(name -> decodeURLComponent(name), splitByChar(',', trim(BOTH '{}' FROM "
    "decodeURLComponent('${app:percentencode}'))))), $app) AND text LIKE "
    "concat('%', decodeURLComponent('${words:percentencode}'), '%')"
)


LINK = "/d/gallery?var-app=${__data.fields.app:percentencode}&${__url_time_range}&"
LINK += 'var-words=${__data.fields["hidden"]}'


MARKDOWN = """# A heading

A *word* and **another**, `code`, <b onclick="alert(1)">markup</b> and ![no image](https://example.org/a.png).

- [a panel](/d/gallery?viewPanel=632)
- [evil](javascript:alert(1)) and [plain](//example.org)

| name | value |
|---|---|
| a | 1 < 2 |

```sql
SELECT '<script>'
```
"""


def gallery() -> dict[str, Any]:
    """The document."""
    return {
        "uid": UID,
        "title": "Gallery",
        "description": "Every panel type.",
        "time": {"from": "now-2h", "to": "now"},
        "refresh": "",
        "links": [],
        "annotations": {"list": [_annotation()]},
        "templating": {"list": _variables()},
        "panels": [*_numbers(), *_graphs(), *_others(), _row()],
    }


def _numbers() -> list[dict[str, Any]]:
    values = (("Plain number", "1234567", "short"), ("Share", "0.4237", "percentunit"), ("Cost", "12.5", "currencyUSD"))
    steps = thresholds((None, "green"), (0.4, "orange"), (1000, "red"))
    plain = [
        panel(
            "stat",
            title,
            (4 * at, 0, 4, 4),
            query(f"SELECT {value} AS v"),
            defaults={"unit": unit, "thresholds": steps},
        )
        for at, (title, value, unit) in enumerate(values)
    ]
    none = {"noValue": "nothing yet", "thresholds": steps}
    filled = {"colorMode": "background", "graphMode": "area", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return [
        *plain,
        panel("stat", "No number", (12, 0, 4, 4), query("SELECT NULL::Nullable(Float64) AS v"), defaults=none),
        panel(
            "stat",
            "Two series",
            (16, 0, 8, 4),
            query(LINES, series=True),
            options=filled,
            defaults={"thresholds": steps},
        ),
    ]


def _graphs() -> list[dict[str, Any]]:
    band = [
        by_name(
            "high",
            custom__fillBelowTo="low",
            custom__lineWidth=0,
            custom__fillOpacity=15,
            color={"mode": "fixed", "fixedColor": "blue"},
        ),
        by_name(
            "low",
            custom__lineWidth=0,
            custom__hideFrom={"legend": True, "tooltip": False, "viz": False},
            color={"mode": "fixed", "fixedColor": "blue"},
        ),
        by_name(
            "mean",
            custom__lineWidth=2,
            links=[{"title": "Examples at ${__value.time}", "url": "/d/gallery?from=${__value.time}&to=now"}],
        ),
    ]
    lines = {
        "unit": "percentunit",
        "min": 0,
        "max": 1,
        "thresholds": thresholds((None, "red"), (0.6, "green")),
        "custom": {"thresholdsStyle": {"mode": "dashed+area"}, "showPoints": "auto"},
    }
    bars = {"custom": {"drawStyle": "bars", "fillOpacity": 60, "stacking": {"mode": "normal", "group": "A"}}}
    two = [
        query(f"{_TIMES}, number * 2 AS requests FROM numbers(120)", series=True),
        query(f"{_TIMES}, number / 900 AS seconds FROM numbers(120)", series=True, ref="B"),
    ]
    right = [
        by_name("seconds", unit="s", custom__axisPlacement="right", custom__lineStyle={"fill": "dash", "dash": [6, 4]})
    ]
    return [
        panel(
            "timeseries",
            "Lines in a band",
            (0, 4, 12, 8),
            query(LINES, series=True),
            defaults=lines,
            overrides=band,
            options=LEGEND | TOOLTIP,
        ),
        panel(
            "timeseries",
            "Stacked bars",
            (12, 4, 12, 8),
            query(BARS, series=True),
            defaults=bars,
            options=LEGEND | TOOLTIP,
        ),
        panel(
            "timeseries", "Two axes", (0, 12, 12, 8), *two, defaults={"unit": "short"}, overrides=right, options=TOOLTIP
        ),
        panel("heatmap", "Heat map", (12, 12, 12, 8), query(HEAT, series=True), defaults={"unit": "short"}),
        panel(
            "state-timeline",
            "States",
            (0, 20, 12, 6),
            query(TIMELINE, series=True),
            defaults={"mappings": mapped(STATES)},
        ),
        panel(
            "barchart",
            "Bars by name",
            (12, 20, 6, 6),
            query("SELECT ['a','b','c'][number + 1] AS name, number + 1.5 AS n FROM numbers(3)"),
        ),
        panel(
            "barchart",
            "Stacked by name",
            (18, 20, 6, 6),
            query(
                "SELECT concat('long name ', toString(number)) AS name, number + 1 AS good, 2 AS bad FROM numbers(4)"
            ),
            options={"orientation": "horizontal", "stacking": "normal"},
        ),
    ]


def _others() -> list[dict[str, Any]]:
    points = "SELECT ['x', 'y'][number % 2 + 1] AS class, number / 40 AS recall, 1 - pow(recall, 2) AS precision "
    points += "FROM numbers(40)"
    cells = "SELECT ['a', 'b'][number % 2 + 1] AS expected, ['a', 'b'][intDiv(number, 2) + 1] AS found, number AS n "
    cells += "FROM numbers(4)"
    apart = {"id": "partitionByValues", "options": {"fields": ["class"], "keepFields": False}}
    matrix = {
        "id": "groupingToMatrix",
        "options": {"rowField": "expected", "columnField": "found", "valueField": "n", "emptyValue": "zero"},
    }
    overrides = [
        by_name(
            "share",
            unit="percentunit",
            max=1,
            min=0,
            thresholds=thresholds((None, "red"), (0.5, "green")),
            custom__cellOptions={"type": "gauge"},
        ),
        by_name("state", mappings=mapped(STATES), custom__cellOptions={"type": "color-background"}),
        by_name("text", custom__width=320, custom__cellOptions={"type": "auto", "wrapText": True}),
        by_name("hidden", custom__hidden=True),
        by_name(
            "app",
            links=[
                {
                    "title": "Show ${__value.text}",
                    "url": LINK,
                }
            ],
        ),
        by_name(
            "rate",
            links=[
                {"title": "One", "url": "/d/gallery"},
                {"title": "Evil", "url": "javascript:alert(1)"},
                {"title": "Elsewhere", "url": "https://example.org/${__value.raw}"},
            ],
        ),
    ]
    return [
        panel(
            "table",
            "Table",
            (0, 26, 16, 10),
            query(ROWS),
            defaults={"custom": {"filterable": True}},
            overrides=overrides,
        ),
        panel(
            "xychart",
            "Curves",
            (16, 26, 8, 10),
            query(points),
            defaults={"unit": "percentunit", "min": 0, "max": 1, "custom": {"show": "points+lines"}},
            transformations=[apart],
        ),
        panel("table", "Matrix", (0, 36, 8, 6), query(cells), transformations=[matrix]),
        panel(
            "table",
            "Nothing",
            (8, 36, 8, 6),
            query("SELECT 1 AS a WHERE 0"),
            defaults={"noValue": "No rows: all is well."},
        ),
        panel("table", "Broken", (16, 36, 8, 6), query("SELECT no_such_function(1)")),
        panel("text", "Words", (0, 42, 24, 8), options={"mode": "markdown", "content": MARKDOWN}),
    ]


def _row() -> dict[str, Any]:
    inner = panel("timeseries", "Inside", (0, 51, 12, 6), query(LINES, series=True))
    place = {"x": 0, "y": 50, "w": 24, "h": 1}
    return {"id": 9, "type": "row", "title": "More", "collapsed": True, "gridPos": place, "panels": [inner]}


def _annotation() -> dict[str, Any]:
    sql = "SELECT $__toTime - toIntervalMinute(50) AS time, $__toTime - toIntervalMinute(30) AS timeEnd, "
    sql += "'It <b>fell</b>' AS text, 'open,critical' AS tags"
    return {"name": "Problems", "enable": True, "iconColor": "red", "datasource": SOURCE, "target": query(sql)}


def _variables() -> list[dict[str, Any]]:
    names = (
        "SELECT concat('app ', toString(number)) AS v, upper(v) AS label FROM numbers(40) WHERE $__fromTime < $__toTime"
    )
    every = {"text": ["All"], "value": ["$__all"]}
    sizes = [{"text": "auto", "value": "0", "selected": True}, {"text": "1 h", "value": "3600", "selected": False}]
    return [
        {"name": "datasource", "type": "datasource", "current": {"text": "ragtide", "value": "ragtide"}},
        {
            "name": "app",
            "label": "Application",
            "type": "query",
            "datasource": SOURCE,
            "multi": True,
            "includeAll": True,
            "current": every,
            "query": {"rawSql": names},
        },
        {"name": "resolution", "label": "Windows of", "type": "custom", "options": sizes, "current": sizes[0]},
        {"name": "words", "label": "Text", "type": "textbox", "query": "", "current": {"text": "", "value": ""}},
    ]
