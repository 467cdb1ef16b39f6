"""What a series' verdicts do to its problem: pending, opened, joined, updated, eased, resolved, reopened. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from drift.problems.problem import Kind, Problem, Voice
from drift.problems.turns import Turn, begins, ends, may_reopen, tells_more, turn_of
from drift.rules.chance import LOOKED_BACK, Part, may_be_chance, mean_may_be_chance
from drift.rules.lines import ROUNDING
from drift.rules.series import Rule, Verdict
from drift.settings import RuleSettings

_LEAST_KNOWN = 11  # stretches


@dataclass(frozen=True, slots=True)
class Step:
    """One event to come. `bad` are the breaching verdicts it rests on; the stretch is [since, until)."""

    turn: Turn
    since: datetime
    until: datetime
    bad: tuple[Verdict, ...]
    newest: Verdict | None


@dataclass(frozen=True, slots=True)
class _Heard:
    """The verdicts since the kind saw trouble last: `bad` those that count against the series, `opens` whether they
    are enough for a problem.
    """

    fresh: Sequence[Verdict]
    bad: Sequence[Verdict]
    opens: bool

    @property
    def newest(self) -> Verdict | None:
        """The last one, None before there is any."""
        return self.fresh[-1] if self.fresh else None


def kind_of(rule: Rule) -> Kind:
    """How a problem is found that this rule raises."""
    return "coverage" if rule.kind == "coverage" else "threshold"


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
    kind = kind_of(rule)
    last = max(episodes, key=lambda e: e.episode, default=None)
    quiet_from = closed_until - timedelta(seconds=settings.any_resolve_after_s)
    heard = _heard(rule, verdicts, episodes, quiet_from, settings.chance)
    if last is not None and kind in last.holding:
        over = _is_over(rule, verdicts, heard.bad)
        turn = ends(kind, last, settings, now) if over else _more(kind, last, heard.bad, settings, now)
    elif heard.opens:
        turn = begins(problem_id, kind, last, settings, now)
    else:
        turn = _of_quiet(problem_id, last, heard, settings, now)
    if turn is None:
        return None
    voice = None if last is None else last.voices.get(kind)
    first = heard.bad[0].start if heard.bad else now
    if voice is not None and turn.event in ("updated", "eased", "resolved", "reopened"):
        first = _time(voice.attributes, "since", first)
    until = max((v.end for v in heard.fresh), default=first)
    return Step(turn, first, until, tuple(heard.bad), heard.newest)


def disappeared(kind: Kind, problem: Problem, settings: RuleSettings, now: datetime, until: datetime) -> Step | None:
    """The event where no rule watches the series any more or nothing comes of it, known of windows up to `until`.

    None where this kind has nothing to end.
    """
    voice = problem.voices.get(kind)
    if voice is None:
        return None
    turn = ends(kind, problem, settings, now)
    if problem.state == "pending":
        turn = turn_of(
            "withdrawn", problem.problem_id, problem.episode, problem, now, voice.attributes.get("since", "")
        )
    if turn is None:
        return None
    since = _time(voice.attributes, "since", problem.first_seen_at)
    return Step(turn, since, max(until, told_until(voice)), (), None)


def _heard(
    rule: Rule, verdicts: Sequence[Verdict], episodes: Sequence[Problem], quiet_from: datetime, chance: float
) -> _Heard:
    voices = [voice for episode in episodes if (voice := episode.voices.get(kind_of(rule))) is not None]
    judged_before = max((told_until(voice) for voice in voices if voice.begun and not voice.holds), default=None)
    fresh = [v for v in verdicts if judged_before is None or v.start >= judged_before]
    if rule.kind == "any":
        bad = [v for v in fresh if v.breached and v.end > quiet_from]
        return _Heard(fresh, bad, bool(bad))
    bad = [v for v in fresh[-rule.m :] if v.breached]
    enough = len(bad) >= rule.k and bool(fresh[-1].breached)
    return _Heard(fresh, bad, enough and not _may_be_chance(verdicts, chance))


def _may_be_chance(verdicts: Sequence[Verdict], chance: float) -> bool:
    """Whether the newest ones, which are bad, may be so by chance: by how many records are wrong, where that is all
    that their values say, else by how much these vary. Where little is known yet, k of m alone decide.
    """
    some = verdicts[-LOOKED_BACK:]
    if len(some) < _LEAST_KNOWN:
        return False
    threshold = some[-1].threshold
    for passing in (False, True):
        if all(math.isclose(one.value, _share(one, passing), abs_tol=ROUNDING) for one in some):
            parts = (Part(one.samples, one.wrong) for one in reversed(some))
            return may_be_chance(parts, 1 - threshold if passing else threshold, chance)
    return mean_may_be_chance([one.value for one in some], threshold, chance)


def _share(verdict: Verdict, passing: bool) -> float:
    """Of its records those that are wrong, or those that are not."""
    wrong = verdict.wrong / verdict.samples if verdict.samples else 0.0
    return 1 - wrong if passing else wrong


def _more(kind: Kind, problem: Problem, bad: Sequence[Verdict], settings: RuleSettings, now: datetime) -> Turn | None:
    """A bad stretch that the kind's words do not cover yet, and not too soon after the last ones."""
    if not bad:
        return None
    said = problem.voices[kind].attributes
    seen = (said.get("until", ""), said.get("revision", 0))
    newest = bad[-1]
    later = (newest.end.isoformat(), newest.revision) > seen and newest.end.isoformat() >= seen[0]
    return tells_more(kind, problem, settings, now, newest.start, newest.revision) if later else None


def _of_quiet(
    problem_id: str, last: Problem | None, heard: _Heard, settings: RuleSettings, now: datetime
) -> Turn | None:
    """What follows from verdicts that are not enough for a problem."""
    newest = heard.newest
    if last is not None and last.state == "pending":
        since = last.attributes.get("since", "")
        return None if heard.bad else turn_of("withdrawn", problem_id, last.episode, last, now, since)
    if last is not None and (last.state == "open" or may_reopen(last, settings, now)):
        return None
    if newest is None or not newest.breached:
        return None
    return turn_of("pending", problem_id, 1 if last is None else last.episode + 1, None, now, newest.start)


def _is_over(rule: Rule, verdicts: Sequence[Verdict], bad: Sequence[Verdict]) -> bool:
    if rule.kind == "any":
        return not bad
    tail = verdicts[-rule.resolve_after :]
    return len(tail) == rule.resolve_after and not any(v.breached for v in tail)


def told_until(voice: Voice) -> datetime:
    """The end of what the kind said last of."""
    return _time(voice.attributes, "until", voice.at)


def _time(said: Mapping[str, object], name: str, otherwise: datetime) -> datetime:
    at = said.get(name)
    return datetime.fromisoformat(at) if isinstance(at, str) and at else otherwise
