"""What evaluators report beside their scores is gathered into one problem per remark, or per kind of what leaks.

A remark (an answer too short to embed, an unsound artifact) is a problem where an hour has many of it, in number and
as a share; a leaked kind (an address, a key) where many answers have it: that each single leak is one too, says the
rule `any`, whose lines and allow-lists hold here too; where texts are allowed, nothing is said of kinds. It is over
once an hour has half as many.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from ragtide.drift import sql
from ragtide.drift.leadership import Term
from ragtide.drift.problems.model import Kind
from ragtide.drift.problems.report import (
    CheckResult,
    Clear,
    Detection,
    ProblemKey,
    bad_share_attributes,
    build_details,
    open_detections,
    report,
)
from ragtide.drift.rules.resolve import limits_for, rule_of_app, rule_of_every_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.text import percent, scope_label, timestamp
from ragtide.drift.windows.histogram import is_out_of_bounds
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.watermark import Watermark, lane_watermarks, read_stored
from ragtide.evaluators.spec import Evaluator
from ragtide.sinks.clickhouse.database import Database

_KIND: Kind = "finding"
LOOKBACK = timedelta(hours=1)
_EXAMPLES = 10
CLEAR_FRACTION = 0.5
_EVALUATOR_COLUMNS = "app, environment, evaluator"
TimedCounts = Sequence[tuple[int, int]]  # starts of stretches of time, in order, and how many traces
_FINDING_COLUMNS = f"{_EVALUATOR_COLUMNS}, finding, leaked"
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
    def key(self) -> ProblemKey:
        """Where its trouble is told."""
        return ProblemKey(self.app, self.environment, "", "finding", self.evaluator, "finding", self.name)


class FindingCount(NamedTuple):
    """Of the evaluator's `traces` in an hour `marked` have it; `first` is the time of one."""

    finding: Finding
    affected: int
    traces: int
    first: datetime
    examples: tuple[str, ...]


def check_findings(
    database: Database, evaluators: Mapping[str, Evaluator], rules: RuleSettings, term: Term, now: datetime
) -> CheckResult:
    """What the last hour's closed windows hold is told when this returns, by the watermark of each lane.

    Lanes that have none say nothing. `now` is the server's time.
    """
    closed = lane_watermarks({key: Watermark(at, False) for key, at in read_stored(database).items()})
    reports: list[Detection | Clear] = []
    before, read = open_detections(database, _KIND), 0
    for lane, watermark in sorted((lane, one.at) for lane, one in closed.items()):
        known = {id_: one for id_, one in evaluators.items() if one.lane == lane}
        if not known:
            continue
        clear_keys = {place for place in before if place.metric in known}
        for one in load_findings(database, known, rules, watermark):
            read += one.affected
            if exceeds_limit(one.finding, one.affected, one.traces, rules, 1.0):
                reports.append(detection_of(one, known[one.finding.evaluator], rules, watermark))
            if exceeds_limit(one.finding, one.affected, one.traces, rules, CLEAR_FRACTION):
                clear_keys.discard(one.finding.key)
        reports += [Clear(place, _KIND, watermark) for place in sorted(clear_keys)]
    reports += [Clear(place, _KIND, now) for place in before if place.metric not in evaluators]
    return CheckResult(read, report(database, reports, rules, term, now))


def exceeds_limit(one: Finding, affected: int, traces: int, rules: RuleSettings, fraction: float) -> bool:
    """Whether an hour with it in so many of the traces has this part of the limits."""
    limits = limits_for(one.app, one.evaluator, rules)
    often = affected >= fraction * limits.finding_traces
    return often and (
        one.leaked or (traces >= rules.of(one.app).min_sample and affected / traces > fraction * limits.finding_limit)
    )


def _is_allowed(one: Finding, evaluator: Evaluator, rules: RuleSettings) -> bool:
    """Whether nothing is said of it: of what may leak."""
    return one.leaked and all(
        rule is None or not rule.kind.zero_tolerance or one.name in rule.allow_kinds or bool(rule.allow_texts)
        for rule in (
            rule_of_app(one.app, watched, rules)
            for watched in (MetricRef(evaluator, metric) for metric in evaluator.metrics)
        )
    )


def _leaks(evaluators: Iterable[Evaluator], rules: RuleSettings) -> str:
    """Condition on rows of scores: beyond a line of a rule `any`."""
    conditions = []
    for watched in (MetricRef(one, metric) for one in evaluators for metric in one.metrics):
        rule = rule_of_every_app(watched, rules)
        if rule is None or not rule.kind.zero_tolerance:
            continue
        value = f"metrics[{sql.text(watched.metric.key)}]"
        wrong = is_out_of_bounds(value, watched.scale, rule.min, rule.max)
        conditions.append(f"(evaluator = {sql.text(watched.evaluator.id)} AND {wrong})")
    return f"(status = 'scored' AND ({' OR '.join(conditions) or 'false'}))"


def _findings_query(known: Mapping[str, Evaluator], rules: RuleSettings) -> str:
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


def load_findings(
    database: Database, known: Mapping[str, Evaluator], rules: RuleSettings, until: datetime
) -> list[FindingCount]:
    """Every remark and leaked kind of the hour before, but what is allowed; the examples with most of it first."""
    parameters = {"since": until - LOOKBACK, "until": until}
    rows = database.rows(
        f"""
        SELECT {_FINDING_COLUMNS}, count() AS n, min(time) AS first,
            arrayMap(one -> one.2, arraySlice(arraySort(groupArray((-times, trace_id))), 1, {_EXAMPLES})) AS examples
        FROM ({_findings_query(known, rules)}) GROUP BY {_FINDING_COLUMNS} ORDER BY {_FINDING_COLUMNS}""",
        parameters,
    )
    looked_at = _evaluated_traces({row["evaluator"] for row in rows})
    totals = {
        (row["app"], row["environment"], row["evaluator"]): row["n"]
        for row in database.rows(
            f"SELECT {_EVALUATOR_COLUMNS}, count() AS n {looked_at} GROUP BY {_EVALUATOR_COLUMNS}", parameters
        )
    }
    found = [
        FindingCount(one, row["n"], totals[one[:3]], row["first"], tuple(row["examples"]))
        for row, one in ((row, _finding(row)) for row in rows)
    ]
    return [one for one in found if not _is_allowed(one.finding, known[one.finding.evaluator], rules)]


def findings_by_time(
    database: Database, known: Mapping[str, Evaluator], rules: RuleSettings, first: int, until: int, every_s: int
) -> dict[Finding, TimedCounts]:
    """The same of [first, until), seconds since 1970: how many traces of each stretch of `every_s` have it."""
    rows = database.rows(
        _counts_query(_FINDING_COLUMNS, f"FROM ({_findings_query(known, rules)})", every_s),
        _interval_parameters(first, until),
    )
    found = {_finding(row): row["counts"] for row in rows}
    return {one: counts for one, counts in found.items() if not _is_allowed(one, known[one.evaluator], rules)}


def evaluated_by_time(
    database: Database, evaluators: Iterable[str], first: int, until: int, every_s: int
) -> dict[tuple[str, str, str], TimedCounts]:
    """How many traces these evaluators looked at, likewise; by application, environment and evaluator."""
    rows = database.rows(
        _counts_query(_EVALUATOR_COLUMNS, _evaluated_traces(evaluators), every_s), _interval_parameters(first, until)
    )
    return {(row["app"], row["environment"], row["evaluator"]): row["counts"] for row in rows}


def _counts_query(keys: str, traces: str, every_s: int) -> str:
    return f"""
        SELECT {keys}, arraySort(groupArray((at, n))) AS counts FROM (
            SELECT {keys}, toUInt32(intDiv(toUnixTimestamp(time), {every_s}) * {every_s}) AS at, count() AS n
            {traces} GROUP BY {keys}, at
        ) GROUP BY {keys} ORDER BY {keys}"""


def _interval_parameters(first: int, until: int) -> dict[str, datetime]:
    return {"since": datetime.fromtimestamp(first, UTC), "until": datetime.fromtimestamp(until, UTC)}


def _finding(row: Mapping[str, Any]) -> Finding:
    return Finding(row["app"], row["environment"], row["evaluator"], row["finding"], bool(row["leaked"]))


def _evaluated_traces(evaluators: Iterable[str]) -> str:
    """From the traces that these evaluators looked at."""
    live = _LIVE.format(evaluators=sql.texts(sorted(evaluators)))
    return f"FROM scores FINAL WHERE {live} AND status != 'sampled_out'"


def detection_of(found: FindingCount, evaluator: Evaluator, rules: RuleSettings, until: datetime) -> Detection:
    """What is said of a remark or leaked kind that the hour before has too often."""
    one, share = found.finding, percent(found.affected / found.traces)
    message = (
        f"{scope_label(one.app, one.environment)}: {one.evaluator} {'found' if one.leaked else 'reports'} "
        f"{one.name} in {found.affected} of {found.traces} traces ({share}) of the last hour, "
        f"since {timestamp(found.first)}."
    )
    limit = None if one.leaked else limits_for(one.app, one.evaluator, rules).finding_limit
    details = build_details(
        _KIND,
        one.key,
        MetricRef(evaluator, evaluator.metrics[0]),
        message,
        {**bad_share_attributes(found.affected, found.traces, limit), "finding": one.name},
        rules,
        bad=found.affected,
        traffic=found.traces,
        severity="critical" if one.leaked else None,
        examples=found.examples,
    )
    return Detection(one.key, details, found.first, until)
