"""Read what a running system stored: scores, windows, problems and insights, as Arrow or pandas. It writes nothing."""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self

from ragtide.drift.jobs import server_time
from ragtide.drift.windows import MINUTE_S, WHOLE_MINUTES
from ragtide.evaluators import registry
from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.settings import EvaluatorSettings
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.rows import LIVE
from ragtide.stream.api import stored_sql as sql
from ragtide.stream.api.effective_settings import NO_CHANGES, Changes, connection_settings
from ragtide.stream.api.stored_rows import CutWarning, StoredRows, read_stream
from ragtide.stream.known_names import known_apps, known_insight_types, known_metrics, nearest_of, stored_metrics

LIMIT = 100_000
STATES = ("pending", "open", "resolved")
VERDICTS = ("thumbs", "score")
Names = Sequence[str] | str
Time = datetime | str
_DAY = timedelta(days=1)
_MOST_DAYS = 3650


class _Range(NamedTuple):
    """[start, end); None: without bound."""

    start: datetime | None
    end: datetime | None

    @property
    def settings(self) -> Mapping[str, int]:
        """Settings of a statement that reads this range."""
        whole = all(time is None or time.timestamp() % MINUTE_S == 0 for time in self)
        return WHOLE_MINUTES if whole else {}


def connect(config: str | os.PathLike[str] | None = None, *, settings: Changes = NO_CHANGES) -> "Connection":
    """Connect to the ClickHouse of a running system, by the settings of the section `clickhouse`.

    They are read as commands read them: `config`, else RAGTIDE_CONFIG, else ./ragtide.toml; RAGTIDE_ variables on top,
    and `settings` over all: `{"clickhouse": {"url": "https://..."}}`. Raises `ConfigError` for a setting that is wrong,
    and if pyarrow is not installed; a server that is away raises `Transient` at the first read.
    """
    read_stream(b"")
    chosen = connection_settings(config, settings)
    return Connection(Database(chosen.clickhouse), chosen.evaluators)


class Connection:
    """Reads rows of a system. Usable from several threads; `close` it, or use it in a `with` statement.

    Every method takes names as in the tables, and times as aware datetimes or RFC 3339 texts; a range is
    [`start`, `end`). An unknown application, metric or type is a `ConfigError` with the nearest name, never an empty
    result. At most `limit` rows are returned, the newest first; `StoredRows.is_cut`, and a `CutWarning`, say that there
    are more.
    """

    def __init__(self, database: Database, evaluators: EvaluatorSettings) -> None:
        self._database = database
        self._evaluators = evaluators

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the connections; any use afterwards is an error."""
        self._database.close()

    def scores(
        self,
        app: Names = (),
        *,
        metrics: Names = (),
        environment: Names = (),
        start: Time | None = None,
        end: Time | None = None,
        run: str = LIVE,
        limit: int = LIMIT,
    ) -> StoredRows:
        """Read scores by event time: a row per trace and metric, and one for each evaluator that gave no score.

        `metrics` names metrics or evaluators. `run` is the name of a replay, or `live`. Without `start`, the last day.
        A `value` is null where there is no score; `status` and `reason` say why.
        """
        between = self._range(start, end, default=_DAY)
        filters = {"apps": _names(app), "environments": _names(environment), "metrics": _names(metrics), "run": run}
        return self._rows("scores", sql.scores(filters, between.start, between.end), filters, between, limit)

    def windows(
        self,
        app: Names = (),
        *,
        metrics: Names = (),
        environment: Names = (),
        size_s: int = 3600,
        segment: str = "",
        start: Time | None = None,
        end: Time | None = None,
        run: str = LIVE,
        limit: int = LIMIT,
    ) -> StoredRows:
        """Read closed windows of `size_s` seconds that start in the range, with coverage: a row per window and metric.

        `segment` is the name of a segment, such as tenant; empty: windows of all traces. Without `start`, the last day.
        `mean` is null for metrics of a whole window, which have a `value` instead.
        """
        between = self._range(start, end, default=_DAY)
        filters: dict[str, Any] = {"apps": _names(app), "environments": _names(environment), "metrics": _names(metrics)}
        filters |= {"run": run, "size_s": size_s, "segment": segment}
        filters["combined"] = [id for id, one in registry.load(self._evaluators).items() if one.combine is not None]
        return self._rows("windows", sql.windows(filters, between.start, between.end), filters, between, limit)

    def people(
        self,
        metrics: Names,
        app: Names = (),
        *,
        verdict: str = "thumbs",
        environment: Names = (),
        days: int = 7,
        start: Time | None = None,
        end: Time | None = None,
        run: str = LIVE,
        limit: int = LIMIT,
    ) -> StoredRows:
        """Estimate what people would say of all answers: a row per metric and interval of `days` days with labels.

        It rests on labels of a sample (`ragtide labels sample`), and on the scores of `metrics` as companion.
        `verdict` is thumbs (`estimate` is the share of thumbs up) or score (the mean of people's scores). The ends of
        the 95 % interval are null below 50 labels. `coverage` is about 1 if all that was drawn is labelled. Without
        `start`, the last 30 days.
        """
        if verdict not in VERDICTS:
            raise ConfigError(f"verdict: there is no {verdict!r}; {nearest_of(verdict, VERDICTS)}")
        if not 1 <= days <= _MOST_DAYS:
            raise ConfigError(f"days is {days}; it must be from 1 to {_MOST_DAYS}")
        if not _names(metrics):
            raise ConfigError("metrics is empty; name metrics or evaluators, such as faithfulness")
        between = self._range(start, end, default=30 * _DAY)
        filters: dict[str, Any] = {"apps": _names(app), "environments": _names(environment), "metrics": _names(metrics)}
        filters |= {"run": run, "days": days}
        return self._rows("people", sql.people(filters, verdict, between.start, between.end), filters, between, limit)

    def problems(
        self,
        app: Names = (),
        *,
        metrics: Names = (),
        environment: Names = (),
        states: Names = ("open", "resolved"),
        start: Time | None = None,
        end: Time | None = None,
        limit: int = LIMIT,
    ) -> StoredRows:
        """Read episodes of problems in these states (pending, open, resolved) that were seen in the range.

        Without `start`, all. `attributes` and `cause` are JSON.
        """
        between = self._range(start, end, default=None)
        filters = {"apps": _names(app), "environments": _names(environment), "metrics": _names(metrics)}
        filters["states"] = _names(states)
        for state in filters["states"]:
            if state not in STATES:
                raise ConfigError(f"states: there is no {state!r}; {nearest_of(state, STATES)}")
        return self._rows("problems", sql.problems(filters, between.start, between.end), filters, between, limit)

    def insights(
        self,
        app: Names = (),
        *,
        types: Names = (),
        environment: Names = (),
        start: Time | None = None,
        end: Time | None = None,
        limit: int = LIMIT,
    ) -> StoredRows:
        """Read insights of periods that overlap the range. Without `start`, the last day. `attributes` is JSON."""
        between = self._range(start, end, default=_DAY)
        filters = {"apps": _names(app), "environments": _names(environment), "types": _names(types)}
        return self._rows("insights", sql.insights(filters, between.start, between.end), filters, between, limit)

    def _range(self, start: Time | None, end: Time | None, default: timedelta | None) -> _Range:
        until = _time("end", end)
        since = _time("start", start)
        if since is None and default is not None:
            since = (until or server_time(self._database)) - default
            since = since.replace(second=0, microsecond=0)
        if since is not None and until is not None and since >= until:
            raise ConfigError(f"start {since.isoformat()} must lie before end {until.isoformat()}")
        return _Range(since, until)

    def _rows(self, what: str, statement: str, filters: Mapping[str, Any], between: _Range, limit: int) -> StoredRows:
        if limit < 1:
            raise ConfigError(f"limit is {limit}; it must be at least 1")
        bound = {name: value for name, value in filters.items() if value or name in ("segment", "combined")}
        bound |= {name: value for name, value in between._asdict().items() if value is not None}
        bound["limit"] = limit + 1
        found = read_stream(self._database.arrow(statement, bound, {**between.settings, "readonly": 2}))
        if not found.num_rows:
            self._check_names(filters)
        rows = StoredRows(what, found.slice(0, limit), limit, is_cut=found.num_rows > limit)
        if rows.is_cut:
            warnings.warn(f"{what}: only the newest {limit:,} rows; narrow the filters or raise limit", CutWarning, 3)
        return rows

    def _check_names(self, filters: Mapping[str, Any]) -> None:
        """Raise `ConfigError` for a name that nothing has."""
        known: dict[str, Callable[[], Iterable[str]]] = {
            "apps": lambda: known_apps(self._database),
            "metrics": lambda: [*known_metrics(self._evaluators), *stored_metrics(self._database)],
            "types": lambda: known_insight_types(self._database),
        }
        for option, names in known.items():
            if wanted := filters.get(option):
                valid = sorted({*names()})
                if unknown := next((name for name in wanted if name not in valid), None):
                    raise ConfigError(f"{option}: there is no {unknown!r}; {nearest_of(unknown, valid)}")


def _names(names: Names) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _time(name: str, value: Time | None) -> datetime | None:
    """An aware time; a date alone is midnight UTC."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            raise ConfigError(f"{name}: {value!r} is not a time; e.g. 2026-03-01 or 2026-03-01T12:00:00Z") from None
        value = time.replace(tzinfo=UTC) if time.tzinfo is None and len(value) <= len("2026-03-01") else time
    if value.tzinfo is None:
        raise ConfigError(f"{name}: {value.isoformat()} has no offset; e.g. 2026-03-01T12:00:00Z")
    return value.astimezone(UTC)
