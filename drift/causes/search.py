"""Where a move comes from: the group that explains most, within it the next, three deep at most."""

from collections.abc import Mapping
from typing import NamedTuple

from drift.causes.cells import WHOLE
from drift.causes.culprit import culprit
from drift.causes.decomposition import Contribution, Move
from drift.causes.frame import Frame
from drift.causes.measure import Measure
from drift.causes.rows import splits_of_rows
from drift.causes.splits import Split
from drift.windows.contents import OTHER
from sinks.clickhouse.database import Database

_DEPTH = 3


class Path(NamedTuple):
    """Each culprit is within the one before; `tried` are the dimensions of the whole, `sampled` the least share of
    the rows that was read on the way.
    """

    culprits: tuple[Contribution, ...]
    tried: tuple[str, ...]
    sampled: float

    @property
    def within(self) -> dict[str, str]:
        """By dimension the values of those that changed themselves."""
        return {one.dimension: one.value for one in self.culprits if one.by_rate}


def search(
    database: Database,
    frame: Frame,
    measure: Measure,
    windows: Mapping[str, Split],
    move: Move,
    *,
    by_rows: bool = True,
) -> Path:
    """`windows` are the splits of the whole that windows tell; what they lack is read from rows.

    Windows are cut by one segment at a time, so that within a group rows are read. A group whose share of the traffic
    changed, and not itself, is not looked into; nor is any unless `by_rows`.
    """
    dimensions = _dimensions(frame)
    splits = {name: split for name, split in windows.items() if name in dimensions}
    records = move.n_before + move.n_after
    lacking = [name for name in dimensions if name not in splits]
    if by_rows and lacking:
        splits |= _of_rows(database, frame, measure, {}, lacking, records)
    tried = tuple(sorted(name for name, split in splits.items() if split.parts))
    within, sampled = dict[str, str](), float(by_rows)
    found: list[Contribution] = []
    while splits:
        sampled = min([sampled, *(split.sampled for split in splits.values())])
        one = culprit(list(splits.values()), frame.question.seed)
        if one is None:
            break
        found.append(one)
        within[one.dimension] = one.value
        if len(found) == _DEPTH or not (one.by_rate and by_rows):
            break
        # What windows know as one may be many: its rows have their own values.
        dimensions = [name for name in dimensions if name != one.dimension or one.value == OTHER]
        records *= one.traffic
        splits = _of_rows(database, frame, measure, within, dimensions, records)
    return Path(tuple(found), tried, sampled)


def _dimensions(frame: Frame) -> list[str]:
    """Those that the question leaves open; values that windows know as one leave theirs."""
    fixed = frame.question.segment if frame.question.segment_value != OTHER else ""
    return [*frame.columns, *(name for name in frame.steady() if name != fixed)]


def _of_rows(
    database: Database,
    frame: Frame,
    measure: Measure,
    within: Mapping[str, str],
    dimensions: list[str],
    expected: float,
) -> dict[str, Split]:
    if not dimensions:
        return {}
    found = splits_of_rows(database, frame, measure, within, dimensions, expected)
    return {name: split for name, split in found.items() if name != WHOLE}
