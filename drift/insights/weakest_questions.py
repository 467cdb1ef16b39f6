"""The questions that failed most often in a period. An insight points at traces; it never holds what users wrote."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from drift.leadership import Term
from drift.rules.choose import rule_for
from drift.rules.records import lines
from drift.rules.series import Rule, Series
from drift.settings import JobSettings, RuleSettings
from drift.taxonomy import type_of
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

TYPE = "weak_point"
_QUALITY = ("accuracy", "retrieval", "fairness", "privacy", "security", "data_quality")
_EXAMPLES = 10


class InsightRow(NamedTuple):
    """Table `insights`."""

    insight_id: str
    type: str
    app: str
    environment: str
    description: str
    attributes: str
    examples: Sequence[str]
    actions: Sequence[str]
    period_start: datetime
    period_end: datetime
    epoch: int


@dataclass(frozen=True, slots=True)
class Weakest:
    """One question, by the hash of its words, whatever their case, punctuation and spaces."""

    app: str
    environment: str
    question_hash: str
    asked: int
    failed: int
    metrics: Mapping[str, int]
    examples: tuple[str, ...]


def state_weakest_questions(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    settings: JobSettings,
    term: Term,
    now: datetime,
) -> list[InsightRow]:
    """The insights of the period that `now` lies in, stored; asked again they are stated anew under the same ids.

    Failed is a trace with a quality metric beyond the line that rules have for its app.
    """
    length = int(settings.insights_period_s)
    first = int(now.timestamp()) // length * length
    start, end = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(first + length, UTC)
    rows = []
    for app in _apps(database, start, end):
        watched = _rules(app, metrics, rules)
        if not watched:
            continue
        ranks: dict[str, int] = {}
        for found in weakest_questions(database, app, watched, settings, start, end):
            ranks[found.environment] = ranks.get(found.environment, 0) + 1
            rows.append(_row(found, ranks[found.environment], start, end, term))
    database.insert("insights", rows)
    return rows


def weakest_questions(
    database: Database,
    app: str,
    rules: Mapping[str, Rule],
    settings: JobSettings,
    start: datetime,
    end: datetime,
) -> list[Weakest]:
    """Questions asked often enough in [start, end), those with the greatest share of failed answers first.

    The share is shrunk by one success and one failure, so that three of three does not go before ninety of a hundred.
    """
    names = sorted(rules)
    least, greatest = ([repr(lines(rules[name])[side]) for name in names] for side in ("least", "greatest"))
    period = "time >= {start:DateTime64(3, 'UTC')} AND time < {end:DateTime64(3, 'UTC')}"
    rows = database.rows(
        f"""
        WITH {sql.array(map(sql.text, names), "String")} AS names, {sql.array(least, "Float64")} AS least,
            {sql.array(greatest, "Float64")} AS greatest
        SELECT environment, question, count() AS asked, countIf(notEmpty(bad)) AS failed,
            sumMap(arrayMap(m -> m, bad), arrayMap(m -> toUInt64(1), bad)) AS by_metric,
            arraySlice(arrayMap(one -> one.2, arrayReverseSort(groupArrayIf((length(bad), trace_id), notEmpty(bad)))),
                1, {_EXAMPLES}) AS worst
        FROM (
            SELECT environment, trace_id, groupArrayIf(metric, value < least[at] OR value > greatest[at]) AS bad
            FROM (
                SELECT environment, trace_id, concat(evaluator, '.', key) AS metric, value, indexOf(names, metric) AS at
                FROM scores FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
                WHERE run_id = 'live' AND app = {{app:String}} AND {period} AND status = 'scored'
            )
            WHERE at > 0
            GROUP BY environment, trace_id
        ) AS scored
        INNER JOIN (
            SELECT environment, trace_id, lower(hex(cityHash64(
                trimBoth(replaceRegexpAll(lowerUTF8(assumeNotNull(question)), '[\\\\s\\\\p{{P}}]+', ' '))))) AS question
            FROM trace_texts FINAL
            WHERE run_id = 'live' AND app = {{app:String}} AND {period} AND question IS NOT NULL AND question != ''
        ) AS asked_questions USING (environment, trace_id)
        GROUP BY environment, question
        HAVING asked >= {{min_traces:UInt64}} AND failed > 0
        ORDER BY environment, (failed + 1) / (asked + 2) DESC, failed DESC, question
        LIMIT {{most:UInt64}} BY environment
        """,
        {
            "app": app,
            "start": start,
            "end": end,
            "min_traces": settings.insights_min_traces,
            "most": settings.insights_questions,
        },
    )
    return [
        Weakest(
            app=app,
            environment=row["environment"],
            question_hash=row["question"],
            asked=row["asked"],
            failed=row["failed"],
            metrics=dict(zip(*row["by_metric"], strict=True)),
            examples=tuple(row["worst"]),
        )
        for row in rows
    ]


def _row(found: Weakest, rank: int, start: datetime, end: datetime, term: Term) -> InsightRow:
    identity = [TYPE, found.app, found.environment, start.isoformat(), end.isoformat(), rank]
    failing = sorted(found.metrics.items(), key=lambda item: (-item[1], item[0]))
    attributes: dict[str, Any] = {
        "app": found.app,
        "environment": found.environment,
        "rank": rank,
        "question_hash": found.question_hash,
        "asked": found.asked,
        "failed": found.failed,
        "failed_share": found.failed / found.asked,
        "metrics": dict(failing),
    }
    return InsightRow(
        insight_id=hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16],
        type=TYPE,
        app=found.app,
        environment=found.environment,
        description=(
            f"{found.app}: a question that was asked {found.asked} times failed {found.failed} times, "
            f"most often in {', '.join(name for name, _ in failing[:3])} (rank {rank} of the weakest questions)."
        ),
        attributes=json.dumps(attributes, sort_keys=True),
        examples=found.examples,
        actions=(
            "Read the example traces: is the answer in the index at all, and is it retrieved?",
            "Add or rewrite the document that should answer it, then replay the examples.",
        ),
        period_start=start,
        period_end=end,
        epoch=term.epoch,
    )


def _apps(database: Database, start: datetime, end: datetime) -> list[str]:
    rows = database.rows(
        "SELECT DISTINCT app FROM traces WHERE run_id = 'live' AND time >= {start:DateTime64(3, 'UTC')} "
        "AND time < {end:DateTime64(3, 'UTC')} ORDER BY app",
        {"start": start, "end": end},
    )
    return [row["app"] for row in rows]


def _rules(app: str, metrics: Mapping[str, WatchedMetric], settings: RuleSettings) -> dict[str, Rule]:
    """The rules of quality metrics for this app, whatever model and environment."""
    found = {}
    for name, metric in metrics.items():
        rule = rule_for(Series(app, "", name, "", "", ""), metric, settings)
        if rule is not None and type_of(metric, rule.kind) in _QUALITY:
            found[name] = rule
    return found
