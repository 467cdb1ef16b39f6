"""The chart of a metric around the onset of its problem."""

from datetime import UTC, datetime, timedelta

import pytest

from ragtide.drift.problems.chart import ChartPoint
from ragtide.drift.rules.model import ChartSeries, ReferenceLine
from ragtide.stream.cli.problems_chart import render_chart

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEAN = ChartSeries("mean", "", "", None)
BELOW = MEAN._replace(line=ReferenceLine("threshold", 0.7))
FELL = [ChartPoint(NOON + timedelta(minutes=minute), 0.9 if minute < 5 else 0.2, 10) for minute in range(11)]


def test_the_fall_the_threshold_and_the_onset_are_where_they_belong() -> None:
    lines = render_chart(FELL, NOON + timedelta(minutes=5), BELOW, columns=23, fancy=False)
    assert lines == [
        "      0.9 *****|",  # 23 columns less 12 for labels: one column a minute
        "          " + "     |",
        "      0.7 -----|-----",
        "          " + "     |",
        "          " + "     |",
        "          " + "     |",
        "          " + "     |",
        "      0.2      ******",
        "               ^",
        "  03-01 12:00 to 03-01 ",
        "  * mean, ^ onset 2026-",
    ]


@pytest.mark.parametrize("columns", [22, 40, 80, 200])
@pytest.mark.parametrize("fancy", [True, False])
def test_no_line_is_wider_than_the_terminal(columns: int, fancy: bool) -> None:
    lines = render_chart(FELL, NOON - timedelta(days=1), MEAN, columns, fancy)
    assert lines
    assert max(map(len, lines)) <= columns
    assert fancy or "".join(lines).isascii()


def test_stretches_that_share_a_column_are_their_records_mean() -> None:
    points = [ChartPoint(NOON + timedelta(minutes=minute), value, records) for minute, value, records in
              [(0, 0.0, 30), (1, 1.0, 10), (100, 1.0, 10)]]  # fmt: skip
    lines = render_chart(points, NOON, MEAN, columns=22, fancy=False)
    assert lines[0].split()[0] == "1"
    assert lines[7].split()[0] == "0.25"


@pytest.mark.parametrize("points", [[], FELL[:1], [ChartPoint(NOON, float("nan"), 1), *FELL[:1]]])
def test_too_few_points_are_not_drawn(points: list[ChartPoint]) -> None:
    assert render_chart(points, NOON, BELOW, columns=80, fancy=True) == []


def test_a_terminal_too_narrow_has_none_and_a_constant_metric_has_one() -> None:
    assert render_chart(FELL, NOON, BELOW, columns=15, fancy=True) == []
    level = render_chart([point._replace(value=0.7) for point in FELL], NOON, BELOW, columns=80, fancy=True)
    assert level[7].split()[0] == "0.7"
