"""Series that were given up: nothing comes of a model, an environment or a segment while its application goes on."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from drift.rules.series import Series
from drift.windows import sql
from sinks.clickhouse.database import Database


def gone(
    database: Database,
    told: Mapping[Series, datetime],
    closed: datetime,
    after: Callable[[str], timedelta],
    forgotten: timedelta,
    known_until: datetime | None = None,
) -> set[Series]:
    """Those without a record for `after` that their application had on the same metric, or any for `forgotten`.

    `after` depends on the application. `told` says until when trouble of each was told; only of those that were told
    nothing for as long anything is read.
    `closed` is the watermark: where workers stand still nothing is gone. Of windows from `known_until` on nothing is
    known yet.
    """
    silent = {series: until for series, until in told.items() if closed - until >= after(series.app)}
    if not silent:
        return set()
    of_series = newest(database, silent, closed - forgotten, known_until)
    of_app: dict[tuple[str, str], datetime] = {}
    for series, at in of_series.items():
        of_app[series.app, series.metric] = max(at, of_app.get((series.app, series.metric), at))
    found = set()
    for series, until in silent.items():
        own = max(of_series.get(series, until), until)
        goes_on = of_app.get((series.app, series.metric), own)
        if is_gone(own, goes_on, closed, after(series.app), forgotten):
            found.add(series)
    return found


def is_gone(own: datetime, goes_on: datetime, closed: datetime, after: timedelta, forgotten: timedelta) -> bool:
    """Whether a series is that had records last at `own`, and its application on the same metric at `goes_on`."""
    return goes_on - own >= after or closed - own >= forgotten


def newest(
    database: Database, some: Iterable[Series], since: datetime, until: datetime | None = None
) -> dict[Series, datetime]:
    """Of all series of these applications' metrics when the last window with records began, in [since, until)."""
    pairs = sorted({(series.app, series.metric) for series in some})
    listed = ", ".join(f"({sql.text(app)}, {sql.text(metric)})" for app, metric in pairs)
    before = "" if until is None else " AND start < {until:DateTime64(3, 'UTC')}"
    rows = database.rows(
        f"SELECT {', '.join(Series._fields)}, max(start) AS newest FROM windows "
        f"WHERE run_id = 'live' AND (app, metric) IN ({listed}) AND applicable > 0 "
        f"AND start >= {{since:DateTime64(3, 'UTC')}}{before} "
        f"GROUP BY {', '.join(Series._fields)}",
        {"since": since, "until": until},
    )
    return {Series(*(row[name] for name in Series._fields)): row["newest"] for row in rows}
