"""Columns of tables: their widths, decimals, and colours of numbers and rows."""

from collections.abc import Mapping

from ragtide.dashboards.sdk import dashboard, table


def widths(panel: table.Panel, pixels: Mapping[str, int]) -> table.Panel:
    """Give columns these widths; the others share the rest."""
    for column, width in pixels.items():
        panel = panel.override_by_name(column, [dashboard.DynamicConfigValue(id_val="custom.width", value=width)])
    return panel


def decimals(panel: table.Panel, column: str, digits: int) -> table.Panel:
    """Show the numbers of a column with that many decimals."""
    return panel.override_by_name(column, [dashboard.DynamicConfigValue(id_val="decimals", value=digits)])


def color_above(panel: table.Panel, column: str, limit: float, bad: str = "red", good: str = "text") -> table.Panel:
    """Colour the numbers of a column: `bad` from the limit on, else `good`."""
    steps = [{"value": None, "color": good}, {"value": limit, "color": bad}]
    return panel.override_by_name(
        column,
        [
            dashboard.DynamicConfigValue(id_val="thresholds", value={"mode": "absolute", "steps": steps}),
            dashboard.DynamicConfigValue(id_val="custom.cellOptions", value={"type": "color-text"}),
        ],
    )


def color_rows(panel: table.Panel, column: str, colours: Mapping[str, str]) -> table.Panel:
    """Colour the background of rows by the word in that column."""
    mapped = {word: {"text": word, "color": colour, "index": i} for i, (word, colour) in enumerate(colours.items())}
    style = {"type": "color-background", "mode": "basic", "applyToRow": True}
    return panel.override_by_name(
        column,
        [
            dashboard.DynamicConfigValue(id_val="mappings", value=[{"type": "value", "options": mapped}]),
            dashboard.DynamicConfigValue(id_val="custom.cellOptions", value=style),
        ],
    )
