"""Windows as they are stored, to hold against the ledger's."""

from datetime import UTC, datetime

from ragtide.sinks.clickhouse.database import Database
from tests.chaos.ledger import Expected


def stored_windows(database: Database) -> dict[tuple[str, datetime, str], Expected]:
    """(app, minute, metric) to what its window holds; windows without a scored record are left out."""
    sql = """
        SELECT app, metric, start, sum(windows.seen) AS seen, sum(windows.scored) AS scored, sum(windows.sum) AS total
        FROM windows FINAL
        WHERE run_id = 'live' AND size_s = 60 AND segment = ''
          AND metric IN ('operations.latency_seconds', 'inputs.answer_words')
        GROUP BY app, metric, start HAVING scored > 0
    """
    return {
        (row["app"], row["start"].replace(tzinfo=UTC), row["metric"]): Expected(
            int(row["seen"]), int(row["scored"]), float(row["total"])
        )
        for row in database.rows(sql)
    }
