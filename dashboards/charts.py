"""Panel types that only some dashboards have: state timelines, heat maps, bars and points."""

from collections.abc import Mapping

from ragtide.dashboards.panels import explained
from ragtide.dashboards.sdk import (
    DATA_SOURCE,
    Query,
    barchart,
    board,
    common,
    dashboard,
    heat,
    heatmap,
    options,
    statetimeline,
    timeseries,
    xy,
    xychart,
)

_HIDDEN_LINE: list[tuple[str, object]] = [("custom.lineWidth", 0), ("custom.showPoints", "never")]


def states(
    title: str, description: str, sql: str, named: Mapping[int, tuple[str, str]], label: str, height: int = 8
) -> statetimeline.Panel:
    """A bar per series over time; `named` gives the word and the colour of each number, `label` the series' name."""
    return (
        statetimeline.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(24)
        .height(height)
        .unit("none")
        .no_value("no data")
        .mappings([dashboard.ValueMap(options=_results(named))])
        .color_scheme(board.FieldColor().mode(dashboard.FieldColorModeId.FIXED).fixed_color("text"))
        .display_name(label)
        .show_value(common.VisibilityMode.NEVER)
        .merge_values(True)
        .row_height(0.8)
        .fill_opacity(80)
        .legend(options.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM))
        .with_target(Query(sql))
    )


def _results(named: Mapping[int, tuple[str, str]]) -> dict[str, dashboard.ValueMappingResult]:
    return {
        str(number): dashboard.ValueMappingResult(text=word, color=colour, index=index)
        for index, (number, (word, colour)) in enumerate(named.items())
    }


def heat_map(title: str, description: str, sql: str, unit: str, label: str, width: int = 24) -> heatmap.Panel:
    """Traces by bucket over time: each series is a row, called as `label` says; darker is more."""
    colours = (
        heatmap.HeatmapColorOptions()
        .mode(heat.HeatmapColorMode.SCHEME)
        .scheme("Blues")
        .scale(heat.HeatmapColorScale.EXPONENTIAL)
        .exponent(0.5)
        .steps(64)
        .fill("blue")
    )
    return (
        heatmap.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(width)
        .height(8)
        .unit(unit)
        .no_value("no data")
        .calculate(False)
        .color(colours)
        .rows_frame(heatmap.RowsHeatmapOptions().layout(common.HeatmapCellLayout.AUTO))
        .display_name(label)
        .cell_gap(1)
        .show_legend()
        .with_target(Query(sql))
    )


def bars(
    title: str, description: str, sql: str, unit: str, x: str, *, stacked: bool = False, width: int = 12
) -> barchart.Panel:
    """Bars of every number of a row, side by side or stacked, by the words of the column `x`."""
    return (
        barchart.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(width)
        .height(9)
        .unit(unit)
        .no_value("no data")
        .x_field(x)
        .orientation(common.VizOrientation.AUTO)
        .x_tick_label_max_length(24)
        .stacking(common.StackingMode.NORMAL if stacked else common.StackingMode.NONE)
        .show_value(common.VisibilityMode.NEVER)
        .fill_opacity(80)
        .legend(options.VizLegendOptions().show_legend(True).placement(common.LegendPlacement.BOTTOM))
        .tooltip(options.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.NONE))
        .with_target(Query(sql, "table"))
    )


def points(title: str, description: str, sql: str, each: str, width: int = 12) -> xychart.Panel:
    """Points of the second number over the first, one series for each value of the column `each`."""
    apart = dashboard.DataTransformerConfig("partitionByValues", options={"fields": [each], "keepFields": False})
    return (
        xychart.Panel()
        .title(title)
        .description(explained(description))
        .datasource(DATA_SOURCE)
        .span(width)
        .height(10)
        .unit("short")
        .no_value("no data")
        .show(xy.XYShowMode.POINTS)
        .mapping(xy.SeriesMapping.AUTO)
        .with_transformation(apart)
        .with_target(Query(sql, "table"))
    )


def band(panel: timeseries.Panel, low: str, high: str, colour: str) -> timeseries.Panel:
    """Fill the area between two series of the panel; their own lines are not drawn."""
    shade: list[tuple[str, object]] = [*_HIDDEN_LINE, ("color", {"mode": "fixed", "fixedColor": colour})]
    panel = panel.override_by_name(low, _properties(shade))
    return panel.override_by_name(high, _properties([*shade, ("custom.fillBelowTo", low), ("custom.fillOpacity", 18)]))


def dashed(panel: timeseries.Panel, series: str, colour: str) -> timeseries.Panel:
    """Draw a series as a dashed line of this colour."""
    style = {"fill": "dash", "dash": [8, 6]}
    return panel.override_by_name(
        series,
        _properties(
            [
                ("custom.lineStyle", style),
                ("custom.lineWidth", 1),
                ("custom.showPoints", "never"),
                ("color", {"mode": "fixed", "fixedColor": colour}),
            ]
        ),
    )


def _properties(values: list[tuple[str, object]]) -> list[dashboard.DynamicConfigValue]:
    return [dashboard.DynamicConfigValue(id_val=name, value=value) for name, value in values]
