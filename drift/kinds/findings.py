"""What evaluators report beside their scores is gathered into one problem per remark, or per kind of what leaks.

A remark (an answer too short to embed, an unsound artifact) is a problem where an hour has many of it, in number and
as a share; a leaked kind (an address, a key) where many answers have it: that each single leak is one too, says the
rule `any`, whose lines and allow-lists hold here too; where texts are allowed, nothing is said of kinds. It is over
once an hour has half as many.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from drift.leadership import Term
from drift.phrases import moment, percent, whereabouts
from drift.problems.accounts import account_of, part_wrong
from drift.problems.events import Place
from drift.problems.problem import Kind
from drift.problems.troubles import Over, Trouble, Watched, standing, tell
from drift.rules.choose import rule_anywhere, rule_of_app
from drift.rules.limits import limits_for
from drift.settings import RuleSettings
from drift.windows import sql
from drift.windows.beyond import is_beyond
from drift.windows.metrics import WatchedMetric
from drift.windows.watermark import Watermark, closing, read_stored
from evaluators.spec import Evaluator
from sinks.clickhouse.database import Database

_KIND: Kind = "finding"
_JUDGED = timedelta(hours=1)
_EXAMPLES = 10
_RELIEF = 0.5
_LIVE = (
    "run_id = 'live' AND evaluator IN {evaluators} AND time >= {{since:DateTime64(3, 'UTC')}} "
    "AND time < {{until:DateTime64(3, 'UTC')}}"
)


class _Found(NamedTuple):
    """Of an evaluator's `traces` in the time `marked` have it; `first` is the time of one."""

    app: str
    environment: str
    evaluator: str
    finding: str
    leaked: bool
    marked: int
    traces: int
    first: datetime
    examples: tuple[str, ...]

    @property
    def place(self) -> Place:
        return Place(self.app, self.environment, "", "finding", self.evaluator, "finding", self.finding)

    @property
    def share(self) -> float:
        return self.marked / self.traces


def watch_findings(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, term: Term, now: datetime
) -> Watched:
    """What the last hour's closed windows hold is told when this returns, by the watermark of each lane.

    Lanes that have none say nothing. `now` is the server's time.
    """
    closed = closing({key: Watermark(at, False) for key, at in read_stored(database).items()})
    told: list[Trouble | Over] = []
    before, read = standing(database, _KIND), 0
    for lane, watermark in sorted((lane, one.at) for lane, one in closed.items()):
        known = {id_: one for id_, one in evaluators.items() if one.lane == lane}
        if not known:
            continue
        over = {place for place in before if place.metric in known}
        for one in _found(database, known, rules, watermark):
            read += one.marked
            if one.leaked and _is_allowed(one, known[one.evaluator], rules):
                continue
            if _is_many(one, rules, 1.0):
                told.append(_trouble(one, known[one.evaluator], rules, watermark))
            if _is_many(one, rules, _RELIEF):
                over.discard(one.place)
        told += [Over(place, _KIND, watermark) for place in sorted(over)]
    told += [Over(place, _KIND, now) for place in before if place.metric not in evaluators]
    return Watched(read, tell(database, told, rules, term, now))


def _is_many(one: _Found, rules: RuleSettings, part: float) -> bool:
    """Whether it has so much of the limits."""
    limits = limits_for(one.app, one.evaluator, rules)
    often = one.marked >= part * limits.finding_traces
    return often and (
        one.leaked or (one.traces >= rules.of(one.app).min_sample and one.share > part * limits.finding_limit)
    )


def _is_allowed(one: _Found, evaluator: Evaluator, rules: RuleSettings) -> bool:
    return all(
        rule is None or rule.kind != "any" or one.finding in rule.allow_kinds or bool(rule.allow_texts)
        for rule in (
            rule_of_app(one.app, watched, rules)
            for watched in (WatchedMetric(evaluator, metric) for metric in evaluator.metrics)
        )
    )


def _leaks(evaluators: Iterable[Evaluator], rules: RuleSettings) -> str:
    """Condition on rows of scores: beyond a line of a rule `any`."""
    conditions = []
    for watched in (WatchedMetric(one, metric) for one in evaluators for metric in one.metrics):
        rule = rule_anywhere(watched, rules)
        if rule is None or rule.kind != "any":
            continue
        value = f"metrics[{sql.text(watched.metric.key)}]"
        wrong = is_beyond(value, watched.scale, rule.least, rule.greatest)
        conditions.append(f"(evaluator = {sql.text(watched.evaluator.id)} AND {wrong})")
    return f"(status = 'scored' AND ({' OR '.join(conditions) or 'false'}))"


def _found(database: Database, known: Mapping[str, Evaluator], rules: RuleSettings, until: datetime) -> list[_Found]:
    """Counts of every remark and of every leaked kind, the examples with most of it first."""
    leaks = _leaks(known.values(), rules)
    kinds = "arrayMap(one -> JSONExtractString(one, 'kind'), JSONExtractArrayRaw(toString(evidence)))"
    has = f"(notEmpty(findings) OR ({leaks} AND evidence NOT IN ('', '[]')))"
    asked = {"since": until - _JUDGED, "until": until}
    live = _LIVE.format(evaluators=sql.texts(sorted(known)))
    rows = database.rows(
        f"""
        SELECT app, environment, evaluator, pair.1 AS finding, pair.2 AS leaked, count() AS n, min(time) AS first,
            arrayMap(one -> one.2, arraySlice(arraySort(groupArray((-times, trace_id))), 1, {_EXAMPLES})) AS examples
        FROM (
            SELECT app, environment, evaluator, time, trace_id, pair, arrayCount(one -> one = pair.1, kinds) AS times
            FROM (
                SELECT app, environment, evaluator, time, trace_id, {kinds} AS kinds, arrayConcat(
                    arrayMap(one -> (toString(one), false), arrayDistinct(findings)),
                    if({leaks}, arrayMap(one -> (one, true), arrayDistinct(arrayFilter(one -> one != '', kinds))), [])
                ) AS pairs
                FROM scores FINAL WHERE {live} AND {has}
            ) ARRAY JOIN pairs AS pair
        )
        GROUP BY app, environment, evaluator, finding, leaked
        ORDER BY app, environment, evaluator, finding, leaked""",
        asked,
    )
    totals = _totals(database, {row["evaluator"] for row in rows}, asked)
    return [
        _Found(
            row["app"],
            row["environment"],
            row["evaluator"],
            row["finding"],
            bool(row["leaked"]),
            row["n"],
            totals[row["app"], row["environment"], row["evaluator"]],
            row["first"],
            tuple(row["examples"]),
        )
        for row in rows
    ]


def _totals(
    database: Database, evaluators: Iterable[str], asked: Mapping[str, datetime]
) -> dict[tuple[str, str, str], int]:
    """Traces that these evaluators looked at, by application, environment and evaluator."""
    rows = database.rows(
        "SELECT app, environment, evaluator, count() AS n FROM scores FINAL WHERE "
        f"{_LIVE.format(evaluators=sql.texts(sorted(evaluators)))} AND status != 'sampled_out' "
        "GROUP BY app, environment, evaluator",
        asked,
    )
    return {(row["app"], row["environment"], row["evaluator"]): row["n"] for row in rows}


def _trouble(one: _Found, evaluator: Evaluator, rules: RuleSettings, until: datetime) -> Trouble:
    said = (
        f"{whereabouts(one.app, one.environment)}: {one.evaluator} {'found' if one.leaked else 'reports'} "
        f"{one.finding} in {one.marked} of {one.traces} traces ({percent(one.share)}) of the last hour, "
        f"since {moment(one.first)}."
    )
    limit = None if one.leaked else limits_for(one.app, one.evaluator, rules).finding_limit
    account = account_of(
        _KIND,
        one.place,
        WatchedMetric(evaluator, evaluator.metrics[0]),
        said,
        {**part_wrong(one.marked, one.traces, limit), "finding": one.finding},
        rules,
        wrong=one.marked,
        traffic=one.traces,
        severity="high" if one.leaked else None,
        examples=one.examples,
    )
    return Trouble(one.place, account, one.first, until)
