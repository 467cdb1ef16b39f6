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

from drift.causes.cause import Cause, explain
from drift.causes.culprit import LEAST_TIMES
from drift.causes.question import Question, question_of
from drift.causes.wording import sentence
from drift.jobs import Jobs
from drift.problems.events import place_of
from drift.problems.folding import load_problems
from drift.problems.onset import onset_of
from drift.problems.problem import EventRow, Problem, event_id
from drift.rules.choose import coverage_rule_for, rule_for
from drift.rules.series import Series
from drift.settings import RuleSettings
from drift.windows.metrics import WatchedMetric
from drift.windows.segments import segment_values
from evaluators.errors import Transient

logger = logging.getLogger(__name__)

MOST_TRIES = 3
MOST_ASKED = 4  # times of one opening, as long as too few windows tell nothing
_ASPECTS = ("level", "coverage")
_AGAIN_AT = "again_at"  # attribute of a cause that is not known yet
_SPREAD = "spread"  # causes are of means and shares


class Explained(NamedTuple):
    """How many problems have a cause since this run, and of how many finding it failed."""

    told: int
    failed: int


@dataclass(slots=True)
class Explaining:
    """Holds what one process tried in vain, by the id of the event that would have come of it."""

    failures: Counter[str] = field(default_factory=Counter)

    def run(self, jobs: Jobs, now: datetime) -> Explained:
        """Causes of some open problems that are due are stored on return, those of the newest problems first.

        At most `explain_problems`, and none is begun after `explain_s`. One whose explanation fails is tried
        `MOST_TRIES` times; where the database goes away meanwhile, raises `Transient`. `now` is the server's time.
        """
        asked = list(_asked(jobs, now))
        self.failures = Counter({one.event_id: self.failures[one.event_id] for one in asked})
        untired = [one for one in asked if self.failures[one.event_id] < MOST_TRIES]
        began, told, failed = time.monotonic(), 0, 0
        for one in untired[: jobs.settings.explain_problems]:
            if time.monotonic() - began > jobs.settings.explain_s:
                break
            try:
                event = _explained(jobs, one, now)
            except Transient:  # the others' tries are not spent on it; too heavy a question is a try, as any failure
                self.failures[one.event_id] += 1
                raise
            except Exception:  # of a scheduled job: what one problem meets keeps no other from its cause
                self.failures[one.event_id] += 1
                failed += 1
                logger.exception("problem %s is not explained", one.problem.problem_id)
                continue
            jobs.database.insert("problem_events", [event])
            logger.info("problem %s explained: %s", event.problem_id, event.description)
            told += 1
        return Explained(told, failed)


class _Asked(NamedTuple):
    """A problem that has no cause yet, the `attempt` to find one, from 1 on, and the event that tells it."""

    problem: Problem
    question: Question
    attempt: int
    event_id: str


def _asked(jobs: Jobs, now: datetime) -> Iterator[_Asked]:
    """The newest first."""
    for problem in load_problems(jobs.database, states=("open",)):
        attempt = _attempt(problem, now) if problem.aspect in _ASPECTS else None
        question = question_about(problem, jobs.metrics, jobs.rules) if attempt is not None else None
        if attempt is not None and question is not None:
            again = (attempt,) if attempt > 1 else ()
            id_ = event_id(problem.problem_id, problem.episode, "explained", problem.openings, *again)
            yield _Asked(problem, question, attempt, id_)


def _attempt(problem: Problem, now: datetime) -> int | None:
    """None where the cause is known, or nothing more can be known of it yet."""
    if not problem.explanation:
        return 1
    again_at = _time(problem.cause.get(_AGAIN_AT))
    return None if again_at is None or now < again_at else int(problem.cause["attempt"]) + 1


def _again_at(cause: Cause, attempt: int, base_s: int, now: datetime) -> datetime | None:
    """When enough windows may have closed, each time twice as late: not every one has traffic."""
    if not cause.too_few or attempt >= MOST_ASKED:
        return None
    return now + timedelta(seconds=base_s * (LEAST_TIMES - cause.times) * 2 ** (attempt - 1))


def question_about(problem: Problem, metrics: Mapping[str, WatchedMetric], rules: RuleSettings) -> Question | None:
    """What to ask about a problem; None where nobody has the metric, or what moved is how far its values spread.

    A rule says what counts where it found the problem or judges by records. Detectors see every move of a metric
    without bounds, also of values that no line parts.
    """
    metric = metrics.get(problem.metric)
    kind = "coverage" if problem.aspect == "coverage" else "threshold"
    voice = problem.voices[kind] if kind in problem.holding else None
    said = problem.attributes if voice is None else voice.attributes
    if metric is None or said.get("channel") == _SPREAD:
        return None
    series = Series(**{name: getattr(problem, name) for name in Series._fields})
    rule = (coverage_rule_for if kind == "coverage" else rule_for)(series, metric, rules)
    since = _time(said.get("since")) or onset_of(problem)
    until = _time(said.get("until")) or problem.last_seen_at
    if rule is not None and (voice is not None or kind == "coverage" or metric.scale.bounded):
        asked = question_of(series, rule, since, until, problem.problem_id)
    elif kind == "coverage":
        return None
    else:
        where = {name: getattr(series, name) for name in Series._fields if name != "metric"}
        asked = Question(watched=metric, since=since, until=until, problem_id=problem.problem_id, **where)
    has_come = any("model_before" in one.attributes for one in problem.voices.values())
    return replace(asked, model=None) if has_come else asked  # of the model alone nothing is known before


def _time(said: object) -> datetime | None:
    return datetime.fromisoformat(said) if isinstance(said, str) and said else None


def _explained(jobs: Jobs, asked: _Asked, now: datetime) -> EventRow:
    """The event; it says nothing of how the problem was found, and so no kind's words change."""
    problem = asked.problem
    segments = segment_values(jobs.database, jobs.windows, jobs.term, now)
    cause = explain(jobs.database, jobs.metrics, asked.question, segments, jobs.windows.base_s)
    again_at = _again_at(cause, asked.attempt, jobs.windows.base_s, now)
    said = {"opening": problem.openings, "attempt": asked.attempt, _AGAIN_AT: again_at and again_at.isoformat()}
    return EventRow(
        problem_id=problem.problem_id,
        event_id=asked.event_id,
        event="explained",
        episode=problem.episode,
        at=max(now, problem.last_event_at),
        **place_of(problem)._asdict(),
        description=sentence(cause),
        attributes=json.dumps({**cause.attributes, **said}, sort_keys=True, allow_nan=False),
        epoch=jobs.term.epoch,
    )
