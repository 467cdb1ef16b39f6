"""What a series' verdicts do to its problem: pending, opened, updated, resolved, reopened. Pure."""

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True, slots=True)
class _Heard:
    """The verdicts since the last episode was over: `bad` those that count against the series, `opens` whether they
    are enough for a problem.
    """

    fresh: Sequence[Verdict]
    bad: Sequence[Verdict]
    opens: bool

    @property
    def newest(self) -> Verdict | None:
        """The last one, None before there is any."""
        return self.fresh[-1] if self.fresh else None


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
    heard = _heard(rule, verdicts, episodes, closed_until - timedelta(seconds=settings.any_resolve_after_s))

    def step(event: str, episode: int, *what: object, since: datetime | None = None) -> Step:
        first = since or (heard.bad[0].start if heard.bad else now)
        until = max((v.end for v in heard.fresh), default=first)
        id_ = event_id(problem_id, episode, event, *what)
        return Step(event, id_, episode, first, until, tuple(heard.bad), heard.newest)

    if last is None:
        return _of_none(heard, 1, step)
    if last.state == "open":
        return _of_open(last, heard, _is_over(rule, verdicts, heard.bad), settings, now, step)
    if last.state == "pending":
        return _of_pending(last, heard, step)
    if last.resolved_at is not None and (now - last.resolved_at).total_seconds() <= settings.flap_s:
        return step("reopened", last.episode, last.openings + 1, since=_time(last, "since")) if heard.opens else None
    return _of_none(heard, last.episode + 1, step)


def _heard(rule: Rule, verdicts: Sequence[Verdict], episodes: Sequence[Problem], quiet_from: datetime) -> _Heard:
    judged_before = max((_until(e) for e in episodes if e.state == "resolved"), default=None)
    fresh = [v for v in verdicts if judged_before is None or v.start >= judged_before]
    if rule.kind == "any":
        bad = [v for v in fresh if v.breached and v.end > quiet_from]
        return _Heard(fresh, bad, bool(bad))
    bad = [v for v in fresh[-rule.m :] if v.breached]
    return _Heard(fresh, bad, len(bad) >= rule.k and bool(fresh[-1].breached))


def _of_open(
    problem: Problem, heard: _Heard, over: bool, settings: RuleSettings, now: datetime, step: Callable[..., Step]
) -> Step | None:
    since = _time(problem, "since")
    if over:
        return step("resolved", problem.episode, problem.openings, since=since)
    if heard.bad and _is_news(problem, heard.bad[-1], now, settings):
        newest_bad = heard.bad[-1]
        return step("updated", problem.episode, newest_bad.start, newest_bad.revision, since=since)
    return None


def _of_pending(problem: Problem, heard: _Heard, step: Callable[..., Step]) -> Step | None:
    if heard.opens:
        return step("opened", problem.episode)
    return None if heard.bad else step("withdrawn", problem.episode, problem.attributes.get("since", ""))


def _of_none(heard: _Heard, episode: int, step: Callable[..., Step]) -> Step | None:
    """Where there is no problem, or none that is recent enough to be the same."""
    if heard.opens:
        return step("opened", episode)
    newest = heard.newest
    return step("pending", episode, newest.start) if newest is not None and newest.breached else None


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
