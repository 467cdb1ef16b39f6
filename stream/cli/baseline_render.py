"""Baselines in the terminal: a line per hour, with bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ragtide.stream.console import PlainTable, plain_console, plain_text

if TYPE_CHECKING:
    from ragtide.drift.anomalies import BaselineView, ChannelView

_BAR = 24  # characters of the widest
_PARTS = " ▏▎▍▌▋▊▉█"


def draw(found: "Sequence[BaselineView]") -> None:
    """Print the baseline of each series."""
    console = plain_console()
    for one in found:
        for line in _about(one):
            console.print(line)
        for channel in () if one.warming else one.channels:
            console.print(_table(channel, bars=console.is_terminal))
            if channel.moments:
                console.print(_time_slots(channel, bars=console.is_terminal))


def _about(one: "BaselineView") -> list[str]:
    lines = [f"{one.series.label}: {one.series.metric}"]
    if one.warming:
        until = f"; looked at again {one.warm_at:%Y-%m-%d %H:%M} UTC" if one.warm_at is not None else ""
        return [*lines, f"  warming up: {one.warming}{until}"]
    lines.append(f"  rests on {one.rests_on}, learned {one.learned_at:%Y-%m-%d %H:%M} UTC")
    lines.append(f"  {one.records:.0f} records in a usual figure")
    lines += [f"  warming up: {one.not_judged}"] if one.not_judged else []
    return [*lines, *(["  in alarm now"] if one.in_alarm else [])]


def _table(channel: "ChannelView", *, bars: bool) -> PlainTable:
    """Table of hours. Values off by more than three spreads are marked."""
    title = f"{channel.name} ± {channel.spread:.3g}"
    table = PlainTable(title=title, title_justify="left")
    for column in ("hour", *(one.days for one in channel.usual), "last day", *([""] if bars else [])):
        table.add_column(column, no_wrap=True, justify="left" if column in ("hour", "") else "right")
    low, high = _range(channel)
    usual = [one.level for one in channel.usual]
    for hour, (last, *levels) in enumerate(zip(channel.last_day, *usual, strict=True)):
        far = last is not None and all(abs(last - level) > 3 * channel.spread for level in levels)
        text = "" if last is None else f"{last:.4g}{'!' if far else ' '}"
        last_cell = plain_text(text, style="bold red" if far else "")
        bar = [_bar(levels[0], low, high)] if bars else []
        table.add_row(f"{hour:02}", *(f"{level:.4g}" for level in levels), last_cell, *bar)
    return table


def _time_slots(channel: "ChannelView", *, bars: bool) -> PlainTable:
    """Usual values of time slots that differ from the rest of their hour, on the scale of the table of hours."""
    table = PlainTable()
    for column in ("unlike its hour", "", "usual", *([""] if bars else [])):
        table.add_column(column, no_wrap=True, justify="right" if column == "usual" else "left")
    low, high = _range(channel)
    for one in channel.moments:
        bar = [_bar(one.level, low, high)] if bars else []
        table.add_row(one.days, f"{one.since}-{one.until}", f"{one.level:.4g}", *bar)
    return table


def _range(channel: "ChannelView") -> tuple[float, float]:
    """Minimum and maximum of all values in the chart."""
    hours = (*(one.level for one in channel.usual), channel.last_day)
    values = [value for level in hours for value in level if value is not None]
    values += [one.level for one in channel.moments]
    return min(values), max(values)


def _bar(value: float, low: float, high: float) -> str:
    eighths = round((value - low) / (high - low) * _BAR * 8) if high > low else _BAR * 4
    return "█" * (eighths // 8) + _PARTS[eighths % 8].strip()
