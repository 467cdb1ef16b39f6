"""Run a check: store the events of the present, and before them those of the time that no run observed.

After an outage of jobs or workers, two runs lie far apart. The states in between come from `Check.history`; their
events have the dates that live runs would have given them.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain

from ragtide.drift import cursors
from ragtide.drift.checks.engine import Check, CheckContext, Observation
from ragtide.drift.problems import (
    CheckResult,
    Clear,
    Detection,
    EventRow,
    Problem,
    ProblemKey,
    fold_events,
    last_episode,
    load_events,
    open_detections,
    problem_id,
    report_detections,
    rule_lifecycle,
    transitions_for,
)
from ragtide.drift.stats import calendar

_MAX_GAP_S = calendar.DAY_S  # after a longer outage, only the last day is judged
_Instants = list[tuple[int, Observation]]


def run_check(check: Check, ctx: CheckContext, now: datetime) -> CheckResult:
    """Observe the time since the last run and `now`, the server's time; store the events that follow."""
    assert ctx.term is not None, "a backtest simulates"
    missed = _catch_up(check, ctx, now) if check.job and check.has_history else []
    found = list(check.observe(ctx, now))
    reports: dict[ProblemKey, Detection | Clear] = {}
    for key in open_detections(ctx.database, check.kind):
        until = check.judged_until(ctx, key, now) if check.owns(key) else None
        if until is not None:
            reports[key] = Clear(key, check.kind, until)
    for one in found:
        if one.detection is not None:
            reports[one.key] = one.detection()
        elif one.state == "unclear":
            reports.pop(one.key, None)
    events = report_detections(ctx.database, list(reports.values()), ctx.rules, ctx.term, now)
    return CheckResult(sum(one.read for one in found), [*missed, *events])


def _catch_up(check: Check, ctx: CheckContext, now: datetime) -> Sequence[EventRow]:
    """Store and return the events of the instants that no run observed, up to the slowest lane's watermark.

    An interval counts as missed if it is longer than two runs are apart. A killed run may be repeated: instants up to
    the last report of a problem are left out. Without an earlier run, there is nothing to catch up on.
    """
    if not ctx.watermarks:
        return ()
    base_s = ctx.windows.base_s
    until = calendar.floor(min(ctx.watermarks.values()).timestamp(), base_s)
    name = f"check {check.job} {check.rule or check.kind}"
    judged_until = cursors.load(ctx.database, name)
    if until <= judged_until:
        return ()
    events: Sequence[EventRow] = ()
    if judged_until and until - judged_until > 2 * max(check.interval_s(ctx.jobs), base_s) + base_s:
        first = max(judged_until, until - _MAX_GAP_S)
        missed = _changes(check, ctx, first, until - base_s)
        events = _apply(check, ctx, missed, now - calendar.utc(until))
    cursors.save(ctx.database, name, until)
    return events


def _changes(check: Check, ctx: CheckContext, first: int, until: int) -> dict[ProblemKey, _Instants]:
    """Return the instants in (first, until] at which a key's state changes to bad or good."""
    found: dict[ProblemKey, _Instants] = {}
    relevant = set(open_detections(ctx.database, check.kind))
    for at, one in check.history(ctx, first - check.history_lookback_s, until):
        if at <= first or one.state == "unclear":
            continue
        if one.key in found:
            if found[one.key][-1][1].state != one.state:
                found[one.key].append((at, one))
        elif one.state == "bad" or one.key in relevant:
            found[one.key] = [(at, one)]
    return found


def _apply(
    check: Check, ctx: CheckContext, missed: Mapping[ProblemKey, _Instants], delay: timedelta
) -> Sequence[EventRow]:
    assert ctx.term is not None, "a backtest simulates"
    if not missed:
        return ()
    with ctx.term.problem_lock:
        rows: dict[str, list[EventRow]] = {problem_id(*key): [] for key in missed}
        for row in load_events(ctx.database, ids=set(rows)):
            rows[row.problem_id].append(row)
        found = [_events(check, ctx, key, some, rows[problem_id(*key)], delay) for key, some in missed.items()]
        events = sorted(chain.from_iterable(found), key=lambda event: event.at)
        ctx.database.insert("problem_events", events)
    return events


def _events(
    check: Check,
    ctx: CheckContext,
    key: ProblemKey,
    some: Iterable[tuple[int, Observation]],
    stored: list[EventRow],
    delay: timedelta,
) -> list[EventRow]:
    """Return the events of one problem, in order; `delay` lies between an instant and the date of its events."""
    assert ctx.term is not None
    epoch, id_, events = ctx.term.epoch, problem_id(*key), list[EventRow]()
    states = [state for one in fold_events(stored) if (state := one.by_kind.get(check.kind)) is not None]
    reported_until = max((state.evidence.until for state in states if state.evidence.until is not None), default=None)
    for at, one in some:
        instant = calendar.utc(at)
        if reported_until is not None and instant <= reported_until:
            continue
        last = last_episode([*stored, *events])
        if last is not None and (timeout := _flap_timeout(last, ctx, instant + delay)) is not None:
            events.append(timeout)
            last = last_episode([*stored, *events])
        is_active = last is not None and last.state == "open" and check.kind in last.active_kinds
        if one.detection is not None and not is_active:
            events += transitions_for([one.detection()], {id_: [*stored, *events]}, ctx.rules, epoch, instant + delay)
        elif one.detection is None and is_active:
            clear = Clear(key, check.kind, instant)
            events += transitions_for([clear], {id_: [*stored, *events]}, ctx.rules, epoch, instant + delay)
    return events


def _flap_timeout(last: Problem, ctx: CheckContext, date: datetime) -> EventRow | None:
    """Return the event that resolved a problem that flapped and was quiet for long enough before that date."""
    quiet_since = last.all_clear_since
    if last.state != "open" or quiet_since is None:
        return None
    resolved_at = quiet_since + timedelta(seconds=ctx.rules.of(last.app).flapping_quiet_s)
    if resolved_at > date or ctx.term is None:
        return None
    return rule_lifecycle.flap_timeout_event(last, ctx.rules, resolved_at, ctx.term.epoch)
