"""A small chart of the metric around a problem's onset, for a terminal or in plain characters."""

import math
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime

from ragtide.drift.problems import ChartPoint, Problem
from ragtide.drift.rules import ChartSeries

_HEIGHT = 8
_LABEL = 9  # characters left of the field
_WIDEST = 60


def chart(problem: Problem, figure: ChartSeries, points: Sequence[ChartPoint]) -> list[str]:
    """Lines of the chart as wide as the terminal; empty with fewer than two points."""
    encoding = (sys.stdout.encoding or "").lower()
    fancy = sys.stdout.isatty() and encoding.startswith("utf")
    columns = shutil.get_terminal_size().columns
    return render_chart(points, problem.onset, figure, columns, fancy)


def render_chart(
    points: Sequence[ChartPoint], onset: datetime, figure: ChartSeries, columns: int, fancy: bool
) -> list[str]:
    """Lines of at most `columns` characters. A column of the field is an interval, its dot the mean."""
    line = figure.line and figure.line.value
    points = [point for point in points if math.isfinite(point.value)]
    width = min(_WIDEST, columns - _LABEL - 3)
    if len(points) < 2 or width < 10:
        return []
    dot, dash, mark, up = ("•", "╌", "┊", "▲") if fancy else ("*", "-", "|", "^")
    first, last = points[0].start, points[-1].start
    means = _by_column(points, width)
    shown = [*means.values(), *([] if line is None else [line])]
    low, high = min(shown), max(shown)

    def row(value: float) -> int:
        return round((value - low) / (high - low) * (_HEIGHT - 1)) if high > low else 0

    at = min(max(_column(onset, first, last, width), 0), width - 1)
    lines = []
    for level in reversed(range(_HEIGHT)):
        is_line = line is not None and row(line) == level
        field = [mark if column == at else dash if is_line else " " for column in range(width)]
        for column, mean in means.items():
            if row(mean) == level:
                field[column] = dot
        label = line if is_line else high if level == _HEIGHT - 1 else low if level == 0 else None
        lines.append(f"{'' if label is None else f'{label:.3g}':>{_LABEL}} {''.join(field)}".rstrip())
    lines.append(f"{'':{_LABEL}} {'':{at}}{up}")
    line_label = "" if figure.line is None else f", {dash} {figure.line.name}"
    legend = f"{dot} {figure.name}, {up} onset {onset:%Y-%m-%d %H:%M}{line_label}"
    return [*lines, *(f"  {text}"[:columns] for text in (f"{first:%m-%d %H:%M} to {last:%m-%d %H:%M} UTC", legend))]


def _by_column(points: Sequence[ChartPoint], width: int) -> dict[int, float]:
    """Means over records of the points that share a column."""
    first, last = points[0].start, points[-1].start
    shared: dict[int, list[ChartPoint]] = {}
    for point in points:
        shared.setdefault(_column(point.start, first, last, width), []).append(point)
    return {
        column: sum(one.value * one.records for one in found) / sum(one.records for one in found)
        for column, found in shared.items()
    }


def _column(at: datetime, first: datetime, last: datetime, width: int) -> int:
    return int((at - first) / (last - first) * (width - 1) + 0.5)
