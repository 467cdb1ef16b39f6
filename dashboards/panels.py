"""Panel types of the dashboards, each with one style."""

from collections.abc import Iterable, Mapping

from ragtide.dashboards.rule_lines import RuleLine
from ragtide.dashboards.sdk import (
    DATA_SOURCE,
    Query,
    board,
    common,
    dashboard,
    options,
    stat,
    steps,
    table,
    timeseries,
    xy,
    xychart,
)

_GREY = "text"
_NOTHING = " No data: nothing was recorded for this choice and time range."


def explained(description: str) -> str:
    """Return the description of a panel, which always says what "no data" means there."""
    return description if "No data" in description else description + _NOTHING


def number(title: str, description: str, sql: str, unit: str, width: int = 4, column: str = "") -> stat.Panel:
    """One number over the whole time range: the query's only one, or that of a column.

    Panels that show columns of one query share its run in the viewer; Grafana runs it for each panel.
    """
    reduced = options.ReduceDataOptions().calcs(["lastNotNull"]).values(False)
    return (
        stat.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(width)
        .height(4)
        .unit(unit)
        .no_value("no data")
        .color_mode(common.BigValueColorMode.VALUE)
        .graph_mode(common.BigValueGraphMode.NONE)
        .thresholds(steps((None, _GREY)))
        .reduce_options(reduced.fields(f"/^{column}$/") if column else reduced)
        .with_target(Query(sql, "table"))
    )


def lines(title: str, description: str, queries: Iterable[str], unit: str, width: int = 12) -> timeseries.Panel:
    """Lines over time; a gap is a gap."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(width)
        .height(8)
        .unit(unit)
        .no_value("no data")
        .span_nulls(False)
        .show_points(common.VisibilityMode.AUTO)
        .thresholds(steps((None, "green")))
        .tooltip(options.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.NONE))
        .legend(
            options.VizLegendOptions()
            .display_mode(common.LegendDisplayMode.TABLE)
            .placement(common.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "min", "max"])
        )
    )
    for ref, sql in zip("ABCDEFGH", queries, strict=False):
        panel = panel.with_target(Query(sql, ref=ref))
    return panel


def with_line(panel: timeseries.Panel, rule_line: RuleLine) -> timeseries.Panel:
    """Add the limit as a dashed line, and colour the bad side red."""
    below, above = ("red", "green") if rule_line.is_min and rule_line.limit is None else ("green", "red")
    limit = rule_line.line if rule_line.limit is None else rule_line.limit
    style = options.GraphThresholdsStyleConfig().mode(common.GraphThresholdsStyleMode.DASHED_AND_AREA)
    return panel.thresholds(steps((None, below), (limit, above))).thresholds_style(style)


def stacked_bars(title: str, description: str, sql: str, unit: str, width: int = 8) -> timeseries.Panel:
    """Parts of a whole over time."""
    return (
        lines(title, description, [sql], unit, width)
        .draw_style(common.GraphDrawStyle.BARS)
        .fill_opacity(60)
        .stacking(options.StackingConfig().mode(common.StackingMode.NORMAL).group("A"))
    )


def rows(
    title: str, description: str, sql: str, width: int = 24, units: Mapping[str, str] | None = None, height: int = 8
) -> table.Panel:
    """A table; `units` by column."""
    panel = (
        table.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(width)
        .height(height)
        .filterable(True)
        .no_value("no data")
        .with_target(Query(sql, "table"))
    )
    # What a table says without rows is not what an empty cell says.
    panel = panel.override_by_regexp(".*", [dashboard.DynamicConfigValue(id_val="noValue", value="")])
    for column, unit in (units or {}).items():
        panel = panel.override_by_name(column, [dashboard.DynamicConfigValue(id_val="unit", value=unit)])
    return panel


def matrix(panel: table.Panel, down: str, across: str, cell: str, empty: str = "zero") -> table.Panel:
    """The rows of a table as a matrix: a row for each value of a column, a column for each of another."""
    options_ = {"rowField": down, "columnField": across, "valueField": cell, "emptyValue": empty}
    return panel.with_transformation(dashboard.DataTransformerConfig("groupingToMatrix", options=options_))


def curves(title: str, description: str, sql: str, each: str) -> xychart.Panel:
    """Lines of the second number over the first, both from 0 to 1, one for each value of the column `each`."""
    apart = dashboard.DataTransformerConfig("partitionByValues", options={"fields": [each], "keepFields": False})
    return (
        xychart.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(8)
        .height(10)
        .unit("percentunit")
        .no_value("no data")
        .min(0)
        .max(1)
        .show(xy.XYShowMode.POINTS_AND_LINES)
        .mapping(xy.SeriesMapping.AUTO)
        .with_transformation(apart)
        .with_target(Query(sql, "table"))
    )


def color_cells(panel: table.Panel, column: str, colours: Mapping[str, str]) -> table.Panel:
    """The cells of a column of words in colours."""
    found = {
        word: {"text": word, "color": colour, "index": index} for index, (word, colour) in enumerate(colours.items())
    }
    return panel.override_by_name(
        column,
        [
            dashboard.DynamicConfigValue(id_val="mappings", value=[{"type": "value", "options": found}]),
            dashboard.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
        ],
    )


def shade_cells(panel: table.Panel, column: str, *colours: tuple[float | None, str]) -> table.Panel:
    """Colour the numbers of a column, from these values upwards; the first has None: from below."""
    return panel.override_by_name(
        column,
        [
            dashboard.DynamicConfigValue(id_val="thresholds", value=steps(*colours).build()),
            dashboard.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
        ],
    )


def link_cells(panel: table.Panel, column: str, title: str, url: str) -> table.Panel:
    """Make the cells of a column links."""
    link = {"title": title, "url": url, "targetBlank": False}
    return panel.override_by_name(column, [dashboard.DynamicConfigValue(id_val="links", value=[link])])


def link_traces(panel: table.Panel) -> table.Panel:
    """Link the cells of column `trace` by the hidden column `trace_link`."""
    linked = link_cells(panel, "trace", "Show the texts of the trace", "${__data.fields.trace_link}")
    return hide_columns(linked, "trace_link")


def wrap_cells(panel: table.Panel, column: str, width: int) -> table.Panel:
    """Show the texts of a column whole, over several lines; `width` in pixels."""
    return panel.override_by_name(
        column,
        [
            dashboard.DynamicConfigValue(id_val="custom.width", value=width),
            dashboard.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "auto", "wrapText": True}),
        ],
    )


def hide_columns(panel: table.Panel, *columns: str) -> table.Panel:
    """Hide columns that only links read."""
    for column in columns:
        panel = panel.override_by_name(column, [dashboard.DynamicConfigValue(id_val="custom.hidden", value=True)])
    return panel


def section(title: str, collapsed: Iterable[board.Row] = ()) -> board.Row:
    """A row; `collapsed` panels are asked for only once it is opened."""
    row = board.Row(title).collapsed(False)
    for panel in collapsed:
        row = row.with_panel(panel)
    return row
