"""Open problems of a metric get a cause, once an opening: by a job of its own, so that raising never waits for it.

Where too few windows have traffic to tell one, that is said, and it is asked again once there may be enough.
"""

import json
import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from ragtide.drift.jobs import JobContext
from ragtide.drift.problems.chart import onset_of
from ragtide.drift.problems.model import EventRow, Problem, event_id
from ragtide.drift.problems.report import key_of
from ragtide.drift.problems.store import load_problems
from ragtide.drift.rootcause.attribution import MIN_TIMES
from ragtide.drift.rootcause.explain import RootCause, explain
from ragtide.drift.rootcause.messages import root_cause_message
from ragtide.drift.rootcause.query import RcaQuery, rca_query
from ragtide.drift.rules.model import Series
from ragtide.drift.rules.resolve import coverage_rule_for, rule_for
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import MetricRef
from ragtide.drift.windows.segments import update_segment_values
from ragtide.evaluators.errors import Transient

logger = logging.getLogger(__name__)

MAX_TRIES = 3
MAX_ATTEMPTS = 4  # times of one opening, as long as too few windows tell nothing
_ASPECTS = ("level", "coverage")
_RETRY_AT = "again_at"  # attribute of a cause that is not known yet
_SPREAD = "spread"  # causes are of means and shares


class RootCauseResult(NamedTuple):
    """How many problems have a cause since this run, and of how many finding it failed."""

    explained: int
    failed: int


@dataclass(slots=True)
class RootCauseJob:
    """Holds what one process tried in vain, by the id of the event that would have come of it."""

    failures: Counter[str] = field(default_factory=Counter)

    def run(self, context: JobContext, now: datetime) -> RootCauseResult:
        """Causes of some open problems that are due are stored on return, those of the newest problems first.

        At most `explain_problems`, and none is begun after `explain_s`. One whose explanation fails is tried
        `MAX_TRIES` times; where the database goes away meanwhile, raises `Transient`. `now` is the server's time.
        """
        asked = list(_pending(context, now))
        self.failures = Counter({one.event_id: self.failures[one.event_id] for one in asked})
        due = [one for one in asked if self.failures[one.event_id] < MAX_TRIES]
        began, explained, failed = time.monotonic(), 0, 0
        for one in due[: context.settings.explain_problems]:
            if time.monotonic() - began > context.settings.explain_s:
                break
            try:
                event = _explanation_event(context, one, now)
            except Transient:  # the others' tries are not spent on it; too heavy a question is a try, as any failure
                self.failures[one.event_id] += 1
                raise
            except Exception:  # of a scheduled job: what one problem meets keeps no other from its cause
                self.failures[one.event_id] += 1
                failed += 1
                logger.exception("problem %s is not explained", one.problem.problem_id)
                continue
            context.database.insert("problem_events", [event])
            logger.info("problem %s explained: %s", event.problem_id, event.description)
            explained += 1
        return RootCauseResult(explained, failed)


class _Pending(NamedTuple):
    """A problem that has no cause yet, the `attempt` to find one, from 1 on, and the event that tells it."""

    problem: Problem
    query: RcaQuery
    attempt: int
    event_id: str


def _pending(context: JobContext, now: datetime) -> Iterator[_Pending]:
    """The newest first."""
    for problem in load_problems(context.database, states=("open",)):
        attempt = _attempt(problem, now) if problem.aspect in _ASPECTS else None
        question = query_for(problem, context.metrics, context.rules) if attempt is not None else None
        if attempt is not None and question is not None:
            again = (attempt,) if attempt > 1 else ()
            id_ = event_id(problem.problem_id, problem.episode, "explained", problem.openings, *again)
            yield _Pending(problem, question, attempt, id_)


def _attempt(problem: Problem, now: datetime) -> int | None:
    """None where the cause is known, or nothing more can be known of it yet."""
    if not problem.explanation:
        return 1
    retry_at = _time(problem.cause.get(_RETRY_AT))
    return None if retry_at is None or now < retry_at else int(problem.cause["attempt"]) + 1


def _retry_at(cause: RootCause, attempt: int, base_s: int, now: datetime) -> datetime | None:
    """When enough windows may have closed, each time twice as late: not every one has traffic."""
    if not cause.too_few or attempt >= MAX_ATTEMPTS:
        return None
    return now + timedelta(seconds=base_s * (MIN_TIMES - cause.times) * 2 ** (attempt - 1))


def query_for(problem: Problem, metrics: Mapping[str, MetricRef], rules: RuleSettings) -> RcaQuery | None:
    """What to ask about a problem; None where nobody has the metric, or what moved is how far its values spread.

    A rule says what counts where it found the problem or judges by records. Detectors see every move of a metric
    without bounds, also of values that no line parts.
    """
    metric = metrics.get(problem.metric)
    kind = "coverage" if problem.aspect == "coverage" else "threshold"
    voice = problem.voices[kind] if kind in problem.holding else None
    attributes = problem.attributes if voice is None else voice.attributes
    if metric is None or attributes.get("channel") == _SPREAD:
        return None
    series = Series(**{name: getattr(problem, name) for name in Series._fields})
    rule = (coverage_rule_for if kind == "coverage" else rule_for)(series, metric, rules)
    since = _time(attributes.get("since")) or onset_of(problem)
    until = _time(attributes.get("until")) or problem.last_seen_at
    if rule is not None and (voice is not None or kind == "coverage" or metric.scale.bounded):
        asked = rca_query(series, rule, since, until, problem.problem_id)
    elif kind == "coverage":
        return None
    else:
        where = {name: getattr(series, name) for name in Series._fields if name != "metric"}
        asked = RcaQuery(metric_ref=metric, since=since, until=until, problem_id=problem.problem_id, **where)
    has_come = any("model_before" in one.attributes for one in problem.voices.values())
    return replace(asked, model=None) if has_come else asked  # of the model alone nothing is known before


def _time(value: object) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) and value else None


def _explanation_event(context: JobContext, pending: _Pending, now: datetime) -> EventRow:
    """The event; it says nothing of how the problem was found, and so no kind's words change."""
    problem = pending.problem
    segments = update_segment_values(context.database, context.windows, context.term, now)
    cause = explain(context.database, context.metrics, pending.query, segments, context.windows.base_s)
    retry_at = _retry_at(cause, pending.attempt, context.windows.base_s, now)
    attributes = {"opening": problem.openings, "attempt": pending.attempt, _RETRY_AT: retry_at and retry_at.isoformat()}
    return EventRow(
        problem_id=problem.problem_id,
        event_id=pending.event_id,
        event="explained",
        episode=problem.episode,
        at=max(now, problem.last_event_at),
        **key_of(problem)._asdict(),
        description=root_cause_message(cause),
        attributes=json.dumps({**cause.attributes, **attributes}, sort_keys=True, allow_nan=False),
        epoch=context.term.epoch,
    )
