"""Find the insights that a channel announces, and store a message in table `outbox` for each."""

from datetime import datetime, timedelta
from typing import Any

from ragtide.drift.insights import InsightRow
from ragtide.drift.notify import outbox
from ragtide.drift.notify.channel import InsightChannel
from ragtide.drift.notify.outbox import Message
from ragtide.sinks.clickhouse.database import Database

MAX_AGE = timedelta(days=7)  # a target that is configured later gets no older ones
SUFFIX = "insight"  # of a message's subject, where a problem has its episode


def enqueue_insights(database: Database, channel: InsightChannel, epoch: int, now: datetime) -> None:
    """Store messages for the oldest `outbox.MOST` insights that the channel announces and has no message about.

    An insight has a message when it is found, one when it is withdrawn, and so on: found and withdrawn alternate. A
    channel that repeats has a message for each stored version instead.
    """
    condition = channel.insight_condition()
    if condition is None:
        return
    versions = "toString(toUnixTimestamp64Milli(i.recorded_at))"
    # The number of messages so far tells whether the last one was about a finding (odd) or a withdrawal (even).
    changed, number = "n % 2 = withdrawn", "toString(n)"
    if channel.repeats:
        id_ = f"concat({{target:String}}, ':', i.insight_id, ':', {versions})"
        changed, number = f"{id_} NOT IN (SELECT message_id FROM told)", versions
    rows = database.rows(
        "WITH told AS (SELECT message_id, subject FROM outbox FINAL WHERE target = {target:String}) "
        f"SELECT {', '.join(f'i.{name} AS {name}' for name in InsightRow._fields)}, i.recorded_at AS recorded_at, "
        f"o.n AS n, {number} AS number FROM "
        "(SELECT * FROM insights FINAL WHERE recorded_at >= {since:DateTime64(3, 'UTC')} "
        f"AND ({condition.sql})) AS i "
        "LEFT JOIN (SELECT subject, count() AS n FROM told GROUP BY subject) AS o "
        f"ON concat(i.insight_id, ':{SUFFIX}') = o.subject WHERE {changed} "
        "ORDER BY i.recorded_at, i.insight_id LIMIT {most:UInt32}",
        {"target": channel.name, "since": now - MAX_AGE, "most": outbox.MOST, **condition.bound},
    )
    outbox.enqueue_messages(database, [_message(channel, row, now) for row in rows], epoch)


def _message(channel: InsightChannel, row: dict[str, Any], now: datetime) -> Message:
    insight = InsightRow(**{name: row[name] for name in InsightRow._fields})
    id_ = f"{insight.insight_id}:{row['number']}"
    action, content = channel.draft_insight(insight, id_, row["recorded_at"])
    return Message(
        message_id=f"{channel.name}:{id_}",
        target=channel.name,
        action=action,
        thread=f"{insight.insight_id}:{SUFFIX}",
        at=row["recorded_at"],
        content=content,
        written_at=now,
    )
