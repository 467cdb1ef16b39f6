"""Migrate a database to this version's tables; safe to run twice, and from several processes at once."""

import re
from importlib import resources
from importlib.resources.abc import Traversable

from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import RetentionSettings

FOLDER: Traversable = resources.files("ragtide.sinks.clickhouse") / "migrations"
_APPLIED = """
CREATE TABLE IF NOT EXISTS schema_migrations
(
    name String COMMENT 'Name of the schema file',
    applied_at DateTime64(3, 'UTC') DEFAULT now64(3) COMMENT 'When it was applied, UTC'
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY name
COMMENT 'Schema files that `ragtide migrate` has applied.'
"""


def migrate(database: Database, retention: RetentionSettings) -> list[str]:
    """Migrate; return the applied migrations and `ttl:TABLE` of changed retentions. The second time it is empty.

    Every statement of a migration may run twice, so a process that died half-way, or two at once, do no harm.
    """
    database.create()
    database.command(_APPLIED)
    applied = {row["name"] for row in database.rows("SELECT name FROM schema_migrations")}
    done = []
    for name, statements in migrations().items():
        if name in applied:
            continue
        for statement in statements:
            database.command(statement)
        database.command("INSERT INTO schema_migrations (name) SELECT {name:String}", {"name": name})
        done.append(name)
    return done + _retain(database, retention)


def missing(database: Database) -> list[str]:
    """Names of this version's migrations that the database lacks; ConfigError if it does not exist."""
    present = database.rows(
        "SELECT 1 FROM system.tables WHERE database = currentDatabase() AND name = 'schema_migrations'"
    )
    applied = {row["name"] for row in database.rows("SELECT name FROM schema_migrations")} if present else set()
    return [name for name in migrations() if name not in applied]


def migrations() -> dict[str, list[str]]:
    """Statements of each numbered file, in order. A statement ends with a semicolon at the end of a line."""
    names = sorted(entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".sql"))
    return {name.removesuffix(".sql"): _statements((FOLDER / name).read_text()) for name in names}


def _statements(text: str) -> list[str]:
    code = re.sub(r"^\s*--.*\n", "", text, flags=re.MULTILINE)
    return [statement.strip() for statement in re.split(r";[ \t]*(?:\n|$)", code) if statement.strip()]


def _retain(database: Database, retention: RetentionSettings) -> list[str]:
    """Set each table's TTL if it differs."""
    engines = database.rows("SELECT name, engine_full FROM system.tables WHERE database = currentDatabase()")
    current = {row["name"]: row["engine_full"] for row in engines}
    changed = []
    for table, ttl in lifetimes(retention).items():
        if f" TTL {ttl} SETTINGS " not in f"{current[table]} SETTINGS ":
            database.command(f"ALTER TABLE {table} MODIFY TTL {ttl}")
            changed.append(f"ttl:{table}")
    return changed


def lifetimes(retention: RetentionSettings) -> dict[str, str]:
    """TTL of each table that has one, spelt as ClickHouse spells it back."""
    retentions = (retention.traces_days, retention.texts_days, retention.embeddings_days)
    scores, texts, embeddings = (_by_run("time", "ingested_at", days) for days in retentions)
    windows = [
        _by_run("start", "computed_at", retention.windows_minute_days, "size_s < 3600"),
        _by_run("start", "computed_at", retention.windows_hour_days, "size_s >= 3600", "size_s < 86400"),
        _by_run("start", "computed_at", retention.windows_day_days, "size_s >= 86400"),
    ]
    return {
        "traces": scores,
        "scores": scores,
        "flips": f"toDateTime(time) + toIntervalDay({retention.traces_days})",
        "repeated_questions": f"toDateTime(time) + toIntervalDay({retention.traces_days})",
        "trace_texts": texts,
        "explanations": texts,
        "embeddings": embeddings,
        # As long as what they were made of: the middle of a topic tells nearly what its questions do.
        "topic_models": f"toDateTime(fitted_at) + toIntervalDay({retention.embeddings_days})",
        "question_references": f"until + toIntervalDay({retention.embeddings_days})",
        "labels": f"toDateTime(time) + toIntervalDay({retention.labels_days})",
        "windows": ", ".join(windows),
        "expected_levels": f"effective_from + toIntervalDay({retention.windows_minute_days})",
        "verdicts": f"end + toIntervalDay({retention.windows_minute_days})",
        # A mark that comes back because only its taking-back expired costs one idempotent roll-up.
        "dirty_windows": "toDateTime(marked_at) + toIntervalDay(2) WHERE done = 1",
        "budget_leases": "day + toIntervalDay(30)",
        # The first runs are the reference of all later ones, and they hold no text of users.
        "canary_scores": f"toDateTime(run_at) + toIntervalDay({retention.windows_day_days})",
        "progress": "toDateTime(heartbeat_at) + toIntervalDay(30)",
        "job_history": "toDateTime(started_at) + toIntervalDay(30)",
        # Whatever its state: were sent messages to go first, an older row of one might come to light as pending.
        "outbox": f"toDateTime(updated_at) + toIntervalDay({retention.outbox_days})",
        "alerts_posted": f"toDateTime(updated_at) + toIntervalDay({retention.outbox_days})",
        "alert_silences": "toDateTime(ends_at) + toIntervalDay(30)",
        "dead_letters": f"toDateTime(ingested_at) + toIntervalDay({retention.dead_letters_days})",
        "dead_letter_marks": f"toDateTime(at) + toIntervalDay({retention.dead_letters_days})",
    }


def _by_run(event: str, written: str, days: int, *which: str) -> str:
    """TTL of `live` by event time, of other runs by insert time: a replay of old traces stays readable."""
    live, others = _all(*which, "run_id = 'live'"), _all(*which, "run_id != 'live'")
    return (
        f"toDateTime({event}) + toIntervalDay({days}) WHERE {live}, "
        f"toDateTime({written}) + toIntervalDay({days}) WHERE {others}"
    )


def _all(*conditions: str) -> str:
    return conditions[0] if len(conditions) == 1 else " AND ".join(f"({condition})" for condition in conditions)
