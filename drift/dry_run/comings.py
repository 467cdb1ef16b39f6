"""When records came of series in the time of a dry run: who was silent for long enough then had been given up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from drift.detectors.series import Integers
from drift.problems.following import REMEMBERED
from drift.problems.gone import is_gone
from drift.rules.series import Series
from drift.windows import sql
from sinks.clickhouse.database import Database


class _Came(NamedTuple):
    """Starts of base windows with records, ascending: of an application's metric, and of each of its series."""

    whole: Integers
    series: Mapping[Series, Integers]


@dataclass(slots=True)
class Comings:
    """Reads base windows that start in [first, end), of an application's metric once, where something was silent."""

    database: Database
    base_s: int
    first: int
    end: int
    _known: dict[tuple[str, str], _Came] = field(default_factory=dict)

    def given_up(self, series: Series, told: datetime, at: datetime, after: timedelta) -> bool:
        """Whether the jobs would have given it up at that moment, trouble of it being told until `told`."""
        if at - told < after:
            return False
        key = (series.app, series.metric)
        if key not in self._known:
            self._known[key] = self._read(*key)
        came = self._known[key]
        nothing = np.empty(0, np.int64)
        own = self._last(came.series.get(series, nothing), at, told)
        return is_gone(own, self._last(came.whole, at, own), at, after, REMEMBERED)

    def _last(self, starts: Integers, at: datetime, least: datetime) -> datetime:
        """The start of the last of these windows that had ended by then; `least` where that is later."""
        ended = int(np.searchsorted(starts, at.timestamp() - self.base_s, side="right"))
        return max(least, datetime.fromtimestamp(int(starts[ended - 1]), UTC)) if ended else least

    def _read(self, app: str, metric: str) -> _Came:
        rows = self.database.rows(
            f"SELECT {', '.join(Series._fields)}, arraySort(groupUniqArray(toUnixTimestamp(start))) AS starts "
            f"FROM windows WHERE run_id = 'live' AND app = {sql.text(app)} AND metric = {sql.text(metric)} "
            f"AND size_s = {self.base_s} AND applicable > 0 AND start >= toDateTime({self.first}, 'UTC') "
            f"AND start < toDateTime({self.end}, 'UTC') GROUP BY {', '.join(Series._fields)}"
        )
        found = {Series(*(row[name] for name in Series._fields)): np.array(row["starts"], np.int64) for row in rows}
        whole = np.unique(np.concatenate(list(found.values()))) if found else np.empty(0, np.int64)
        return _Came(whole, found)
