"""The chart of a metric around the onset of its problem."""

from datetime import UTC, datetime, timedelta

import pytest

from drift.problems.drawn import Figure, Line
from drift.problems.onset import Point
from stream.cli.problems_chart import drawn

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEAN = Figure("mean", "", "", None)
BELOW = MEAN._replace(line=Line("threshold", 0.7))
FELL = [Point(NOON + timedelta(minutes=minute), 0.9 if minute < 5 else 0.2, 10) for minute in range(11)]


def test_the_fall_the_threshold_and_the_onset_are_where_they_belong() -> None:
    lines = drawn(FELL, NOON + timedelta(minutes=5), BELOW, columns=23, fancy=False)
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
    lines = drawn(FELL, NOON - timedelta(days=1), MEAN, columns, fancy)
    assert lines
    assert max(map(len, lines)) <= columns
    assert fancy or "".join(lines).isascii()


def test_stretches_that_share_a_column_are_their_records_mean() -> None:
    points = [Point(NOON + timedelta(minutes=minute), value, records) for minute, value, records in
              [(0, 0.0, 30), (1, 1.0, 10), (100, 1.0, 10)]]  # fmt: skip
    lines = drawn(points, NOON, MEAN, columns=22, fancy=False)
    assert lines[0].split()[0] == "1"
    assert lines[7].split()[0] == "0.25"


@pytest.mark.parametrize("points", [[], FELL[:1], [Point(NOON, float("nan"), 1), *FELL[:1]]])
def test_too_few_points_are_not_drawn(points: list[Point]) -> None:
    assert drawn(points, NOON, BELOW, columns=80, fancy=True) == []


def test_a_terminal_too_narrow_has_none_and_a_constant_metric_has_one() -> None:
    assert drawn(FELL, NOON, BELOW, columns=15, fancy=True) == []
    level = drawn([point._replace(value=0.7) for point in FELL], NOON, BELOW, columns=80, fancy=True)
    assert level[7].split()[0] == "0.7"
