"""Whether another model or prompt version took over as the metric moved: which, when, of how much of the traffic."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import numpy as np

from drift.causes.frame import Frame
from drift.causes.splits import Numbers
from drift.windows import sql
from sinks.clickhouse.database import Database

_NEAR = 5  # base windows between the onset and the change
_AROUND = 30  # base windows on either side by which a change is told
_LEAST_RISE = 0.2  # in the share of the traffic
_LEAST_TRACES = 20  # on either side


class VersionChange(NamedTuple):
    """`after` took traffic over at that time, most of it from `before`; shares are those of `after`."""

    what: Literal["model", "prompt_version"]
    before: str
    after: str
    at: datetime
    share_before: float
    share_after: float


def version_changes(database: Database, frame: Frame) -> list[VersionChange]:
    """At most one of the models that were served, and one of the prompt versions of the question's model."""
    reach = (_NEAR + _AROUND) * frame.base_s
    first = frame.time.since - reach
    app = "" if frame.question.app is None else f"AND app = {sql.text(frame.question.app)}"
    rows = database.rows(
        f"""
        SELECT at, model, prompt_version, sum(most) AS n FROM (
            SELECT app, toUnixTimestamp(start) AS at, model, prompt_version, max(seen) AS most FROM windows FINAL
            WHERE run_id = 'live' AND environment = {{environment:String}} {app} AND size_s = {frame.base_s}
                AND metric = {{metric:String}} AND segment = ''
                AND start >= toDateTime({first}, 'UTC') AND start < toDateTime({frame.time.since + reach}, 'UTC')
            GROUP BY app, at, model, prompt_version
        ) GROUP BY at, model, prompt_version""",
        {"environment": frame.question.environment, "metric": frame.question.watched.name},
    )
    own = [row for row in rows if frame.question.model in (None, row["model"])]
    found = (_change("model", rows, first, frame.base_s), _change("prompt_version", own, first, frame.base_s))
    return [one for one in found if one is not None]


class Jump(NamedTuple):
    """Before which step the column `to` took over, most of it from `from_`, and its shares before and after."""

    step: int
    from_: int
    to: int
    share_before: float
    share_after: float

    @property
    def rise(self) -> float:
        """Of the share."""
        return self.share_after - self.share_before


def jump(counts: Numbers, onset: int) -> Jump | None:
    """The greatest rise of a column's share near the onset, in counts [steps, columns]; None where none rose enough."""
    sums = np.vstack([np.zeros(counts.shape[1]), counts.cumsum(axis=0)])
    found: list[Jump] = []
    for step in range(1, len(counts)):
        before = sums[step] - sums[max(step - _AROUND, 0)]
        after = sums[min(step + _AROUND, len(counts))] - sums[step]
        if min(before.sum(), after.sum()) >= _LEAST_TRACES:
            share_before, share_after = before / before.sum(), after / after.sum()
            rise = share_after - share_before
            to = int(rise.argmax())
            found.append(Jump(step, int(rise.argmin()), to, float(share_before[to]), float(share_after[to])))
    near = [one for one in found if abs(one.step - onset) <= _NEAR]
    best = max(near, key=lambda one: (one.rise, -abs(one.step - onset)), default=None)
    if best is None or best.rise < _LEAST_RISE:
        return None
    # A change at another time is seen from here as well, and is greater there.
    around = max(one.rise for one in found if abs(one.step - best.step) <= _AROUND // 2)
    return best if best.rise >= around else None


def _change(
    what: Literal["model", "prompt_version"], rows: Iterable[Mapping[str, Any]], first: int, step_s: int
) -> VersionChange | None:
    rows = list(rows)
    names = sorted({row[what] for row in rows})
    counts = np.zeros((2 * (_NEAR + _AROUND), len(names)))
    for row in rows:
        counts[(row["at"] - first) // step_s, names.index(row[what])] += row["n"]
    if len(names) < 2 or (found := jump(counts, _NEAR + _AROUND)) is None:
        return None
    at = datetime.fromtimestamp(first + found.step * step_s, UTC)
    return VersionChange(what, names[found.from_], names[found.to], at, found.share_before, found.share_after)
