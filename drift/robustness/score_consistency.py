"""Check repeated questions that are answered well on average, but badly at least once.

Questions are the same if their hash is (`traces.question_hash`), asked of one model with one prompt version, by probes
or in live traces. A question is inconsistent in a metric if the mean of its newest answers is good and the worst is
not, under one version of the evaluator. `ragtide.drift.robustness.answer_agreement` compares the answers themselves.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.checks import CheckContext, Observation
from ragtide.drift.insights import rule_bounds_query
from ragtide.drift.problems import Detection, ProblemKey, build_details
from ragtide.drift.robustness.answer_agreement import METRIC
from ragtide.drift.robustness.perturbation_links import STREAM
from ragtide.drift.robustness.repeated_questions import (
    AnswerPair,
    Consistency,
    RepeatedQuestions,
    above_limit,
    describe_share,
    share_attributes,
)
from ragtide.drift.rules import Rule, rule_of_app
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import Share
from ragtide.drift.text import scope_label, timestamp
from ragtide.drift.windows import MetricRef
from ragtide.sinks.clickhouse.database import Database

_MAX_ANSWERS = 10  # newest ones of a question: of hundreds one is bad by chance
_MAX_TRACES = 1_000_000  # traces of an application; with more, questions are a random sample
_EXAMPLES = 5  # questions


class _RepeatedQuestions(NamedTuple):
    """Questions of one key that were repeated often enough, their answers, and how many questions are inconsistent.

    `examples` are the worst and the best answer of a question each, the worst of all first.
    """

    key: ProblemKey
    questions: int
    inconsistent: int
    answers: int
    first: datetime
    last: datetime
    examples: tuple[tuple[str, str], ...]

    @property
    def share(self) -> Share:
        return Share(self.inconsistent, self.questions)


class ScoreConsistency(RepeatedQuestions):
    """Scores of answers to the same question are inconsistent."""

    @classmethod
    def owns(cls, key: ProblemKey) -> bool:
        """Exclude answers, which `AnswerAgreement` compares."""
        return key.metric != METRIC

    def compare(
        self, ctx: CheckContext, apps: Mapping[str, int], since: datetime, until: datetime
    ) -> Iterator[Consistency]:
        """Compare scores of every metric whose rule evaluates single records."""
        for app, traces in apps.items():
            rules, own = _rules(app, ctx.metrics, ctx.rules), ctx.rules.of(app)
            for one in _read_repeated_questions(ctx.database, app, rules, own, since, until, traces) if rules else ():
                state = above_limit(one.share, own.inconsistency_limit) if one.answers >= own.min_sample else "unclear"
                detection = partial(_detection, one, ctx.metrics[one.key.metric], own) if state == "bad" else None
                pairs = [AnswerPair("score", worst, best) for worst, best in one.examples]
                observation = Observation(one.key, state, detection, one.answers)
                yield Consistency(observation, one.share, own.inconsistency_limit, pairs)


def _rules(app: str, metrics: Mapping[str, MetricRef], settings: RuleSettings) -> dict[str, Rule]:
    """Return the rules of this application that evaluate single records, whatever model and environment."""
    found = {name: rule_of_app(app, metric, settings) for name, metric in metrics.items()}
    return {name: rule for name, rule in found.items() if rule is not None and rule.kind.per_record}


def _read_repeated_questions(
    database: Database,
    app: str,
    metric_rules: Mapping[str, Rule],
    rules: RuleSettings,
    since: datetime,
    until: datetime,
    traces: int,
) -> list[_RepeatedQuestions]:
    within = (
        f"{STREAM} AND app = {{app:String}} AND time >= {{since:DateTime64(3, 'UTC')}} "
        "AND time < {until:DateTime64(3, 'UTC')}"
    )
    sampled = f"question_hash != '' AND cityHash64(question_hash) % {math.ceil(traces / _MAX_TRACES)} = 0"
    evaluators = sql.texts(sorted({name.split(".")[0] for name in metric_rules}))
    rows = database.rows(
        f"""
        {rule_bounds_query(metric_rules)}
        SELECT environment, model, metric, count() AS questions, countIf(inconsistent) AS wrong, sum(n) AS answers,
            min(first_at) AS first, max(last_at) AS last,
            arrayMap(one -> (one.2, one.3), arraySlice(arraySort(
                groupArrayIf((-furthest, worst, best), inconsistent)), 1, {_EXAMPLES})) AS examples
        FROM (
            SELECT environment, model, metric, question_hash, prompt_version, fingerprint, count() AS n,
                min(time) AS first_at, max(time) AS last_at, avg(value) AS mean, max(beyond) AS furthest,
                argMax(trace_id, (beyond, trace_id)) AS worst, argMin(trace_id, (beyond, trace_id)) AS best,
                furthest > 0 AND mean >= any(least[at]) AND mean <= any(greatest[at]) AS inconsistent
            FROM (
                SELECT *, greatest(least[at] - value, value - greatest[at]) AS beyond
                FROM (
                    SELECT environment, trace_id, model, prompt_version, fingerprint, time, value,
                        concat(evaluator, '.', key) AS metric, indexOf(names, metric) AS at
                    FROM scores FINAL ARRAY JOIN mapKeys(metrics) AS key, mapValues(metrics) AS value
                    WHERE {within} AND status = 'scored' AND evaluator IN {evaluators}
                ) AS scored
                INNER JOIN (
                    SELECT environment, trace_id, question_hash FROM traces FINAL WHERE {within} AND question_hash IN (
                        SELECT question_hash FROM traces WHERE {within} AND {sampled}
                        GROUP BY question_hash HAVING count() >= {rules.inconsistency_askings})
                ) AS again USING (environment, trace_id)
                WHERE at > 0
                ORDER BY time DESC, trace_id
                LIMIT {_MAX_ANSWERS} BY environment, model, metric, question_hash, prompt_version, fingerprint
            )
            GROUP BY environment, model, metric, question_hash, prompt_version, fingerprint
            HAVING n >= {rules.inconsistency_askings}
        )
        GROUP BY environment, model, metric ORDER BY environment, model, metric""",
        {"app": app, "since": since, "until": until},
    )
    return [
        _RepeatedQuestions(
            ProblemKey(app, row["environment"], row["model"], "inconsistency", row["metric"]),
            row["questions"],
            row["wrong"],
            row["answers"],
            row["first"],
            row["last"],
            tuple(row["examples"]),
        )
        for row in rows
    ]


def _detection(one: _RepeatedQuestions, metric: MetricRef, rules: RuleSettings) -> Detection:
    key, share = one.key, one.share
    message = (
        f"{scope_label(key.app, key.environment)}: {share.hits} of {share.n} repeated questions passed {key.metric} on "
        f"average but failed it at least once. {describe_share('Share', share, rules.inconsistency_limit)} "
        f"Sample: {one.answers} answers since {timestamp(one.first)}."
    )
    attributes = {
        **share_attributes(share, rules.inconsistency_limit),
        "answers": one.answers,
        "compared": "scores",
        "pairs": [{"worst": worst, "best": best} for worst, best in one.examples],
    }
    account = build_details(
        RepeatedQuestions.kind,
        key,
        metric,
        message,
        attributes,
        rules,
        bad=share.hits,
        traffic=share.n,
        examples=[trace_id for pair in one.examples for trace_id in pair],
    )
    return Detection(key, account, one.first, one.last)
