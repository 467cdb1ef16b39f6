"""Limit the event times of live traffic, and so the day partitions of tables that inserts touch.

Most limits compare an event time with the timestamps that travel with its record: every lane and every re-reading
decides alike. Producers choose those timestamps where a topic has `CreateTime`, so two more compare with the worker's
clock. They have wide margins, and decide otherwise at another time only of records a day or more off.
"""

from dataclasses import dataclass
from typing import NamedTuple, Never

from ragtide.evaluators.errors import BadRecord
from ragtide.sinks.settings import RetentionSettings
from ragtide.stream.ingest.enriched import EnrichedRecord
from ragtide.stream.ingest.records import Record
from ragtide.stream.settings.sections import IngestSettings

CLOCK_MARGIN_S = 86_400.0  # by which a record's timestamp may be ahead of the worker's clock, or of what enriches it
_DAY_S = 86_400.0


class Bounds(NamedTuple):
    """The oldest event time whose rows are not deleted as they are stored, and the latest timestamp of a record."""

    oldest_event_s: float
    latest_timestamp_ms: float


def latest_timestamp_ms(now_s: float) -> float:
    """The latest timestamp that a record may have, by the worker's clock."""
    return (now_s + CLOCK_MARGIN_S) * 1000


def refuse_sent(record: Record, now_s: float) -> Never:
    """Raise `BadRecord` for a record without a timestamp, or with one after `latest_timestamp_ms`."""
    if record.timestamp <= 0:
        raise BadRecord(
            "no_timestamp",
            "the record has no timestamp; let the producer send one, or set message.timestamp.type=LogAppendTime",
        )
    raise BadRecord(
        "timestamp_in_the_future",
        f"the record's timestamp is {record.timestamp / 1000 - now_s:.0f} s ahead of the worker's clock, more than "
        "a day; correct the producer's clock, or set message.timestamp.type=LogAppendTime",
    )


@dataclass(slots=True)
class EventBounds:
    """Event times, in seconds since 1970, that records of a replay may have; `refused` counts those beyond.

    Live tables have a partition per day, and delete rows beyond their retention as they are stored.
    """

    oldest_s: float
    latest_s: float
    refused: int = 0

    @classmethod
    def of_live(cls, ingest: IngestSettings, retention: RetentionSettings, now_s: float) -> "EventBounds":
        """From `retention.traces_days` ago to `ingest.max_future_s` ahead, with a day's margin for clocks."""
        return cls(now_s - retention.traces_days * _DAY_S, now_s + CLOCK_MARGIN_S + ingest.max_future_s)

    def check(self, event_s: float) -> None:
        """Raise `BadRecord`, and count it, if the event time is out of bounds."""
        if self.oldest_s <= event_s <= self.latest_s:
            return
        self.refused += 1
        if event_s < self.oldest_s:
            raise BadRecord("too_old", "time is older than retention.traces_days keeps live traces")
        raise BadRecord("in_the_future", "time is more than a day ahead of the clock")


@dataclass(frozen=True, slots=True)
class Timeliness:
    """The limits of live traffic, in seconds. Replays have none."""

    max_future_s: float
    max_age_s: float
    retention_s: float

    @classmethod
    def of(cls, ingest: IngestSettings, retention: RetentionSettings) -> "Timeliness":
        """The limits that the settings state; `retention_s` is how long traces and scores are kept."""
        return cls(ingest.max_future_s, ingest.max_age_s, retention.traces_days * _DAY_S)

    @property
    def max_days(self) -> int:
        """Maximum number of days, and so of day partitions, that live inserts can touch at a time."""
        return int((self.retention_s + 2 * CLOCK_MARGIN_S + self.max_future_s) // _DAY_S) + 2

    def bounds(self, now_s: float) -> Bounds:
        """The limits by the worker's clock."""
        return Bounds(now_s - self.retention_s, latest_timestamp_ms(now_s))

    def check_event(self, event_s: float, record: Record) -> None:
        """Raise `BadRecord` if the event time is too far from the timestamp of its message.

        A message that enriches another is held to both: the event time to that one's timestamp (a file's lines have
        none), and each of the two to its own.
        """
        if isinstance(record, EnrichedRecord):
            self._check_enriching(event_s, record)
        if record.timestamp > 0:
            ahead_s = event_s - record.timestamp / 1000
            if ahead_s > self.max_future_s:
                raise BadRecord("in_the_future", f"time is {ahead_s:.0f} s ahead of the broker's timestamp")
            if -ahead_s > self.max_age_s:
                raise BadRecord("too_old", f"time is {-ahead_s:.0f} s before the broker's timestamp")

    def _check_enriching(self, event_s: float, record: EnrichedRecord) -> None:
        sent_s, original_s = record.sent_ms / 1000, record.timestamp / 1000
        if original_s > sent_s + CLOCK_MARGIN_S:
            raise BadRecord("bad_enrichment", "header enriches.timestamp: more than a day after the message's own")
        if 0 < original_s < sent_s - self.retention_s:
            raise BadRecord(
                "bad_enrichment",
                "header enriches.timestamp: further before the message's own than retention.traces_days keeps scores",
            )
        if event_s > sent_s + CLOCK_MARGIN_S + self.max_future_s:
            raise BadRecord("in_the_future", "time is more than a day ahead of the enriching message's timestamp")
