"""How long windows, and the rows that they are made of, are there: what has been deleted must not be added up again."""

from dataclasses import dataclass
from datetime import datetime

from drift.windows.scope import WindowKey
from sinks.rows import LIVE
from sinks.settings import RetentionSettings

_DAY = 86400


@dataclass(frozen=True, slots=True)
class Kept:
    """What is still there at the time `now`. Other runs than live are kept from when they were written."""

    retention: RetentionSettings
    now: datetime

    def scores(self, window: WindowKey) -> bool:
        """Whether all rows that any window around this one is made of are there."""
        return self._since(window, self.retention.traces_days)

    def windows(self, window: WindowKey, size_s: int) -> bool:
        """Whether all windows of that size inside this one are there."""
        return self._since(window, self.retention.windows_days(size_s))

    def _since(self, window: WindowKey, days: int) -> bool:
        """By whole days, so that every window stands on one side with all that it is made of."""
        first = (int(self.now.timestamp()) // _DAY - days + 1) * _DAY
        return window.run_id != LIVE or window.start >= first
