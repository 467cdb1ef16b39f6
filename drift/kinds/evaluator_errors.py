"""An evaluator, judge or model that keeps failing is a problem of its own: what it says of the rest is little worth.

Told apart from coverage, which asks how many traces lack a score for whatever reason: there the limit is higher, and
where this problem is open that one is expected (see `drift.problems.routing`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from drift.kinds.recent import Counted, recent
from drift.leadership import Term
from drift.phrases import moment, percent, whereabouts
from drift.problems.accounts import account_of, part_wrong
from drift.problems.events import Place
from drift.problems.problem import Kind
from drift.problems.troubles import Over, Trouble, Watched, standing, tell
from drift.rules.limits import limits_for
from drift.settings import RuleSettings
from drift.windows.counted import live_windows
from drift.windows.metrics import WatchedMetric
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_KIND: Kind = "evaluator_error"
JUDGED = timedelta(hours=6)
_REASONS = 5
_EXAMPLES = 10


class Failing(NamedTuple):
    """One evaluator on one application's traces: its windows, those without a failure too."""

    app: str
    environment: str
    evaluator: str
    windows: tuple[Counted, ...]
    reasons: tuple[tuple[int, Mapping[str, int]], ...]  # by start of the window

    @property
    def place(self) -> Place:
        """Where its trouble is told."""
        return Place(self.app, self.environment, "", "error", self.evaluator)


def watch_errors(
    database: Database,
    evaluators: Iterable[Evaluator],
    rules: RuleSettings,
    base_s: int,
    term: Term,
    now: datetime,
) -> Watched:
    """What closed windows of the last hours say is told when this returns; `now` is the server's time."""
    known = {one.id: one for one in evaluators}
    told: dict[Place, Trouble | Over] = {place: Over(place, _KIND, now) for place in standing(database, _KIND)}
    until = int(now.timestamp())
    read = 0
    for one in failing(database, known.values(), base_s, until - int(JUDGED.total_seconds()), until):
        read += len(one.windows)
        limit = limits_for(one.app, one.evaluator, rules).error_limit
        found = recent(one.windows, limit, rules.of(one.app))
        if found.since_bad is not None:
            told[one.place] = trouble_of(database, one, known[one.evaluator], found.since_bad, limit, rules)
        elif found.state == "unclear":
            told.pop(one.place, None)
    return Watched(read, tell(database, list(told.values()), rules, term, now))


def failing(database: Database, evaluators: Iterable[Evaluator], base_s: int, since: int, until: int) -> list[Failing]:
    """Those that failed at all in that time (seconds since 1970), by one metric each: it is told of every trace."""
    first = {
        next(m for m in one.metrics if not m.per): one for one in evaluators if not all(m.per for m in one.metrics)
    }
    names = [WatchedMetric(one, metric).name for metric, one in first.items()]
    windows = live_windows(base_s, names, since, until)
    rows = database.rows(
        f"""
        SELECT app, environment, evaluator, groupArray((at, n, wrong, why)) AS windows
        FROM (
            SELECT app, environment, evaluator, toUnixTimestamp(start) AS at, sum(applicable) AS n,
                sum(failed) AS wrong, sumMap(failures) AS why
            FROM windows FINAL WHERE {windows} GROUP BY app, environment, evaluator, at HAVING n > 0
        )
        GROUP BY app, environment, evaluator HAVING arraySum(windows.3) > 0 ORDER BY app, environment, evaluator"""
    )
    return [
        Failing(
            row["app"],
            row["environment"],
            row["evaluator"],
            tuple(sorted(Counted(at, at + base_s, n, wrong) for at, n, wrong, _ in row["windows"])),
            tuple((at, why) for at, _, _, why in row["windows"]),
        )
        for row in rows
    ]


def trouble_of(
    database: Database, one: Failing, evaluator: Evaluator, bad: Counted, limit: float, rules: RuleSettings
) -> Trouble:
    """What is said of an evaluator that fails too often."""
    since, until = (datetime.fromtimestamp(at, UTC) for at in (bad.start, bad.end))
    why = Counter[str]()
    for at, counts in one.reasons:
        if bad.start <= at < bad.end:
            why.update(counts)
    reasons = [f"{reason} {count}" for reason, count in sorted(why.items(), key=lambda r: (-r[1], r[0]))[:_REASONS]]
    said = (
        f"{whereabouts(one.app, one.environment)}: {one.evaluator} failed on {bad.wrong} of {bad.records} traces "
        f"({percent(bad.share)}), above the limit of {percent(limit)}: {', '.join(reasons)}; "
        f"since {moment(since)}."
    )
    account = account_of(
        _KIND,
        one.place,
        WatchedMetric(evaluator, evaluator.metrics[0]),
        said,
        {**part_wrong(bad.wrong, bad.records, limit), "reasons": reasons},
        rules,
        wrong=bad.wrong,
        traffic=bad.records,
        examples=_examples(database, one, since, until),
    )
    return Trouble(one.place, account, since, until)


def _examples(database: Database, one: Failing, since: datetime, until: datetime) -> list[str]:
    """Traces that it failed on, the latest first."""
    rows = database.rows(
        "SELECT trace_id FROM scores FINAL WHERE run_id = 'live' AND app = {app:String} "
        "AND environment = {environment:String} AND evaluator = {evaluator:String} AND status = 'failed' "
        "AND time >= {since:DateTime64(3, 'UTC')} AND time < {until:DateTime64(3, 'UTC')} "
        f"ORDER BY time DESC, trace_id LIMIT {_EXAMPLES}",
        {
            "app": one.app,
            "environment": one.environment,
            "evaluator": one.evaluator,
            "since": since,
            "until": until,
        },
    )
    return [row["trace_id"] for row in rows]
