"""Keeps table `flips`: what is new is compared, and what the newest messages no longer tell is taken out.

A pair is looked at again whenever a score of either trace was stored since the last look, so that an original may come
late; after a change of rules every pair of the period is.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from drift import cursors
from drift.flips.links import NEWEST, STREAM, Link, batches
from drift.flips.outcomes import NO_SCORE, Lines, Score, outcome
from drift.leadership import Term
from drift.rules.choose import rule_for
from drift.rules.records import lines
from drift.rules.series import Series
from drift.settings import RuleSettings
from drift.topics.model import SEGMENT
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

TOGETHER = 500  # pairs whose scores are in memory together
Scores = Mapping[str, Mapping[str, Score]]  # by trace and evaluator


class FlipRow(NamedTuple):
    """Table `flips`."""

    metric: str
    trace_id: str
    app: str
    environment: str
    model: str
    time: datetime
    original_id: str
    techniques: str
    topic: str
    outcome: str
    value: float | None
    original_value: float | None
    is_deleted: int
    version: int


class _Stored(NamedTuple):
    """What the table has of a perturbed trace."""

    original_id: str
    metrics: tuple[str, ...]


def store_pairs(
    database: Database,
    found: Sequence[Link],
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    since: datetime,
    term: Term,
    now: datetime,
) -> int:
    """The table says of the period since then what these links and their scores do, when this returns; pairs looked at.

    `now` is the server's time.
    """
    cursor = f"flips:{_digest(metrics, rules)}"
    looked_ms = cursors.position(database, cursor)
    looked = datetime.fromtimestamp(looked_ms / 1000, UTC) - cursors.INGEST_OVERLAP if looked_ms else None
    stored = _stored(database, since)
    changed = _changed(database, found, stored, looked)
    version = term.next_version()
    for at in range(0, len(changed), TOGETHER):
        some = changed[at : at + TOGETHER]
        database.insert("flips", list(_rows(database, some, stored, metrics, rules, since, version)))
    linked = {link.trace_id for link in found}
    gone = {trace_id: one for trace_id, one in stored.items() if trace_id not in linked}
    database.insert(
        "flips",
        [_gone(metric, trace_id, since, version) for trace_id, one in gone.items() for metric in one.metrics],
    )
    cursors.keep(database, cursor, int(now.timestamp() * 1000))
    return len(changed)


def _digest(metrics: Mapping[str, WatchedMetric], rules: RuleSettings) -> str:
    """Of everything that lines follow from."""
    own = [[name, one.metric.threshold, one.metric.better] for name, one in sorted(metrics.items())]
    said = rules.model_dump(mode="json", include={"overrides", "primary_only"})
    apps = {app: rules.of(app).primary_only for app in rules.apps}
    return hashlib.sha256(json.dumps([own, said, apps], sort_keys=True).encode()).hexdigest()[:16]


def _stored(database: Database, since: datetime) -> dict[str, _Stored]:
    rows = database.rows(
        "SELECT trace_id, any(original_id) AS original, groupArray(toString(metric)) AS metrics "
        "FROM (SELECT trace_id, original_id, metric FROM flips FINAL WHERE time >= {since:DateTime64(3, 'UTC')}) "
        "GROUP BY trace_id",
        {"since": since},
    )
    return {row["trace_id"]: _Stored(row["original"], tuple(row["metrics"])) for row in rows}


def _changed(
    database: Database, found: Sequence[Link], stored: Mapping[str, _Stored], looked: datetime | None
) -> list[Link]:
    """Links that are to be looked at: of which a score was stored since then, or that have another original now."""
    if looked is None:
        return list(found)
    scored = set()
    for some in batches(sorted({one for link in found for one in (link.trace_id, link.original_id)})):
        rows = database.rows(
            f"SELECT DISTINCT trace_id FROM scores WHERE {STREAM} AND ingested_at >= {{since:DateTime64(3, 'UTC')}} "
            f"AND trace_id IN {sql.texts(some)}",
            {"since": looked},
        )
        scored |= {row["trace_id"] for row in rows}
    return [
        link
        for link in found
        if link.trace_id in scored
        or link.original_id in scored
        or (link.trace_id in stored and stored[link.trace_id].original_id != link.original_id)
    ]


def _rows(
    database: Database,
    some: Sequence[Link],
    stored: Mapping[str, _Stored],
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    since: datetime,
    version: int,
) -> Iterator[FlipRow]:
    """Of each link what its scores tell, and the end of what is stored of it and is so no more."""
    for link, told in flips_of(database, some, metrics, rules, version):
        yield from told
        over = set(stored[link.trace_id].metrics if link.trace_id in stored else ()) - {row.metric for row in told}
        yield from (_gone(metric, link.trace_id, since, version) for metric in sorted(over))


def flips_of(
    database: Database,
    some: Sequence[Link],
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    version: int,
) -> Iterator[tuple[Link, list[FlipRow]]]:
    """Each link with a row for each metric that rules watch there; `TOGETHER` of them at most."""
    known = _scores(database, {one for link in some for one in (link.trace_id, link.original_id) if one})
    watched: dict[tuple[str, str, str], dict[str, Lines]] = {}
    for link in some:
        where = (link.app, link.environment, link.model)
        if where not in watched:
            watched[where] = _lines(where, metrics, rules)
        yield link, list(_compared(link, known, watched[where], version))


def _lines(where: tuple[str, str, str], metrics: Mapping[str, WatchedMetric], rules: RuleSettings) -> dict[str, Lines]:
    """Of metrics that rules watch record by record there."""
    app, environment, model = where
    found = {}
    for name, metric in metrics.items():
        rule = rule_for(Series(app, environment, name, model, "", ""), metric, rules)
        if rule is not None and rule.kind != "value":
            found[name] = Lines(**lines(rule))
    return found


def _compared(link: Link, known: Scores, watched: Mapping[str, Lines], version: int) -> Iterator[FlipRow]:
    """Nothing as long as no score of the original is there."""
    here, there = known.get(link.trace_id, {}), known.get(link.original_id, {})
    if not there:
        return
    topic = next((one.topic for one in (*there.values(), *here.values()) if one.topic), "")
    for name, line in watched.items():
        evaluator, _, key = name.partition(".")
        own, original = here.get(evaluator, NO_SCORE), there.get(evaluator, NO_SCORE)
        found = outcome(own, original, key, line)
        if found is not None:
            yield FlipRow(
                name,
                link.trace_id,
                link.app,
                link.environment,
                link.model,
                link.time,
                link.original_id,
                link.techniques,
                topic,
                found,
                own.value(key),
                original.value(key),
                0,
                version,
            )


def _gone(metric: str, trace_id: str, since: datetime, version: int) -> FlipRow:
    return FlipRow(metric, trace_id, "", "", "", since, "", "", "", "", None, None, 1, version)


def _scores(database: Database, ids: Iterable[str]) -> dict[str, dict[str, Score]]:
    """The newest of each trace and evaluator, wherever the trace moved. Read within the minutes of their traces."""
    found: dict[str, dict[str, Score]] = {}
    for some in batches(sorted(ids)):
        times = database.rows(
            f"SELECT min(time) AS first, max(time) AS last, count() AS n FROM traces "
            f"WHERE {STREAM} AND trace_id IN {sql.texts(some)}"
        )[0]
        if not times["n"]:
            continue
        rows = database.rows(
            f"""
            SELECT trace_id, toString(evaluator) AS name, argMax((status, metrics, fingerprint, model,
                segments[{sql.text(SEGMENT)}]), {NEWEST}) AS known
            FROM scores WHERE {STREAM} AND trace_id IN {sql.texts(some)}
                AND time >= {{first:DateTime64(3, 'UTC')}} AND time <= {{last:DateTime64(3, 'UTC')}}
            GROUP BY trace_id, name HAVING NOT argMax(is_deleted, {NEWEST})""",
            {"first": times["first"], "last": times["last"]},
        )
        for row in rows:
            found.setdefault(row["trace_id"], {})[row["name"]] = Score(*row["known"])
    return found
