"""Compare perturbed traces with their originals and keep table `flips` up to date.

A pair is compared again whenever a score of either trace was stored since the last run, so an original may come late;
after a change of rules every pair of the lookback is. Rows that newer messages contradict are marked as deleted."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from ragtide.drift import cursors, sql
from ragtide.drift.leadership import Term
from ragtide.drift.robustness.perturbation_links import NEWEST, STREAM, PerturbationLink, id_batches
from ragtide.drift.rules import Series, bound_parameters, rule_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.topics import TOPIC
from ragtide.drift.windows import MetricRef
from ragtide.sinks.clickhouse.database import Database

FlipOutcome = Literal["same", "worse", "better", "unknown"]


class Bounds(NamedTuple):
    """Bounds of good records; a record equal to one is good."""

    least: float
    greatest: float

    def contains(self, value: float) -> bool:
        """Tell whether the record is good."""
        return self.least <= value <= self.greatest


class Score(NamedTuple):
    """Score of a trace by one evaluator, its version, and the model that answered."""

    status: str
    metrics: Mapping[str, float]
    fingerprint: str
    model: str
    topic: str = ""

    def value(self, key: str) -> float | None:
        """Return the value of a metric; None if there is none."""
        return self.metrics.get(key) if self.status == "scored" else None


NO_SCORE = Score("absent", {}, "", "")


def flip_outcome(perturbed: Score, original: Score, key: str, bounds: Bounds) -> FlipOutcome | None:
    """Compare a perturbed trace with its original; None if neither has the metric.

    Unknown: one of the two has no value, or failed, or their models or versions of the evaluator differ.
    """
    value, before = perturbed.value(key), original.value(key)
    if value is None and before is None:
        return "unknown" if "failed" in (perturbed.status, original.status) else None
    if value is None or before is None or perturbed[2:4] != original[2:4]:
        return "unknown"
    passes, passed = bounds.contains(value), bounds.contains(before)
    if passes == passed:
        return "same"
    return "better" if passes else "worse"


PAIRS_PER_BATCH = 500  # pairs whose scores are in memory together
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


class _StoredPair(NamedTuple):
    """Rows of a perturbed trace that the table has."""

    original_id: str
    metrics: tuple[str, ...]


def store_pairs(
    database: Database,
    found: Sequence[PerturbationLink],
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    since: datetime,
    term: Term,
    now: datetime,
) -> int:
    """Bring the table up to date with these links and their scores since then; return the number of pairs compared.

    `now` is the server's time.
    """
    cursor = f"flips:{_digest(metrics, rules)}"
    scored_since_ms = cursors.load(database, cursor)
    scored_since = (
        datetime.fromtimestamp(scored_since_ms / 1000, UTC) - cursors.INGEST_OVERLAP if scored_since_ms else None
    )
    stored = _stored_pairs(database, since)
    changed = _changed_links(database, found, stored, scored_since)
    version = term.next_version()
    for at in range(0, len(changed), PAIRS_PER_BATCH):
        some = changed[at : at + PAIRS_PER_BATCH]
        database.insert("flips", list(_changed_rows(database, some, stored, metrics, rules, since, version)))
    linked = {link.trace_id for link in found}
    gone = {trace_id: one for trace_id, one in stored.items() if trace_id not in linked}
    database.insert(
        "flips",
        [_tombstone(metric, trace_id, since, version) for trace_id, one in gone.items() for metric in one.metrics],
    )
    cursors.save(database, cursor, int(now.timestamp() * 1000))
    return len(changed)


def _digest(metrics: Mapping[str, MetricRef], rules: RuleSettings) -> str:
    """Return a digest of everything that bounds follow from."""
    own = [[name, one.metric.threshold, one.metric.better] for name, one in sorted(metrics.items())]
    said = rules.model_dump(mode="json", include={"overrides", "primary_only"})
    apps = {app: rules.of(app).primary_only for app in rules.apps}
    return hashlib.sha256(json.dumps([own, said, apps], sort_keys=True).encode()).hexdigest()[:16]


def _stored_pairs(database: Database, since: datetime) -> dict[str, _StoredPair]:
    rows = database.rows(
        "SELECT trace_id, any(original_id) AS original, groupArray(toString(metric)) AS metrics "
        "FROM (SELECT trace_id, original_id, metric FROM flips FINAL WHERE time >= {since:DateTime64(3, 'UTC')}) "
        "GROUP BY trace_id",
        {"since": since},
    )
    return {row["trace_id"]: _StoredPair(row["original"], tuple(row["metrics"])) for row in rows}


def _changed_links(
    database: Database,
    found: Sequence[PerturbationLink],
    stored: Mapping[str, _StoredPair],
    scored_since: datetime | None,
) -> list[PerturbationLink]:
    """Select links with a score stored since then, or with another original than before."""
    if scored_since is None:
        return list(found)
    scored = set()
    for some in id_batches(sorted({one for link in found for one in (link.trace_id, link.original_id)})):
        rows = database.rows(
            f"SELECT DISTINCT trace_id FROM scores WHERE {STREAM} AND ingested_at >= {{since:DateTime64(3, 'UTC')}} "
            f"AND trace_id IN {sql.texts(some)}",
            {"since": scored_since},
        )
        scored |= {row["trace_id"] for row in rows}
    return [
        link
        for link in found
        if link.trace_id in scored
        or link.original_id in scored
        or (link.trace_id in stored and stored[link.trace_id].original_id != link.original_id)
    ]


def _changed_rows(
    database: Database,
    some: Sequence[PerturbationLink],
    stored: Mapping[str, _StoredPair],
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    since: datetime,
    version: int,
) -> Iterator[FlipRow]:
    """Make the rows of each link, and tombstones of its rows that no longer hold."""
    for link, rows in flip_rows(database, some, metrics, rules, version):
        yield from rows
        over = set(stored[link.trace_id].metrics if link.trace_id in stored else ()) - {row.metric for row in rows}
        yield from (_tombstone(metric, link.trace_id, since, version) for metric in sorted(over))


def flip_rows(
    database: Database,
    some: Sequence[PerturbationLink],
    metrics: Mapping[str, MetricRef],
    rules: RuleSettings,
    version: int,
) -> Iterator[tuple[PerturbationLink, list[FlipRow]]]:
    """Make the rows of each link, one for each metric with a rule; at most `PAIRS_PER_BATCH` links."""
    known = _scores(database, {one for link in some for one in (link.trace_id, link.original_id) if one})
    watched: dict[tuple[str, str, str], dict[str, Bounds]] = {}
    for link in some:
        where = (link.app, link.environment, link.model)
        if where not in watched:
            watched[where] = _bounds(where, metrics, rules)
        yield link, list(_compare(link, known, watched[where], version))


def _bounds(where: tuple[str, str, str], metrics: Mapping[str, MetricRef], rules: RuleSettings) -> dict[str, Bounds]:
    """Return the bounds of metrics whose rules evaluate single records."""
    app, environment, model = where
    found = {}
    for name, metric in metrics.items():
        rule = rule_for(Series(app, environment, name, model, "", ""), metric, rules)
        if rule is not None and rule.kind.per_record:
            found[name] = Bounds(**bound_parameters(rule))
    return found


def _compare(link: PerturbationLink, known: Scores, watched: Mapping[str, Bounds], version: int) -> Iterator[FlipRow]:
    """Compare the scores of a pair; nothing until the original has scores."""
    here, there = known.get(link.trace_id, {}), known.get(link.original_id, {})
    if not there:
        return
    topic = next((one.topic for one in (*there.values(), *here.values()) if one.topic), "")
    for name, line in watched.items():
        evaluator, _, key = name.partition(".")
        own, original = here.get(evaluator, NO_SCORE), there.get(evaluator, NO_SCORE)
        found = flip_outcome(own, original, key, line)
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


def _tombstone(metric: str, trace_id: str, since: datetime, version: int) -> FlipRow:
    return FlipRow(metric, trace_id, "", "", "", since, "", "", "", "", None, None, 1, version)


def _scores(database: Database, ids: Iterable[str]) -> dict[str, dict[str, Score]]:
    """Load the newest score of each trace and evaluator, wherever the trace moved, within the minutes of the traces."""
    found: dict[str, dict[str, Score]] = {}
    for some in id_batches(sorted(ids)):
        times = database.rows(
            f"SELECT min(time) AS first, max(time) AS last, count() AS n FROM traces "
            f"WHERE {STREAM} AND trace_id IN {sql.texts(some)}"
        )[0]
        if not times["n"]:
            continue
        rows = database.rows(
            f"""
            SELECT trace_id, toString(evaluator) AS name, argMax((status, metrics, fingerprint, model,
                segments[{sql.text(TOPIC)}]), {NEWEST}) AS known
            FROM scores WHERE {STREAM} AND trace_id IN {sql.texts(some)}
                AND time >= {{first:DateTime64(3, 'UTC')}} AND time <= {{last:DateTime64(3, 'UTC')}}
            GROUP BY trace_id, name HAVING NOT argMax(is_deleted, {NEWEST})""",
            {"first": times["first"], "last": times["last"]},
        )
        for row in rows:
            found.setdefault(row["trace_id"], {})[row["name"]] = Score(*row["known"])
    return found
