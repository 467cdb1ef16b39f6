"""What evaluators report beside their scores is gathered into one problem per remark, or per kind of what leaks.

A remark (an answer too short to embed, an unsound artifact) is a problem where an hour has many of it, in number and
as a share; a leaked kind (an address, a key) where many answers have it: that each single leak is one too, says the
rule `any`, whose lines and allow-lists hold here too; where texts are allowed, nothing is said of kinds. It is over
once an hour has half as many.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

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
JUDGED = timedelta(hours=1)
_EXAMPLES = 10
RELIEF = 0.5
_WHOSE = "app, environment, evaluator"
ByTime = Sequence[tuple[int, int]]  # starts of stretches of time, in order, and how many traces
_FINDING = f"{_WHOSE}, finding, leaked"
_LIVE = (
    "run_id = 'live' AND evaluator IN {evaluators} AND time >= {{since:DateTime64(3, 'UTC')}} "
    "AND time < {{until:DateTime64(3, 'UTC')}}"
)


class Finding(NamedTuple):
    """A remark of an evaluator on an application's traces, or a kind of what it `leaked`."""

    app: str
    environment: str
    evaluator: str
    name: str
    leaked: bool

    @property
    def place(self) -> Place:
        """Where its trouble is told."""
        return Place(self.app, self.environment, "", "finding", self.evaluator, "finding", self.name)


class Found(NamedTuple):
    """Of the evaluator's `traces` in an hour `marked` have it; `first` is the time of one."""

    finding: Finding
    marked: int
    traces: int
    first: datetime
    examples: tuple[str, ...]


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
        for one in found_in(database, known, rules, watermark):
            read += one.marked
            if is_many(one.finding, one.marked, one.traces, rules, 1.0):
                told.append(trouble_of(one, known[one.finding.evaluator], rules, watermark))
            if is_many(one.finding, one.marked, one.traces, rules, RELIEF):
                over.discard(one.finding.place)
        told += [Over(place, _KIND, watermark) for place in sorted(over)]
    told += [Over(place, _KIND, now) for place in before if place.metric not in evaluators]
    return Watched(read, tell(database, told, rules, term, now))


def is_many(one: Finding, marked: int, traces: int, rules: RuleSettings, part: float) -> bool:
    """Whether an hour with it in so many of the traces has this part of the limits."""
    limits = limits_for(one.app, one.evaluator, rules)
    often = marked >= part * limits.finding_traces
    return often and (
        one.leaked or (traces >= rules.of(one.app).min_sample and marked / traces > part * limits.finding_limit)
    )


def _is_allowed(one: Finding, evaluator: Evaluator, rules: RuleSettings) -> bool:
    """Whether nothing is said of it: of what may leak."""
    return one.leaked and all(
        rule is None or rule.kind != "any" or one.name in rule.allow_kinds or bool(rule.allow_texts)
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


def _marked(known: Mapping[str, Evaluator], rules: RuleSettings) -> str:
    """Query: every trace of [since, until) with each remark and each leaked kind that it has, and how many `times`."""
    leaks = _leaks(known.values(), rules)
    kinds = "arrayMap(one -> JSONExtractString(one, 'kind'), JSONExtractArrayRaw(toString(evidence)))"
    has = f"(notEmpty(findings) OR ({leaks} AND evidence NOT IN ('', '[]')))"
    return f"""
        SELECT app, environment, evaluator, time, trace_id, pair.1 AS finding, pair.2 AS leaked,
            arrayCount(one -> one = pair.1, kinds) AS times
        FROM (
            SELECT app, environment, evaluator, time, trace_id, {kinds} AS kinds, arrayConcat(
                arrayMap(one -> (toString(one), false), arrayDistinct(findings)),
                if({leaks}, arrayMap(one -> (one, true), arrayDistinct(arrayFilter(one -> one != '', kinds))), [])
            ) AS pairs
            FROM scores FINAL WHERE {_LIVE.format(evaluators=sql.texts(sorted(known)))} AND {has}
        ) ARRAY JOIN pairs AS pair"""


def found_in(database: Database, known: Mapping[str, Evaluator], rules: RuleSettings, until: datetime) -> list[Found]:
    """Every remark and leaked kind of the hour before, but what is allowed; the examples with most of it first."""
    asked = {"since": until - JUDGED, "until": until}
    rows = database.rows(
        f"""
        SELECT {_FINDING}, count() AS n, min(time) AS first,
            arrayMap(one -> one.2, arraySlice(arraySort(groupArray((-times, trace_id))), 1, {_EXAMPLES})) AS examples
        FROM ({_marked(known, rules)}) GROUP BY {_FINDING} ORDER BY {_FINDING}""",
        asked,
    )
    looked_at = _looked_at({row["evaluator"] for row in rows})
    totals = {
        (row["app"], row["environment"], row["evaluator"]): row["n"]
        for row in database.rows(f"SELECT {_WHOSE}, count() AS n {looked_at} GROUP BY {_WHOSE}", asked)
    }
    found = [
        Found(one, row["n"], totals[one[:3]], row["first"], tuple(row["examples"]))
        for row, one in ((row, _finding(row)) for row in rows)
    ]
    return [one for one in found if not _is_allowed(one.finding, known[one.finding.evaluator], rules)]


def marked_by_time(
    database: Database, known: Mapping[str, Evaluator], rules: RuleSettings, first: int, until: int, every_s: int
) -> dict[Finding, ByTime]:
    """The same of [first, until), seconds since 1970: how many traces of each stretch of `every_s` have it."""
    rows = database.rows(_counted(_FINDING, f"FROM ({_marked(known, rules)})", every_s), _span(first, until))
    found = {_finding(row): row["counts"] for row in rows}
    return {one: counts for one, counts in found.items() if not _is_allowed(one, known[one.evaluator], rules)}


def looked_at_by_time(
    database: Database, evaluators: Iterable[str], first: int, until: int, every_s: int
) -> dict[tuple[str, str, str], ByTime]:
    """How many traces these evaluators looked at, likewise; by application, environment and evaluator."""
    rows = database.rows(_counted(_WHOSE, _looked_at(evaluators), every_s), _span(first, until))
    return {(row["app"], row["environment"], row["evaluator"]): row["counts"] for row in rows}


def _counted(keys: str, traces: str, every_s: int) -> str:
    return f"""
        SELECT {keys}, arraySort(groupArray((at, n))) AS counts FROM (
            SELECT {keys}, toUInt32(intDiv(toUnixTimestamp(time), {every_s}) * {every_s}) AS at, count() AS n
            {traces} GROUP BY {keys}, at
        ) GROUP BY {keys} ORDER BY {keys}"""


def _span(first: int, until: int) -> dict[str, datetime]:
    return {"since": datetime.fromtimestamp(first, UTC), "until": datetime.fromtimestamp(until, UTC)}


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(row["app"], row["environment"], row["evaluator"], row["finding"], bool(row["leaked"]))


def _looked_at(evaluators: Iterable[str]) -> str:
    """From the traces that these evaluators looked at."""
    live = _LIVE.format(evaluators=sql.texts(sorted(evaluators)))
    return f"FROM scores FINAL WHERE {live} AND status != 'sampled_out'"


def trouble_of(found: Found, evaluator: Evaluator, rules: RuleSettings, until: datetime) -> Trouble:
    """What is said of a remark or leaked kind that the hour before has too often."""
    one, share = found.finding, percent(found.marked / found.traces)
    said = (
        f"{whereabouts(one.app, one.environment)}: {one.evaluator} {'found' if one.leaked else 'reports'} "
        f"{one.name} in {found.marked} of {found.traces} traces ({share}) of the last hour, "
        f"since {moment(found.first)}."
    )
    limit = None if one.leaked else limits_for(one.app, one.evaluator, rules).finding_limit
    account = account_of(
        _KIND,
        one.place,
        WatchedMetric(evaluator, evaluator.metrics[0]),
        said,
        {**part_wrong(found.marked, found.traces, limit), "finding": one.name},
        rules,
        wrong=found.marked,
        traffic=found.traces,
        severity="high" if one.leaked else None,
        examples=found.examples,
    )
    return Trouble(one.place, account, found.first, until)
