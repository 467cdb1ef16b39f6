"""Texts of retrieved chunks that are stored, to learn from."""

from datetime import datetime

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database


def load_chunk_texts(database: Database, app: str, since: datetime, limit: int) -> list[str]:
    """Load the different texts of the newest `limit` chunks of an application's live traces since then.

    Raises `ConfigError` if none is stored.
    """
    rows = database.rows(
        "SELECT DISTINCT text FROM (SELECT arrayJoin(chunks) AS text FROM trace_texts FINAL "
        "WHERE run_id = 'live' AND app = {app:String} AND time >= {since:DateTime64(3, 'UTC')} AND notEmpty(chunks) "
        "ORDER BY time DESC LIMIT {limit:UInt64}) WHERE text != ''",
        {"app": app, "since": since, "limit": limit},
    )
    if not rows:
        raise ConfigError(
            f"no text of a chunk of {app} is stored since {since:%Y-%m-%d %H:%M} UTC: check the name, "
            "privacy.store_texts and retention.texts_days, or choose more days"
        )
    return [row["text"] for row in rows]
