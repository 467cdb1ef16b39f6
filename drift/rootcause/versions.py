"""Find the model or prompt version that took over when the metric shifted."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from ragtide.drift import sql
from ragtide.drift.rootcause.query import RcaScope
from ragtide.drift.rootcause.slices import Numbers
from ragtide.sinks.clickhouse.database import Database

_MAX_DISTANCE = 5  # base windows between the onset and the change
_CONTEXT = 30  # base windows on either side to measure a change by
_MIN_RISE = 0.2  # in the share of the traffic
_MIN_TRACES = 20  # on either side


class VersionChange(NamedTuple):
    """`after` took over traffic at that time, most of it from `before`; shares are those of `after`."""

    what: Literal["model", "prompt_version"]
    before: str
    after: str
    at: datetime
    share_before: float
    share_after: float


def version_changes(database: Database, scope: RcaScope) -> list[VersionChange]:
    """Find at most one change of the model, and one of the prompt version of the query's model."""
    reach = (_MAX_DISTANCE + _CONTEXT) * scope.base_s
    first = scope.timeline.since - reach
    rows = database.rows(
        f"""
        SELECT at, model, prompt_version, sum(most) AS n FROM (
            SELECT app, toUnixTimestamp(start) AS at, model, prompt_version, max(seen) AS most FROM windows FINAL
            WHERE {scope.query.condition} AND size_s = {scope.base_s}
                AND metric = {sql.text(scope.query.metric_ref.name)} AND segment = ''
                AND start >= toDateTime({first}, 'UTC') AND start < toDateTime({scope.timeline.since + reach}, 'UTC')
            GROUP BY app, at, model, prompt_version
        ) GROUP BY at, model, prompt_version"""
    )
    own = [row for row in rows if scope.query.model in (None, row["model"])]
    found = (_change("model", rows, first, scope.base_s), _change("prompt_version", own, first, scope.base_s))
    return [one for one in found if one is not None]


class Jump(NamedTuple):
    """The step at which column `to` took over, mostly from `from_`, and the shares of `to` before and after."""

    step: int
    from_: int
    to: int
    share_before: float
    share_after: float

    @property
    def rise(self) -> float:
        """Of the share."""
        return self.share_after - self.share_before


def find_jump(counts: Numbers, onset: int) -> Jump | None:
    """Find the largest rise of a column's share near the onset, in counts [steps, columns]; None if it is too small."""
    sums = np.vstack([np.zeros(counts.shape[1]), counts.cumsum(axis=0)])
    found: list[Jump] = []
    for step in range(1, len(counts)):
        before = sums[step] - sums[max(step - _CONTEXT, 0)]
        after = sums[min(step + _CONTEXT, len(counts))] - sums[step]
        if min(before.sum(), after.sum()) >= _MIN_TRACES:
            share_before, share_after = before / before.sum(), after / after.sum()
            rise = share_after - share_before
            to = int(rise.argmax())
            found.append(Jump(step, int(rise.argmin()), to, float(share_before[to]), float(share_after[to])))
    near = [one for one in found if abs(one.step - onset) <= _MAX_DISTANCE]
    best = max(near, key=lambda one: (one.rise, -abs(one.step - onset)), default=None)
    if best is None or best.rise < _MIN_RISE:
        return None
    # The rise of a change at another time shows here too, and is larger there.
    largest_rise = max(one.rise for one in found if abs(one.step - best.step) <= _CONTEXT // 2)
    return best if best.rise >= largest_rise else None


def _change(
    what: Literal["model", "prompt_version"], rows: Sequence[Mapping[str, Any]], first: int, step_s: int
) -> VersionChange | None:
    names = sorted({row[what] for row in rows})
    counts = np.zeros((2 * (_MAX_DISTANCE + _CONTEXT), len(names)))
    for row in rows:
        counts[(row["at"] - first) // step_s, names.index(row[what])] += row["n"]
    if len(names) < 2 or (found := find_jump(counts, _MAX_DISTANCE + _CONTEXT)) is None:
        return None
    at = datetime.fromtimestamp(first + found.step * step_s, UTC)
    return VersionChange(what, names[found.from_], names[found.to], at, found.share_before, found.share_after)
