"""Tries the limits of remarks and leaked kinds on past traces: whenever a base window ended, by the hour before."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

import numpy as np

from drift.dry_run.counts import Counts
from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.kinds.findings import JUDGED, RELIEF, Finding, by_time, found_in, is_many, trouble_of
from drift.problems.troubles import Trouble
from drift.settings import RuleSettings
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_JUDGED_S = int(JUDGED.total_seconds())


def try_findings(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[WouldBe]:
    """What would have been raised in (first, until], seconds since 1970; the hour before counts too."""
    moments = np.arange(first + base_s, until + 1, base_s)
    every_s = math.gcd(base_s, _JUDGED_S)
    for one in by_time(database, evaluators, rules, first - _JUDGED_S, until, every_s):
        marked, traces = (Counts.of(some).within(moments - _JUDGED_S, moments) for some in (one.marked, one.traces))
        looks: Looks[int] = Looks(one.finding.place, "finding", rules.of(one.finding.app))
        for at, n, of in zip(moments.tolist(), marked.tolist(), traces.tolist(), strict=True):
            if is_many(one.finding, n, of, rules, 1.0):
                looks.sees(at, at)
            elif is_many(one.finding, n, of, rules, RELIEF):
                looks.waits(at)
            elif looks.is_going:
                looks.sees_none(at)
        yield from looks.would_be(partial(_told, database, one.finding, evaluators[one.finding.evaluator], rules))


def _told(database: Database, finding: Finding, evaluator: Evaluator, rules: RuleSettings, at: int) -> Trouble:
    """In the words of the job, which looks at that hour once more."""
    until = datetime.fromtimestamp(at, UTC)
    found = found_in(database, {evaluator.id: evaluator}, rules, until)
    return trouble_of(next(one for one in found if one.finding == finding), evaluator, rules, until)
