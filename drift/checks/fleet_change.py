"""Check whether most applications changed at once: then what they share changed, or the day is not like others.

Each application still has its problems. They become symptoms of this one, so that one message is sent. The hour of an
open problem is fixed: what begins later is another change.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems import (
    FLEET_STAGES,
    OBJECTIVE,
    Detection,
    Problem,
    ProblemKey,
    build_details,
    group,
    load_problems,
    stage_of,
)
from ragtide.drift.settings import SEVERITIES, JobSettings
from ragtide.drift.stats import HOUR_S
from ragtide.drift.text import timestamp

MIN_APPS = 3
WITHIN = timedelta(hours=1)
_TRAFFIC = timedelta(days=1)  # an application without any for so long does not count
_CLOSES = timedelta(hours=2)  # by then a window of an hour is stored
_MOST_NAMES = 10  # applications in the message


class Simultaneous(NamedTuple):
    """The problems that began within an hour, in order of their onsets."""

    problems: Sequence[Problem]

    @property
    def apps(self) -> list[str]:
        """Their applications, by name."""
        return sorted({one.app for one in self.problems})


class FleetChanges(Check):
    """Problems of most applications began within an hour."""

    kind = "fleet_change"
    job = "fleet"
    has_history = False

    def interval_s(self, jobs: JobSettings) -> float:
        """Run often: messages of symptoms wait for this problem for `group_wait_s` only."""
        return jobs.every_s

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe each open problem of the fleet, and the hour of most others that none of them explains.

        An open one is bad as long as enough applications have symptoms, unclear as long as any has.
        """
        problems = load_problems(ctx.database, states=("open",))
        groups = group(problems, now)
        known = [one for one in problems if one.aspect == "fleet"]
        others = [one for one in problems if _has_known_onset(one) and _stands_alone(one, groups.parent(one))]
        found = most_simultaneous(others)
        if not known and len(found.apps) < MIN_APPS:
            return
        active = _active_apps(ctx, now)
        limit = max(MIN_APPS, math.ceil(ctx.rules.fleet_share * active))
        for one in known:
            symptoms = groups.symptoms_of(one)
            own = Simultaneous(sorted(filter(_has_known_onset, symptoms), key=_onset))
            detection = partial(_detection, ctx, ProblemKey.of(one), one.onset, own, active, limit, now)
            bad, cleared = len(own.apps) >= limit, not symptoms
            yield Observation.of(ProblemKey.of(one), bad=bad, cleared=cleared, detection=detection, read=len(symptoms))
        if len(found.apps) >= limit:
            since = found.problems[0].onset
            key = ProblemKey.of_system("fleet", "hour", timestamp(since))
            detection = partial(_detection, ctx, key, since, found, active, limit, now)
            yield Observation(key, "bad", detection, len(found.problems))


def most_simultaneous(problems: Sequence[Problem]) -> Simultaneous:
    """Return the problems of the hour in which those of most applications began; the first of equal hours."""
    ordered = sorted(problems, key=_onset)
    apps, best, first, last = Counter[str](), 0, 0, 0
    start = active = 0
    for end, one in enumerate(ordered, start=1):
        active += apps[one.app] == 0
        apps[one.app] += 1
        while one.onset - ordered[start].onset > WITHIN:
            apps[ordered[start].app] -= 1
            active -= apps[ordered[start].app] == 0
            start += 1
        if active > best:
            best, first, last = active, start, end
    return Simultaneous(ordered[first:last])


def _onset(problem: Problem) -> tuple[datetime, str]:
    return problem.onset, problem.problem_id


def _has_known_onset(one: Problem) -> bool:
    """Whether it may be a symptom here, and began within an hour that is known: a day's drift begins at midnight."""
    drift, window = one.by_kind.get("drift"), one.evidence.window
    return (
        one.app != ""
        and one.segment != OBJECTIVE
        and stage_of(one) in FLEET_STAGES
        and (drift is None or drift.evidence != one.evidence)
        and (window is None or window.end - window.start <= WITHIN)
    )


def _stands_alone(one: Problem, parent: Problem | None) -> bool:
    """Whether nothing outside its application explains it."""
    return parent is None or parent.app == one.app


def _active_apps(ctx: CheckContext, now: datetime) -> int:
    """Count the applications with traffic: by windows of an hour where there are any, which are fewer."""
    base_s = ctx.windows.base_s
    size_s, recent = (HOUR_S, now - _CLOSES) if HOUR_S in ctx.windows.all_sizes_s else (base_s, now - _TRAFFIC)
    [row] = ctx.database.rows(
        "SELECT uniqExact(app) AS n FROM windows WHERE run_id = 'live' AND segment = '' AND seen > 0 AND ("
        f"size_s = {size_s} AND start >= {{since:DateTime}} OR size_s = {base_s} AND start >= {{recent:DateTime}})",
        {"since": now - _TRAFFIC, "recent": recent},
    )
    return int(row["n"])


def _detection(
    ctx: CheckContext,
    key: ProblemKey,
    since: datetime,
    found: Simultaneous,
    active: int,
    limit: int,
    now: datetime,
) -> Detection:
    apps, problems = found.apps, found.problems
    named = ", ".join(apps[:_MOST_NAMES]) + (", ..." if len(apps) > _MOST_NAMES else "")
    message = (
        f"{len(apps)} of {max(active, len(apps))} applications changed between {timestamp(problems[0].onset)} and "
        f"{timestamp(problems[-1].onset)}: {named}. What they share may have changed, or the day is not like others."
    )
    attributes = {
        "value": len(apps),
        "limit": limit,
        "sample_size": active,
        "applications": apps,
        "problems": len(problems),
        "window": {"start": since.isoformat(), "end": (since + WITHIN).isoformat()},
    }
    severity = max((one.severity for one in problems), key=SEVERITIES.index)
    details = build_details(FleetChanges.kind, key, None, message, attributes, ctx.rules, severity=severity)
    return Detection(key, details, since, now)
