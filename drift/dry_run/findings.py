"""Tries the limits of remarks and leaked kinds on past traces: whenever a base window ended, by the hour before."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

import numpy as np

from drift.dry_run.counts import Counts
from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.kinds.findings import (
    JUDGED,
    RELIEF,
    Finding,
    found_in,
    is_many,
    looked_at_by_time,
    marked_by_time,
    trouble_of,
)
from drift.problems.troubles import Trouble
from drift.settings import RuleSettings
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_Counted = list[tuple[int, int]]
_PORTION_S = 6 * 3600
_JUDGED_S = int(JUDGED.total_seconds())


def try_findings(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[WouldBe]:
    """What would have been raised in (first, until], seconds since 1970; the hour before counts too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    marked, looked_at = _counts(database, evaluators, rules, base_s, first, until)
    for one, counts in sorted(marked.items()):
        n, of = (Counts.of(some).within(moments - _JUDGED_S, moments).tolist() for some in (counts, looked_at[one[:3]]))
        looks: Looks[int] = Looks(one.place, "finding", rules.of(one.app))
        for nth, at in enumerate(moments.tolist()):
            if is_many(one, n[nth], of[nth], rules, 1.0):
                looks.sees(at, at)
            elif is_many(one, n[nth], of[nth], rules, RELIEF):
                looks.waits(at)
            elif looks.is_going:
                looks.sees_none(at)
        yield from looks.would_be(partial(_told, database, one, evaluators[one.evaluator], rules))


def _counts(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> tuple[Mapping[Finding, _Counted], Mapping[tuple[str, str, str], _Counted]]:
    """Of traces that have a finding, and of those that its evaluator looked at; some hours are read at a time."""
    every_s = math.gcd(base_s, _JUDGED_S)
    portions = [(at, min(at + _PORTION_S, until)) for at in range(first - _JUDGED_S, until, _PORTION_S)]
    marked: dict[Finding, _Counted] = {}
    for since, end in portions:
        for one, counts in marked_by_time(database, evaluators, rules, since, end, every_s).items():
            marked.setdefault(one, []).extend(counts)
    looked_at: dict[tuple[str, str, str], _Counted] = {}
    known = {one.evaluator for one in marked}
    for since, end in portions if known else ():
        for key, counts in looked_at_by_time(database, known, since, end, every_s).items():
            looked_at.setdefault(key, []).extend(counts)
    return marked, looked_at


def _told(database: Database, finding: Finding, evaluator: Evaluator, rules: RuleSettings, at: int) -> Trouble:
    """In the words of the job, which looks at that hour once more."""
    until = datetime.fromtimestamp(at, UTC)
    found = found_in(database, {evaluator.id: evaluator}, rules, until)
    return trouble_of(next(one for one in found if one.finding == finding), evaluator, rules, until)
