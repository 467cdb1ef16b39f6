"""Too great a share of the traces fails a metric though its mean looks well: a problem at the same place as the mean's.

The share beyond the threshold is exact, from the windows' bins. Of the failing traces it is told how many had bad
contexts (see `drift.causes.contexts`: the cause is retrieval), how many had good ones (generation), and of how many
that is not known; and beside them how many traces the evaluator could not read (parse).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from drift.causes.contexts import ARE_BAD, looked_at, of_contexts
from drift.kinds.recent import Counted, recent, stretches
from drift.leadership import Term
from drift.phrases import moment, percent
from drift.problems import facts
from drift.problems.accounts import account_of, part_wrong
from drift.problems.events import Place
from drift.problems.fingerprints import Begun, Span, scoring_now
from drift.problems.problem import Kind
from drift.problems.taxonomy import type_of
from drift.problems.troubles import Over, Trouble, Watched, standing, tell
from drift.rules.choose import rule_of_app
from drift.rules.records import beyond, lines, records_of
from drift.rules.series import Rule, Series
from drift.settings import RuleSettings
from drift.windows import sql
from drift.windows.beyond import edges, in_bins
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import SegmentValues
from sinks.clickhouse.database import Database

_KIND: Kind = "failure_rate"
JUDGED = timedelta(hours=6)
_MOST = 5_000  # failing traces whose contexts are looked at


class Rated(NamedTuple):
    """The windows of one series by fingerprint, each in order of time."""

    series: Series
    windows: Mapping[str, Sequence[Counted]]


def watch_failure_rates(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    base_s: int,
    segments: SegmentValues,
    term: Term,
    now: datetime,
) -> Watched:
    """What closed windows of the last hours say of metrics judged by their mean is told when this returns.

    `now` is the server's time.
    """
    told: dict[Place, Trouble | Over] = {
        place: Over(place, _KIND, now) for place in standing(database, _KIND) if place.aspect == "level"
    }
    until = int(now.timestamp())
    live = scored_in(base_s, until - int(JUDGED.total_seconds()))
    read = 0
    for app in apps_in(database, live):
        watched = rules_of(app, metrics, rules)
        own = rules.of(app)
        for one in rated(database, app, watched, live, base_s):
            read += sum(map(len, one.windows.values()))
            rule = watched[one.series.metric]
            place = Place(aspect="level", **one.series._asdict())
            found = recent(that_count(one.windows, own.min_sample), rule.failure_limit, own)
            if found.since_bad is not None:
                told[place] = trouble_of(database, one.series, rule, found.since_bad, metrics, segments, rules)
            elif found.state == "unclear":
                told.pop(place, None)
    return Watched(read, tell(database, list(told.values()), rules, term, now))


def scored_in(base_s: int, since: int, until: int | None = None) -> str:
    """Condition on live base windows with scores, uncut, that start since then and before `until`; seconds."""
    end = "" if until is None else f" AND start < toDateTime({until}, 'UTC')"
    return (
        f"run_id = 'live' AND size_s = {base_s} AND segment = '' AND scored > 0 "
        f"AND start >= toDateTime({since}, 'UTC'){end}"
    )


def apps_in(database: Database, live: str) -> list[str]:
    """Applications with such windows."""
    return [row["app"] for row in database.rows(f"SELECT DISTINCT app FROM windows WHERE {live} ORDER BY app")]


def rules_of(app: str, metrics: Mapping[str, WatchedMetric], rules: RuleSettings) -> dict[str, Rule]:
    """By metric the rules whose failures are counted: others than the mean look at single records already."""
    found = {name: rule_of_app(app, metric, rules) for name, metric in metrics.items()}
    return {name: rule for name, rule in found.items() if rule is not None and rule.kind == "mean"}


def rated(database: Database, app: str, watched: Mapping[str, Rule], live: str, base_s: int) -> list[Rated]:
    """Of each metric and model the records of every window, and how many fail."""
    names = sql.array(map(sql.text, watched), "String")
    good = [edges(rule.watched.scale, rule.least, rule.greatest) for rule in watched.values()]
    lowest, highest = ([str(one.lowest) for one in good], [str(one.highest) for one in good])
    rows = database.rows(
        f"""
        WITH {names} AS names, {sql.array(lowest, "Int64")} AS lowest, {sql.array(highest, "Int64")} AS highest
        SELECT environment, metric, model, groupArray((fingerprint, windows)) AS fingerprints
        FROM (
            SELECT environment, metric, model, fingerprint, groupArray((at, n, wrong)) AS windows
            FROM (
                SELECT environment, metric, model, fingerprint, toUnixTimestamp(start) AS at, sum(scored) AS n,
                    sum({in_bins("lowest[nth]", "highest[nth]")}) AS wrong
                FROM (
                    SELECT *, indexOf(names, metric) AS nth FROM windows FINAL
                    WHERE {live} AND app = {sql.text(app)} AND metric IN {sql.texts(watched)}
                )
                GROUP BY environment, metric, model, fingerprint, at
            ) GROUP BY environment, metric, model, fingerprint
        ) GROUP BY environment, metric, model ORDER BY environment, metric, model"""
    )
    return [
        Rated(
            Series(app, row["environment"], row["metric"], row["model"], "", ""),
            {
                name: sorted(Counted(at, at + base_s, n, wrong) for at, n, wrong in some)
                for name, some in row["fingerprints"]
            },
        )
        for row in rows
    ]


def that_count(windows: Mapping[str, Sequence[Counted]], min_sample: int) -> tuple[Counted, ...]:
    """Those of the newest fingerprint that scores now, with enough records for one stretch."""
    spans: dict[Begun, list[Span]] = {}
    for name, some in windows.items():
        judged = [Span(one.start, one.end) for one in stretches(some, min_sample)]
        if judged:
            spans[Begun(min(one.start for one in some), name)] = judged[::-1]
    scoring = scoring_now(spans)
    if not scoring:
        return ()
    newest = scoring[-1]
    return tuple(one for one in windows[newest.begun.fingerprint] if one.start >= newest.since)


def trouble_of(
    database: Database,
    series: Series,
    rule: Rule,
    bad: Counted,
    metrics: Mapping[str, WatchedMetric],
    segments: SegmentValues,
    rules: RuleSettings,
) -> Trouble:
    """What is said of a series whose records fail too often."""
    place = Place(aspect="level", **series._asdict())
    since, until = (datetime.fromtimestamp(at, UTC) for at in (bad.start, bad.end))
    causes = _causes(database, series, rule, metrics, segments, bad)
    known = ", ".join(f"{cause} {count}" for cause, count in causes.items() if count)
    said = (
        f"{series.whereabouts}: {bad.wrong} of {bad.records} traces ({percent(bad.share)}) fail {series.metric}, above "
        f"the limit of {percent(rule.failure_limit)} (by cause: {known}); since {moment(since)}."
    )
    attributes = {
        **part_wrong(bad.wrong, bad.records, rule.failure_limit),
        "min": rule.least,
        "max": rule.greatest,
        "causes": causes,
    }
    account = account_of(
        _KIND,
        place,
        rule.watched,
        said,
        attributes,
        rules,
        wrong=bad.wrong,
        traffic=facts.traffic(database, series, since, until),
        severity=rule.severity,
        examples=facts.examples(database, series, rule, segments, since, until),
    )
    return Trouble(place, account, since, until)


def _causes(
    database: Database,
    series: Series,
    rule: Rule,
    metrics: Mapping[str, WatchedMetric],
    segments: SegmentValues,
    bad: Counted,
) -> dict[str, int]:
    """Traces by what they failed for; `unknown` where no retrieval metric looked at them, or it is not of answers."""
    records = records_of(series, segments, bad.start, bad.end)
    where = (
        "run_id = 'live' AND app = {app:String} AND environment = {environment:String} "
        f"AND time >= toDateTime({bad.start}, 'UTC') AND time < toDateTime({bad.end}, 'UTC')"
    )
    asked = records.parameters | lines(rule)
    failed = database.rows(
        f"SELECT count() AS n FROM scores FINAL WHERE {where} AND evaluator = {{evaluator:String}} "
        "AND model = {model:String} AND status = 'failed'",
        asked,
    )
    parse = {"parse": int(failed[0]["n"])}
    type_, judging = type_of(rule.watched, _KIND), of_contexts(metrics)
    if type_ == "retrieval":
        return {"retrieval": bad.wrong, "generation": 0, "unknown": 0, **parse}
    if type_ != "accuracy" or not judging:
        return {"retrieval": 0, "generation": 0, "unknown": bad.wrong, **parse}
    failing = f"SELECT trace_id FROM {records.rows} AND {beyond()} ORDER BY cityHash64(trace_id) LIMIT {_MOST}"
    rows = database.rows(
        f"""
        SELECT countIf(are_bad) AS retrieval, countIf(NOT are_bad) AS generation
        FROM (
            SELECT trace_id, {ARE_BAD} AS are_bad
            FROM ({looked_at(judging, f"{where} AND trace_id IN ({failing})")}) GROUP BY trace_id
        )""",
        asked,
    )
    found = {name: int(rows[0][name]) for name in ("retrieval", "generation")}
    return {**found, "unknown": max(bad.wrong - sum(found.values()), 0), **parse}
