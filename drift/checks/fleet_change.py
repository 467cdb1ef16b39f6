"""Check whether most applications changed at once: then what they share changed, or the day is not like others.

Each application still has its problems. They become symptoms of this one, so that one message is sent.
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
from ragtide.drift.settings import SEVERITIES
from ragtide.drift.text import timestamp

MIN_APPS = 3
WITHIN = timedelta(hours=1)
KEY = ProblemKey.of_system("fleet", "applications", "")
_TRAFFIC = timedelta(days=1)  # an application without any for so long does not count
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

    def observe(self, ctx: CheckContext, now: datetime) -> Iterator[Observation]:
        """Observe the one key: bad as long as so many applications that changed within an hour have open problems."""
        found = most_simultaneous(_of_applications(load_problems(ctx.database, states=("open",)), now))
        if len(found.apps) < MIN_APPS:
            return
        active = _active_apps(ctx, now)
        bad = len(found.apps) >= max(MIN_APPS, math.ceil(ctx.rules.fleet_share * active))
        detection = partial(_detection, ctx, found, active, now)
        yield Observation.of(KEY, bad=bad, cleared=not bad, detection=detection, read=len(found.problems))


def most_simultaneous(problems: Sequence[Problem]) -> Simultaneous:
    """Return the problems of the hour in which those of most applications began; the first of equal hours."""
    ordered = sorted(problems, key=lambda one: (one.onset, one.problem_id))
    apps, best, first, last = Counter[str](), 0, 0, 0
    start = 0
    for end, one in enumerate(ordered, start=1):
        apps[one.app] += 1
        while one.onset - ordered[start].onset > WITHIN:
            apps -= Counter([ordered[start].app])
            start += 1
        if len(apps) > best:
            best, first, last = len(apps), start, end
    return Simultaneous(ordered[first:last])


def _of_applications(problems: Sequence[Problem], now: datetime) -> list[Problem]:
    """Return those that may be symptoms here, and that nothing outside their application explains."""
    groups = group(problems, now)
    return [
        one
        for one in problems
        if one.app
        and one.segment != OBJECTIVE
        and stage_of(one) in FLEET_STAGES
        and ((parent := groups.parent(one)) is None or parent.aspect == KEY.aspect or parent.app == one.app)
    ]


def _active_apps(ctx: CheckContext, now: datetime) -> int:
    [row] = ctx.database.rows(
        "SELECT uniqExact(app) AS n FROM windows WHERE run_id = 'live' AND segment = '' AND seen > 0 "
        f"AND size_s = {ctx.windows.base_s} AND start >= {{since:DateTime}}",
        {"since": now - _TRAFFIC},
    )
    return int(row["n"])


def _detection(ctx: CheckContext, found: Simultaneous, active: int, now: datetime) -> Detection:
    apps, problems = found.apps, found.problems
    first, last = problems[0].onset, problems[-1].onset
    named = ", ".join(apps[:_MOST_NAMES]) + (", ..." if len(apps) > _MOST_NAMES else "")
    message = (
        f"{len(apps)} of {max(active, len(apps))} applications changed between {timestamp(first)} and "
        f"{timestamp(last)}: {named}. What they share may have changed, or the day is not like others."
    )
    attributes = {
        "value": len(apps),
        "limit": max(MIN_APPS, math.ceil(ctx.rules.fleet_share * active)),
        "sample_size": active,
        "applications": apps,
        "problems": len(problems),
        "window": {"start": first.isoformat(), "end": last.isoformat()},
    }
    severity = max((one.severity for one in problems), key=SEVERITIES.index)
    details = build_details(FleetChanges.kind, KEY, None, message, attributes, ctx.rules, severity=severity)
    return Detection(KEY, details, first, now)
