"""Tries the limits of flips on past pairs: whenever a base window ended, by the pairs of `asked_within_s` before."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np

from drift.detectors.series import Flags, Integers
from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.flips.links import NEWEST, STREAM, Link, batches, links
from drift.flips.pairs import TOGETHER, FlipRow, flips_of
from drift.flips.rates import place_of_flips, rate_of
from drift.flips.watching import health, trouble_of
from drift.insights.shares import Share
from drift.problems.events import Place
from drift.problems.troubles import Trouble
from drift.settings import RuleSettings
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

_MINUTE = 60  # from which on the job takes traces


class _Pair(NamedTuple):
    """A row and from when on it could be known: the later trace's time, seconds since 1970; `at` is the row's own."""

    known: float
    at: float
    row: FlipRow


def try_flips(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    base_s: int,
    first: int,
    until: int,
) -> Iterator[WouldBe]:
    """What would have been raised in (first, until], seconds since 1970; pairs of the time before count too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    sinces = ((moments - rules.asked_within_s) // _MINUTE * _MINUTE).astype(np.int64)
    for place, pairs in sorted(_pairs(database, metrics, rules, first, until).items()):
        own = rules.of(place.app)
        there, paired, flipped = (
            _within(pairs, those, moments, sinces).tolist()
            for those in (
                np.ones(len(pairs), bool),
                np.array([one.row.outcome != "unknown" for one in pairs]),
                np.array([one.row.outcome in ("worse", "better") for one in pairs]),
            )
        )
        looks: Looks[tuple[int, int]] = Looks(place, "flip", own)
        for nth, at in enumerate(moments.tolist()):
            state = health(Share(flipped[nth], paired[nth]), own)
            if state == "bad":
                looks.sees(at, (int(sinces[nth]), at))
            elif state == "good" or not there[nth]:
                looks.sees_none(at)
            else:
                looks.waits(at)
        yield from looks.would_be(partial(_told, place, pairs, metrics[place.metric], own))


def _within(pairs: Sequence[_Pair], those: Flags, moments: Integers, sinces: Integers) -> Integers:
    """How many were known at each moment and not older than it allows; none is known only after it was too old."""
    known, at = (np.sort(np.array([one[nth] for one in pairs])[those]) for nth in (0, 1))
    found: Integers = np.searchsorted(known, moments) - np.searchsorted(at, sinces)
    return found


def _pairs(
    database: Database, metrics: Mapping[str, WatchedMetric], rules: RuleSettings, first: int, until: int
) -> dict[Place, list[_Pair]]:
    """Of traces of the time that is looked at, as they and their scores are stored now."""
    period = timedelta(seconds=rules.asked_within_s)
    since = (datetime.fromtimestamp(first, UTC) - period).replace(second=0, microsecond=0)
    found = [one for one in links(database, since, period) if one.time.timestamp() < until]
    made: dict[Place, list[_Pair]] = {}
    for start in range(0, len(found), TOGETHER):
        some = found[start : start + TOGETHER]
        times = _times(database, some)
        for link, rows in flips_of(database, some, metrics, rules, version=0):
            at = link.time.timestamp()
            known = max(at, times.get(link.original_id, at))
            for row in rows if known - at < rules.asked_within_s else ():
                place = place_of_flips(row.app, row.environment, row.model, row.metric, row.techniques)
                made.setdefault(place, []).append(_Pair(known, at, row))
    return made


def _times(database: Database, some: Sequence[Link]) -> dict[str, float]:
    """Of the originals, seconds since 1970."""
    return {
        row["trace_id"]: row["at"].timestamp()
        for ids in batches(sorted({link.original_id for link in some if link.original_id}))
        for row in database.rows(
            f"SELECT trace_id, argMax(time, {NEWEST}) AS at FROM traces "
            f"WHERE {STREAM} AND trace_id IN {sql.texts(ids)} GROUP BY trace_id"
        )
    }


def _told(
    place: Place, pairs: Sequence[_Pair], metric: WatchedMetric, rules: RuleSettings, span: tuple[int, int]
) -> Trouble:
    since, until = span
    return trouble_of(
        rate_of(place, [one.row for one in pairs if one.known < until and one.at >= since]), metric, rules
    )
