"""Tries the limits of failure rates and of evaluators' errors on past windows, by the stretches that jobs pool."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from drift.dry_run.looks import Looks
from drift.dry_run.would_be import WouldBe
from drift.kinds import evaluator_errors, failure_rates
from drift.kinds.evaluator_errors import Failing, failing
from drift.kinds.failure_rates import Rated, apps_in, rated, rules_of, scored_in, that_count
from drift.kinds.recent import Counted, recent
from drift.problems.events import Place
from drift.problems.troubles import Trouble
from drift.rules.limits import limits_for
from drift.rules.series import Rule
from drift.settings import RuleSettings
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_Fingerprints = Mapping[str, Sequence[Counted]]


def try_failure_rates(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    base_s: int,
    segments: SegmentValues,
    first: int,
    until: int,
) -> Iterator[WouldBe]:
    """What metrics judged by their mean would have raised in (first, until] by the share of records that fail."""
    live = scored_in(base_s, first, until)
    for app in apps_in(database, live):
        watched, own = rules_of(app, metrics, rules), rules.of(app)
        for one in rated(database, app, watched, live, base_s):
            rule = watched[one.series.metric]
            looks: Looks[Counted] = Looks(Place(aspect="level", **one.series._asdict()), "failure_rate", own)
            _look(looks, one.windows, rule.failure_limit, failure_rates.JUDGED, range(first, until, base_s))
            yield from looks.would_be(partial(_rate_told, database, one, rule, metrics, segments, rules))


def try_errors(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, base_s: int, first: int, until: int
) -> Iterator[WouldBe]:
    """What evaluators that keep failing would have raised in (first, until]."""
    for one in failing(database, evaluators.values(), base_s, first, until):
        limit = limits_for(one.app, one.evaluator, rules).error_limit
        looks: Looks[Counted] = Looks(one.place, "evaluator_error", rules.of(one.app))
        _look(looks, {"": one.windows}, limit, evaluator_errors.JUDGED, range(first, until, base_s))
        yield from looks.would_be(partial(_error_told, database, one, evaluators[one.evaluator], limit, rules))


def _look(looks: Looks[Counted], windows: _Fingerprints, limit: float, judged: timedelta, starts: range) -> None:
    """At each end of a base window, by the windows of the time before that the job looks at."""
    bad_ends = sorted(window.end for some in windows.values() for window in some if window.share > limit)
    for at in (start + starts.step for start in starts):
        since = at - int(judged.total_seconds())
        nothing_bad = bisect_left(bad_ends, since) == bisect_left(bad_ends, at + 1)
        if nothing_bad and not looks.is_going:
            continue  # no stretch is worse than its worst window
        seen = {name: _between(some, since, at) for name, some in windows.items()}
        counted = that_count({name: some for name, some in seen.items() if some}, looks.settings.min_sample)
        found = recent(counted, limit, looks.settings)
        if found.since_bad is not None:
            looks.sees(at, found.since_bad)
        elif found.state == "good" or not any(seen.values()):
            looks.sees_none(at)
        else:
            looks.waits(at)


def _between(windows: Sequence[Counted], since: int, until: int) -> Sequence[Counted]:
    """Those that start from `since` on and ended by `until`; all are of one size."""
    return windows[bisect_left(windows, since, key=_start) : bisect_left(windows, until + 1, key=_end)]


def _start(window: Counted) -> int:
    return window.start


def _end(window: Counted) -> int:
    return window.end


def _rate_told(
    database: Database,
    one: Rated,
    rule: Rule,
    metrics: Mapping[str, WatchedMetric],
    segments: SegmentValues,
    rules: RuleSettings,
    bad: Counted,
) -> Trouble:
    return failure_rates.trouble_of(database, one.series, rule, bad, metrics, segments, rules)


def _error_told(
    database: Database, one: Failing, evaluator: Evaluator, limit: float, rules: RuleSettings, bad: Counted
) -> Trouble:
    return evaluator_errors.trouble_of(database, one, evaluator, bad, limit, rules)
