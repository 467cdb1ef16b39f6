"""Tries `dead_letters` on past ones: whenever a base window ended, by the hour before and the week before that."""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import numpy as np

from drift.dry_run.counts import Counts
from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.kinds.storage import JUDGED, RELIEF, USUAL, are_many, letters_of, place_of_letters, trouble_of
from drift.problems.troubles import Trouble
from drift.settings import RuleSettings
from sinks.clickhouse.database import Database

_JUDGED_MS, _USUAL_MS = (int(span.total_seconds()) * 1000 for span in (JUDGED, USUAL))


def try_dead_letters(database: Database, rules: RuleSettings, base_s: int, first: int, until: int) -> Iterator[WouldBe]:
    """What would have been raised in (first, until], seconds since 1970; letters of the week before count too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    now = moments * 1000 + 1  # a letter of that very moment counts
    for topic, letters in _letters(database, first * 1000 - _JUDGED_MS - _USUAL_MS, until * 1000).items():
        recent = letters.within(now - _JUDGED_MS, now)
        usual = letters.within(now - _JUDGED_MS - _USUAL_MS, now - _JUDGED_MS) / (_USUAL_MS / _JUDGED_MS)
        looks: Looks[int] = Looks(place_of_letters(topic), "threshold", rules, "dead_letters")
        for at, n, mean in zip(moments.tolist(), recent.tolist(), usual.tolist(), strict=True):
            if n and are_many(n, mean, rules.dead_letters, 1.0):
                looks.sees(at, at)
            elif n and are_many(n, mean, rules.dead_letters, RELIEF):
                looks.waits(at)
            elif looks.is_going:
                looks.sees_none(at)
        yield from looks.would_be(partial(_told, database, topic, rules))


def _letters(database: Database, first_ms: int, until_ms: int) -> dict[str, Counts]:
    """By topic, those that came in that time; milliseconds since 1970."""
    rows = database.rows(
        "SELECT topic, arraySort(groupArray((at, n))) AS letters FROM ("
        "SELECT topic, toUnixTimestamp64Milli(ingested_at) AS at, count() AS n FROM dead_letters FINAL "
        f"WHERE run_id = 'live' AND at >= {first_ms} AND at <= {until_ms} GROUP BY topic, at"
        ") GROUP BY topic ORDER BY topic"
    )
    return {row["topic"]: Counts.of(row["letters"]) for row in rows}


def _told(database: Database, topic: str, rules: RuleSettings, at: int) -> Trouble:
    """In the words of the job, which looks at that hour once more."""
    now = datetime.fromtimestamp(at, UTC)
    return trouble_of(next(one for one in letters_of(database, now) if one.topic == topic), rules, now)
