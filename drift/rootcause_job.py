"""Find the root cause of each problem of a metric, once per opening, apart from the job that raises problems.

A problem that opened and ended between two runs, as in a backlog, is explained by what it was while it was open. If too
few windows have traffic, the explanation says so, and the job tries again once there may be enough.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift import sql
from ragtide.drift.attributes import evidence_of
from ragtide.drift.jobs import JobContext
from ragtide.drift.problems import (
    EpisodeKey,
    EventRow,
    Problem,
    ProblemKey,
    event_id,
    fold_events,
    load_events,
    load_problems,
)
from ragtide.drift.rootcause import MIN_TIMES, RcaQuery, RootCause, explain_shift, rca_query, root_cause_message
from ragtide.drift.rules import Series, coverage_rule_for, rule_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows import MetricRef, update_segment_values
from ragtide.evaluators.errors import Transient
from ragtide.sinks.clickhouse.database import Database

logger = logging.getLogger(__name__)

MAX_TRIES = 3
MAX_ATTEMPTS = 4  # explanations per opening, as long as too few windows have traffic
_ASPECTS = ("level", "coverage")
_ENDED_WITHIN = timedelta(days=1)  # before now: the end of an unexplained problem was recorded
_SPREAD = "spread"  # a channel; causes are of means and shares


class RootCauseResult(NamedTuple):
    """How many problems this run explained, and for how many it failed."""

    explained: int
    failed: int


@dataclass(slots=True)
class RootCauseJob:
    """Explains problems; counts the failures of this process by the id of the event."""

    failures: Counter[str] = field(default_factory=Counter)

    def run(self, context: JobContext, now: datetime) -> RootCauseResult:
        """Explain the newest problems without a cause, open ones first, and store their events.

        At most `explain_problems`, and none is started after `explain_s`. A problem whose explanation fails is tried
        `MAX_TRIES` times; if the database goes away meanwhile, raises `Transient`. `now` is the server's time.
        """
        pending = list(_pending(context, now))
        self.failures = Counter({one.event_id: self.failures[one.event_id] for one in pending})
        due = [one for one in pending if self.failures[one.event_id] < MAX_TRIES]
        started, explained, failed = time.monotonic(), 0, 0
        for one in due[: context.settings.explain_problems]:
            if time.monotonic() - started > context.settings.explain_s:
                break
            try:
                event = _explanation_event(context, one, now)
            except Transient:  # the others' tries are not spent on it; too heavy a question is a try, as any failure
                self.failures[one.event_id] += 1
                raise
            except Exception:  # of a scheduled job: what one problem meets keeps no other from its cause
                self.failures[one.event_id] += 1
                failed += 1
                logger.exception("root cause of problem %s failed", one.problem.problem_id)
                continue
            context.database.insert("problem_events", [event])
            logger.info("problem %s explained: %s", event.problem_id, event.description)
            explained += 1
        return RootCauseResult(explained, failed)


class _Pending(NamedTuple):
    """A problem without a cause, the number of the attempt to find one, from 1 on, and the id of its event."""

    problem: Problem
    query: RcaQuery
    attempt: int
    event_id: str
    is_over: bool


def _pending(context: JobContext, now: datetime) -> Iterator[_Pending]:
    """Problems to explain: open ones, then those that ended unexplained, the newest first."""
    ongoing = load_problems(context.database, states=("open",))
    ended = _ended_unexplained(context.database, now)
    for problem, is_over in (*((one, False) for one in ongoing), *((one, True) for one in ended)):
        attempt = _attempt(problem, now) if problem.aspect in _ASPECTS else None
        query = query_for(problem, context.metrics, context.rules) if attempt is not None else None
        if attempt is not None and query is not None:
            again = (attempt,) if attempt > 1 else ()
            id_ = event_id(problem.problem_id, problem.episode, "explained", problem.openings, *again)
            yield _Pending(problem, query, attempt, id_, is_over)


def _ended_unexplained(database: Database, now: datetime) -> list[Problem]:
    """Load problems whose end was recorded within `_ENDED_WITHIN`, as they were before their end."""
    rows = database.rows(
        f"""
        SELECT problem_id, episode FROM problem_events FINAL WHERE aspect IN {sql.texts(_ASPECTS)}
        GROUP BY problem_id, episode
        HAVING maxIf(recorded_at, event = 'resolved') >= {{since:DateTime64(3, 'UTC')}}
            AND uniqExactIf(opening, event = 'explained')
                < countIf(event IN ('opened', 'reopened'))""",
        {"since": now - _ENDED_WITHIN},
    )
    if not rows:
        return []
    wanted = {EpisodeKey(**row) for row in rows}
    events = load_events(database, ids={one.problem_id for one in wanted})
    over = {EpisodeKey.of(one) for one in fold_events(events) if one.state == "resolved" and not one.explanation}
    before_end = fold_events(one for one in events if one.event != "resolved")
    found = [one for one in before_end if EpisodeKey.of(one) in over & wanted]
    return sorted(found, key=lambda one: one.opened_at or one.first_seen_at, reverse=True)


def _attempt(problem: Problem, now: datetime) -> int | None:
    """Return the number of the next attempt; None if the cause is known, or the retry is not due."""
    if not problem.explanation:
        return 1
    last = evidence_of(problem.cause)
    return None if last.again_at is None or now < last.again_at else last.attempt + 1


def _retry_at(cause: RootCause, attempt: int, base_s: int, now: datetime) -> datetime | None:
    """Return when enough windows may have closed, twice as late at each attempt: not every window has traffic."""
    if not cause.too_few or attempt >= MAX_ATTEMPTS:
        return None
    return now + timedelta(seconds=base_s * (MIN_TIMES - cause.times) * 2 ** (attempt - 1))


def query_for(problem: Problem, metrics: Mapping[str, MetricRef], rules: RuleSettings) -> RcaQuery | None:
    """Return the query for a problem; None if no evaluator has the metric, or only the spread of its values shifted.

    A rule's bounds apply if the rule found the problem or the metric is bounded: detectors see every shift of an
    unbounded metric, also of values that no bound divides.
    """
    metric = metrics.get(problem.metric)
    kind = "coverage" if problem.aspect == "coverage" else "threshold"
    own = problem.by_kind[kind] if kind in problem.active_kinds else None
    evidence = problem.evidence if own is None else own.evidence
    if metric is None or evidence.channel == _SPREAD:
        return None
    series = Series(**{name: getattr(problem, name) for name in Series._fields})
    rule = (coverage_rule_for if kind == "coverage" else rule_for)(series, metric, rules)
    if kind == "coverage" and rule is None:
        return None
    if kind != "coverage" and own is None and not metric.scale.bounded:
        rule = None
    since, until = evidence.since or problem.onset, evidence.until or problem.last_seen_at
    query = rca_query(series, metric, rule, since, until, problem.problem_id)
    is_rollout = any(one.evidence.model_before for one in problem.by_kind.values())
    return replace(query, model=None) if is_rollout else query  # of the model alone nothing is known before


def _explanation_event(context: JobContext, pending: _Pending, now: datetime) -> EventRow:
    """Return the event to store; it changes no kind's message."""
    problem = pending.problem
    segments = update_segment_values(context.database, context.windows, context.term, now)
    cause = explain_shift(context.database, context.metrics, pending.query, segments, context.windows.base_s)
    again_at = None if pending.is_over else _retry_at(cause, pending.attempt, context.windows.base_s, now)
    attributes = {
        "opening": problem.openings,
        "attempt": pending.attempt,
        "again_at": again_at and again_at.isoformat(),
    }
    return EventRow(
        problem_id=problem.problem_id,
        event_id=pending.event_id,
        event="explained",
        episode=problem.episode,
        at=max(now, problem.last_event_at),
        **ProblemKey.of(problem)._asdict(),
        description=root_cause_message(cause),
        attributes=json.dumps({**cause.attributes, **attributes}, sort_keys=True, allow_nan=False),
        epoch=context.term.epoch,
    )
