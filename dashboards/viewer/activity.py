"""The latest events for the viewer's strip: problems (not symptoms) that opened or resolved, and the demo's faults."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragtide.sinks.clickhouse.database import Database

_SPAN = timedelta(hours=1)
_MOST = 50
# A problem that opens again within its episode says `reopened`. FINAL: a second run writes the same events.
_EVENTS = """
SELECT at, event, problem_id, app, environment, metric, severity, description
FROM problem_events FINAL
WHERE at >= {since:DateTime64(3)} AND event IN ('opened', 'reopened', 'resolved')
    AND (problem_id, episode) NOT IN (SELECT problem_id, episode FROM problem_groups FINAL WHERE parent_id != '')
ORDER BY at DESC, indexOf(['critical', 'warning', 'info'], severity), problem_id
LIMIT {most:UInt32}
"""


def recent_events(database: "Database", timeline: Path | None, now: datetime) -> list[dict[str, Any]]:
    """Events of the last hour, the newest first. Raises what the database raises."""
    since = now - _SPAN
    rows = database.rows(_EVENTS, {"since": since, "most": _MOST})
    events = [
        {
            "at": _milliseconds(row["at"]),
            "kind": "resolved" if row["event"] == "resolved" else "opened",
            "problem": row["problem_id"],
            "app": row["app"],
            "environment": row["environment"],
            "metric": row["metric"],
            "severity": row["severity"],
            "says": row["description"] or row["metric"],
        }
        for row in rows
    ]
    events += _faults(timeline, since)
    return sorted(events, key=lambda event: float(event["at"]), reverse=True)[:_MOST]


def _faults(timeline: Path | None, since: datetime) -> list[dict[str, Any]]:
    """Faults of a demo, from the file in which it records them; nothing where it cannot be read yet."""
    try:
        recorded = json.loads(timeline.read_text(encoding="utf-8"))["faults"] if timeline else []
    except (OSError, ValueError, KeyError):
        return []
    events = []
    for fault in recorded:
        says = fault.get("title") or fault["fault"]
        for kind, at in (("fault on", fault["start"]), ("fault off", fault["end"])):
            if at and (time := datetime.fromisoformat(at)) >= since:
                events.append({"at": _milliseconds(time), "kind": kind, "says": says})
    return events


def utc_now() -> datetime:
    """The time of this machine."""
    return datetime.now(UTC)


def _milliseconds(time: datetime) -> int:
    return int(time.timestamp() * 1000)
