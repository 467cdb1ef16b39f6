"""What a series' verdicts do to its problem: pending, opened, updated, resolved, reopened. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from drift.problems import Problem, event_id
from drift.rules.series import Rule, Verdict
from drift.settings import RuleSettings


@dataclass(frozen=True, slots=True)
class Step:
    """One event to come. `bad` are the breaching verdicts it rests on; the stretch is [since, until)."""

    event: str
    event_id: str
    episode: int
    since: datetime
    until: datetime
    bad: tuple[Verdict, ...]
    newest: Verdict | None


def next_step(
    problem_id: str,
    rule: Rule,
    verdicts: Sequence[Verdict],
    episodes: Sequence[Problem],
    settings: RuleSettings,
    now: datetime,
    closed_until: datetime,
) -> Step | None:
    """The event that follows, or None. Asked again after it was stored, there is none.

    `verdicts` in order of time, of one fingerprint, each on enough records; `episodes` of this problem so far.
    `closed_until` is the watermark: an `any` rule counts its quiet time by it.
    """
    last = max(episodes, key=lambda e: e.episode, default=None)
    judged_before = max((_until(e) for e in episodes if e.state == "resolved"), default=None)
    fresh = [v for v in verdicts if judged_before is None or v.start >= judged_before]
    if rule.kind == "any":
        quiet_from = closed_until - timedelta(seconds=settings.any_resolve_after_s)
        bad = [v for v in fresh if v.breached and v.end > quiet_from]
        opens = bool(bad)
    else:
        bad = [v for v in fresh[-rule.m :] if v.breached]
        opens = len(bad) >= rule.k and bool(fresh[-1].breached)
    newest = fresh[-1] if fresh else None

    def step(event: str, episode: int, *what: object, since: datetime | None = None) -> Step:
        first = since or (bad[0].start if bad else now)
        until = max((v.end for v in fresh), default=first)
        return Step(event, event_id(problem_id, episode, event, *what), episode, first, until, tuple(bad), newest)

    if last is not None and last.state == "open":
        since = _time(last, "since")
        if _is_over(rule, verdicts, bad):
            return step("resolved", last.episode, last.openings, since=since)
        if newest is not None and bad and _is_news(last, bad[-1], now, settings):
            return step("updated", last.episode, bad[-1].start, bad[-1].revision, since=since)
        return None
    pending = last is not None and last.state == "pending"
    episode = 1 if last is None else last.episode + (not pending)
    flapping = (
        last is not None
        and last.resolved_at is not None
        and (now - last.resolved_at).total_seconds() <= settings.flap_s
        and not pending
    )
    if opens and last is not None and flapping:
        return step("reopened", last.episode, last.openings + 1, since=_time(last, "since"))
    if opens:
        return step("opened", episode)
    if pending and last is not None and not bad:
        return step("withdrawn", last.episode, last.attributes.get("since", ""))
    if newest is not None and newest.breached and not pending and not flapping:
        return step("pending", episode, newest.start)
    return None


def disappeared(problem: Problem, now: datetime) -> Step:
    """The event where no rule watches the series any more."""
    event = "withdrawn" if problem.state == "pending" else "resolved"
    what = problem.attributes.get("since", "") if problem.state == "pending" else problem.openings
    since = _time(problem, "since")
    identity = event_id(problem.problem_id, problem.episode, event, what)
    return Step(event, identity, problem.episode, since, _until(problem), (), None)


def _is_over(rule: Rule, verdicts: Sequence[Verdict], bad: Sequence[Verdict]) -> bool:
    if rule.kind == "any":
        return not bad
    tail = verdicts[-rule.resolve_after :]
    return len(tail) == rule.resolve_after and not any(v.breached for v in tail)


def _is_news(problem: Problem, bad: Verdict, now: datetime, settings: RuleSettings) -> bool:
    """A bad stretch that the problem's words do not cover yet, and not too soon after the last ones."""
    seen = (problem.attributes.get("until", ""), problem.attributes.get("revision", 0))
    later = (bad.end.isoformat(), bad.revision) > seen and bad.end.isoformat() >= seen[0]
    return later and (now - problem.last_seen_at).total_seconds() >= settings.update_every_s


def _until(problem: Problem) -> datetime:
    return _time(problem, "until")


def _time(problem: Problem, name: str) -> datetime:
    said = problem.attributes.get(name)
    return datetime.fromisoformat(said) if said else problem.first_seen_at
