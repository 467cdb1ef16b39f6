"""Choose which values of a segment have their own series: listed in settings, or chosen daily from the traffic.

Values chosen for each window would jump, and one series per tenant would be 110,000 rows a minute for 2,000 tenants.
A choice holds from a base window until the next choice; every other value counts as `__other__`.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.leadership import Term
from ragtide.drift.settings import WindowSettings
from ragtide.drift.topics import TOPIC
from ragtide.drift.windows.scope import Scope, WindowKey, batch_scopes
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.errors import STATEMENT_FAILED, describe_failure

logger = logging.getLogger(__name__)
_DAY = timedelta(days=1)
_RETRY_AFTER = timedelta(minutes=10)  # for a segment that no trace had
_MAX_VALUE_BYTES = 512  # a longer value is never chosen
_MAX_BYTES = 32_768  # of a segment's chosen values, which every statement of a roll-up names
_KEEP_FACTOR = 2  # a chosen value stays while its rank is within this many times the number chosen


class Choice(NamedTuple):
    """Table `segment_values`: the values of one segment from a base window on."""

    segment: str
    holds_from: datetime
    values: Sequence[str]
    epoch: int


@dataclass(frozen=True, slots=True)
class SegmentValues:
    """The values of every segment at any time: those listed, or else those chosen.

    The first choice also holds before it was made. `apps` have their own segments in place of `segments`. `omitted`
    values of the newest choices count as `__other__`, since the lists would be too long.
    """

    segments: Mapping[str, Sequence[str]]
    choices: Sequence[Choice] = ()  # by time
    apps: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    omitted: int = 0

    def at(self, start: int, app: str) -> Mapping[str, Sequence[str]]:
        """Return the values by segment for an app's window with this start (seconds since 1970)."""
        current: dict[str, Choice] = {}
        for choice in self.choices:
            if choice.segment not in current or choice.holds_from.timestamp() <= start:
                current[choice.segment] = choice
        segments = self.apps.get(app, self.segments)
        return {name: values or current[name].values for name, values in segments.items() if values or name in current}

    def batch_scopes(
        self, windows: Iterable[WindowKey], size_s: int, others: Sequence[str], limit: int = 100
    ) -> Iterator[tuple[Mapping[str, Sequence[str]], Scope]]:
        """Batch windows into scopes (`scope.batch_scopes`), each with the values that hold in all of it."""
        changes = [int(choice.holds_from.timestamp()) for choice in self.choices]
        groups: dict[tuple[int, str], list[WindowKey]] = {}
        for window in windows:
            own = window.app if window.app in self.apps else ""
            groups.setdefault((sum(change <= window.start for change in changes), own), []).append(window)
        for _, alike in sorted(groups.items()):
            values = self.at(alike[0].start, alike[0].app)
            yield from ((values, scope) for scope in batch_scopes(alike, size_s, others, limit))


def load_segment_values(database: Database, settings: WindowSettings) -> SegmentValues:
    """Load the values as chosen so far."""
    names = _unlisted_segments(settings)
    return _values(settings, _load_choices(database, names) if names else [])


def update_segment_values(database: Database, settings: WindowSettings, term: Term, now: datetime) -> SegmentValues:
    """Return the values, after choosing and storing today's for segments without listed ones.

    A choice holds from the next base window on, so that no window is split in two ways.
    """
    names = _unlisted_segments(settings)
    if not names:
        return _values(settings, [])
    choices = _load_choices(database, names)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    current = {
        choice.segment for choice in choices if choice.holds_from > (today if choice.values else now - _RETRY_AFTER)
    }
    if due := sorted(set(names) - current):
        start = datetime.fromtimestamp((int(now.timestamp()) // settings.base_s + 1) * settings.base_s, UTC)
        chosen = _choose_or_keep(database, due, settings, choices, now)
        made = [Choice(name, start, chosen.get(name, ()), term.epoch) for name in due]
        database.insert("segment_values", made)
        choices += made
    return _values(settings, choices)


def _unlisted_segments(settings: WindowSettings) -> list[str]:
    """Return segments without listed values, of any app."""
    cuts = (settings.segments, *(settings.of(app).segments for app in settings.apps))
    return sorted({name for segments in cuts for name, values in segments.items() if not values})


def _values(settings: WindowSettings, choices: Iterable[Choice]) -> SegmentValues:
    own = {app: settings.of(app).segments for app, said in settings.apps.items() if "segments" in said.model_fields_set}
    some = [choice for choice in choices if choice.values]
    bounded = [choice._replace(values=_truncate(choice.values)) for choice in some]
    newest = {
        choice.segment: len(choice.values) - len(short.values) for choice, short in zip(some, bounded, strict=True)
    }
    return SegmentValues(settings.segments, bounded, own, sum(newest.values()))


def _truncate(values: Iterable[str]) -> list[str]:
    """Keep the first values, which rank highest, as far as statements have room."""
    accepted: list[str] = []
    room = _MAX_BYTES
    for value in values:
        size = len(value.encode())
        if size <= min(room, _MAX_VALUE_BYTES):
            accepted.append(value)
            room -= size
    return accepted


def _load_choices(database: Database, names: Sequence[str]) -> list[Choice]:
    rows = database.rows(
        f"SELECT {', '.join(Choice._fields)} FROM segment_values FINAL WHERE segment IN {sql.texts(names)} "
        "ORDER BY holds_from, segment"
    )
    return [Choice(*(row[name] for name in Choice._fields)) for row in rows]


def _choose_or_keep(
    database: Database, names: Sequence[str], settings: WindowSettings, before: Sequence[Choice], now: datetime
) -> Mapping[str, Sequence[str]]:
    """Choose values by segment; where the server cannot finish the query, return those of the latest choice."""
    try:
        return _choose(database, names, settings, before, now)
    except STATEMENT_FAILED as error:
        database.version()  # raises where it is the server that does not answer
        reason = describe_failure(error)
        logger.warning("values of segments %s could not be chosen, earlier ones stay: %s", ", ".join(names), reason)
        return {choice.segment: choice.values for choice in before}


def _choose(
    database: Database, names: Sequence[str], settings: WindowSettings, before: Sequence[Choice], now: datetime
) -> dict[str, list[str]]:
    """Choose by segment each app's values with the most traces of the last day, and earlier ones that still rank high.

    Segments that no trace had are left out. Topics are stored with the vectors of questions.
    """
    rows = database.rows(
        f"""
        SELECT segment, value, min(rank) AS best, max(rank <= most) AS is_chosen
        FROM (
            SELECT segment, value, {_max_values(settings)} AS most,
                row_number() OVER (PARTITION BY app, environment, segment ORDER BY traces DESC, value) AS rank
            FROM (
                SELECT app, environment, segment, segments[segment] AS value, count() AS traces
                FROM traces ARRAY JOIN {{names:Array(String)}} AS segment
                WHERE run_id = 'live' AND time >= {{since:DateTime64(3, 'UTC')}} AND mapContains(segments, segment)
                    AND length(segments[segment]) <= {_MAX_VALUE_BYTES}
                GROUP BY app, environment, segment, value
                UNION ALL
                SELECT app, environment, {{topic:String}}, topic, count() FROM embeddings
                WHERE has({{names:Array(String)}}, {{topic:String}}) AND run_id = 'live'
                    AND time >= {{since:DateTime64(3, 'UTC')}} AND topic != ''
                GROUP BY app, environment, topic
            ) WHERE {_unlisted_condition(names, settings)}
        )
        WHERE rank <= {_KEEP_FACTOR} * most
        GROUP BY segment, value ORDER BY segment, best, value
        """,
        {"names": names, "topic": TOPIC, "since": now - _DAY},
    )
    last = {choice.segment: set(choice.values) for choice in before}
    chosen: dict[str, list[str]] = {}
    for row in rows:
        if row["is_chosen"] or row["value"] in last.get(row["segment"], ()):
            chosen.setdefault(row["segment"], []).append(row["value"])
    return chosen


def _max_values(settings: WindowSettings) -> str:
    """Expression: how many values to choose for an app."""
    apps = sql.array(map(sql.text, settings.apps), "String")
    mosts = sql.array((str(settings.of(app).segment_values) for app in settings.apps), "UInt32")
    return f"transform(toString(app), {apps}, {mosts}, toUInt32({settings.segment_values}))"


def _unlisted_condition(names: Sequence[str], settings: WindowSettings) -> str:
    """Condition: the app has the segment, without listed values."""
    each = []
    for name in names:
        chosen = [app for app in settings.apps if settings.of(app).segments.get(name) == ()]
        others = [app for app in settings.apps if app not in chosen]
        by_default = settings.segments.get(name) == ()
        apps = f"app NOT IN {sql.texts(others)}" if by_default else f"app IN {sql.texts(chosen)}"
        each.append(f"(segment = {sql.text(name)} AND {apps})")
    return " OR ".join(each)
