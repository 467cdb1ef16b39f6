"""The same question asked again and answered well on the whole, badly once: a problem where many questions are so.

The same question is one with the same hash (`traces.question_hash`), asked of one model with one prompt version, by
probes or in live traces. It is inconsistent in a metric where the mean of its last answers is good and the worst is
not, under one version of the evaluator. What answers say is compared by `drift.flips.disagreeing`.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from drift.flips.asked import KIND, Pair, Seen, asked_since, asking, told
from drift.flips.disagreeing import METRIC
from drift.flips.judging import attributes_of, in_words, judged
from drift.flips.links import STREAM
from drift.insights.answered import with_lines
from drift.insights.shares import Share
from drift.leadership import Term
from drift.phrases import moment, percent, whereabouts
from drift.problems.accounts import account_of
from drift.problems.events import Place
from drift.problems.troubles import Trouble, Watched, standing
from drift.rules.choose import rule_of_app
from drift.rules.series import Rule
from drift.settings import RuleSettings
from drift.windows import sql
from drift.windows.metrics import WatchedMetric
from sinks.clickhouse.database import Database

_ANSWERS = 10  # of a question, the last ones: of hundreds one is bad by chance
_QUESTIONS = 1_000_000  # traces of an application beyond which questions are drawn by lot
_EXAMPLES = 5  # questions


class _Asked(NamedTuple):
    """Questions of one place that were asked often enough, their answers, and how many questions are inconsistent.

    `examples` are the worst answer and the best of a question each, the furthest apart from its line first.
    """

    place: Place
    questions: int
    wrong: int
    answers: int
    first: datetime
    last: datetime
    examples: tuple[tuple[str, str], ...]

    @property
    def share(self) -> Share:
        return Share(self.wrong, self.questions)


def watch_inconsistency(
    database: Database, metrics: Mapping[str, WatchedMetric], rules: RuleSettings, term: Term, now: datetime
) -> Watched:
    """What questions asked again in the last day or so say is told when this returns; `now` is the server's time."""
    since = asked_since(rules, now)
    before = [place for place in standing(database, KIND) if place.metric != METRIC]
    found = seen(database, metrics, rules, asking(database, since, now), since, now)
    return told(database, found, before, rules, term, now)


def seen(
    database: Database,
    metrics: Mapping[str, WatchedMetric],
    rules: RuleSettings,
    apps: Mapping[str, int],
    since: datetime,
    until: datetime,
) -> Iterator[Seen]:
    """What questions of that time say of these applications, of which so many traces ask some."""
    for app, traces in apps.items():
        watched, own = _rules(app, metrics, rules), rules.of(app)
        for one in _asked(database, app, watched, own, since, until, traces) if watched else ():
            state = judged(one.share, own.inconsistency_limit) if one.answers >= own.min_sample else "unclear"
            trouble = _trouble(one, metrics[one.place.metric], own) if state == "bad" else None
            pairs = [Pair("score", worst, best) for worst, best in one.examples]
            yield Seen(one.place, one.answers, one.share, own.inconsistency_limit, pairs, state, trouble)


def _rules(app: str, metrics: Mapping[str, WatchedMetric], settings: RuleSettings) -> dict[str, Rule]:
    """Of metrics that rules watch record by record in this app, whatever model and environment."""
    found = {name: rule_of_app(app, metric, settings) for name, metric in metrics.items()}
    return {name: rule for name, rule in found.items() if rule is not None and rule.kind != "value"}


def _asked(
    database: Database,
    app: str,
    watched: Mapping[str, Rule],
    rules: RuleSettings,
    since: datetime,
    until: datetime,
    traces: int,
) -> list[_Asked]:
    within = (
        f"{STREAM} AND app = {{app:String}} AND time >= {{since:DateTime64(3, 'UTC')}} "
        "AND time < {until:DateTime64(3, 'UTC')}"
    )
    drawn = f"question_hash != '' AND cityHash64(question_hash) % {math.ceil(traces / _QUESTIONS)} = 0"
    evaluators = sql.texts(sorted({name.split(".")[0] for name in watched}))
    rows = database.rows(
        f"""
        {with_lines(watched)}
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
                        SELECT question_hash FROM traces WHERE {within} AND {drawn}
                        GROUP BY question_hash HAVING count() >= {rules.inconsistency_askings})
                ) AS again USING (environment, trace_id)
                WHERE at > 0
                ORDER BY time DESC, trace_id
                LIMIT {_ANSWERS} BY environment, model, metric, question_hash, prompt_version, fingerprint
            )
            GROUP BY environment, model, metric, question_hash, prompt_version, fingerprint
            HAVING n >= {rules.inconsistency_askings}
        )
        GROUP BY environment, model, metric ORDER BY environment, model, metric""",
        {"app": app, "since": since, "until": until},
    )
    return [
        _Asked(
            Place(app, row["environment"], row["model"], "inconsistency", row["metric"]),
            row["questions"],
            row["wrong"],
            row["answers"],
            row["first"],
            row["last"],
            tuple(row["examples"]),
        )
        for row in rows
    ]


def _trouble(one: _Asked, metric: WatchedMetric, rules: RuleSettings) -> Trouble:
    place, share = one.place, one.share
    said = (
        f"{whereabouts(place.app, place.environment)}: {share.hits} of {share.n} questions that were asked again "
        f"({in_words(share)}) passed {place.metric} on the mean and failed it at least once, above the limit of "
        f"{percent(rules.inconsistency_limit)}; {one.answers} answers since {moment(one.first)}."
    )
    attributes = {
        **attributes_of(share, rules.inconsistency_limit),
        "answers": one.answers,
        "compared": "scores",
        "pairs": [{"worst": worst, "best": best} for worst, best in one.examples],
    }
    account = account_of(
        KIND,
        place,
        metric,
        said,
        attributes,
        rules,
        wrong=share.hits,
        traffic=share.n,
        examples=[trace_id for pair in one.examples for trace_id in pair],
    )
    return Trouble(place, account, one.first, one.last)
