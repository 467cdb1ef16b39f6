"""Derive the next event of a rule's problem from the verdicts of its series. Pure.

Jobs and backtests call the same functions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ragtide.drift.problems.kinds import Aspect, Kind
from ragtide.drift.problems.model import EventRow, KindState, Problem, problem_id
from ragtide.drift.problems.report import Details, ProblemKey, build_details, event_row, key_of, last_details
from ragtide.drift.problems.transitions import (
    Transition,
    cleared_by,
    flap_timeout,
    make_transition,
    opened_by,
    updated_by,
    within_flap_interval,
)
from ragtide.drift.rules.evaluator_versions import VersionStart, verdicts_of_active_versions
from ragtide.drift.rules.kinds import KINDS, ROUNDING, describe
from ragtide.drift.rules.model import Rule, Series, Statistics, Verdict
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats.significance import MAX_INTERVALS, Sample, within_binomial_noise, within_mean_noise

_MIN_VERDICTS = 11  # stretches


@dataclass(frozen=True, slots=True)
class RuleTransition:
    """One event to come. `bad` are the breaching verdicts it rests on; the stretch is [since, until)."""

    transition: Transition
    since: datetime
    until: datetime
    breaching: tuple[Verdict, ...]
    newest: Verdict | None


@dataclass(frozen=True, slots=True)
class _Breaches:
    """The verdicts since the kind saw trouble last: `bad` those that count against the series, `opens` whether they
    are enough for a problem.
    """

    fresh: Sequence[Verdict]
    breaching: Sequence[Verdict]
    enough: bool

    @property
    def newest(self) -> Verdict | None:
        """The last one, None before there is any."""
        return self.fresh[-1] if self.fresh else None


def kind_of(rule: Rule) -> Kind:
    """How a problem is found that this rule raises."""
    return rule.kind.problem_kind


def next_transition(
    problem_id: str,
    rule: Rule,
    verdicts: Sequence[Verdict],
    episodes: Sequence[Problem],
    settings: RuleSettings,
    now: datetime,
    closed_until: datetime,
) -> RuleTransition | None:
    """The event that follows, or None. Asked again after it was stored, there is none.

    `verdicts` in order of time, of one fingerprint, each on enough records; `episodes` of this problem so far.
    `closed_until` is the watermark: an `any` rule counts its quiet time by it.
    """
    kind = kind_of(rule)
    last = max(episodes, key=lambda e: e.episode, default=None)
    quiet_from = closed_until - timedelta(seconds=settings.any_resolve_after_s)
    breaches = _breaches(rule, verdicts, episodes, quiet_from, settings.chance)
    if last is not None and kind in last.active_kinds:
        over = _is_clear(rule, verdicts, breaches.breaching)
        transition = (
            cleared_by(kind, last, settings, now) if over else _update(kind, last, breaches.breaching, settings, now)
        )
    elif breaches.enough:
        transition = opened_by(problem_id, kind, last, settings, now)
    else:
        transition = _pending_or_withdrawn(problem_id, last, breaches, settings, now)
    if transition is None:
        return None
    kind_state = None if last is None else last.by_kind.get(kind)
    first = breaches.breaching[0].start if breaches.breaching else now
    if kind_state is not None and transition.event in ("updated", "eased", "resolved", "reopened"):
        first = kind_state.evidence.since or first
    until = max((v.end for v in breaches.fresh), default=first)
    return RuleTransition(transition, first, until, tuple(breaches.breaching), breaches.newest)


def series_gone(
    kind: Kind, problem: Problem, settings: RuleSettings, now: datetime, until: datetime
) -> RuleTransition | None:
    """The event where no rule watches the series any more or nothing comes of it, known of windows up to `until`.

    None where this kind has nothing to end.
    """
    kind_state = problem.by_kind.get(kind)
    if kind_state is None:
        return None
    transition = cleared_by(kind, problem, settings, now)
    if problem.state == "pending":
        transition = make_transition(
            "withdrawn", problem.problem_id, problem.episode, problem, now, _since_text(kind_state)
        )
    if transition is None:
        return None
    since = kind_state.evidence.since or problem.first_seen_at
    return RuleTransition(transition, since, max(until, reported_until(kind_state)), (), None)


def _breaches(
    rule: Rule, verdicts: Sequence[Verdict], episodes: Sequence[Problem], quiet_from: datetime, chance: float
) -> _Breaches:
    states = [kind_state for episode in episodes if (kind_state := episode.by_kind.get(kind_of(rule))) is not None]
    cleared_until = max(
        (reported_until(kind_state) for kind_state in states if kind_state.openings and not kind_state.active),
        default=None,
    )
    fresh = [v for v in verdicts if cleared_until is None or v.start >= cleared_until]
    if rule.kind.zero_tolerance:
        breaching = [v for v in fresh if v.breached and v.end > quiet_from]
        return _Breaches(fresh, breaching, bool(breaching))
    breaching = [v for v in fresh[-rule.m :] if v.breached]
    enough = len(breaching) >= rule.k and bool(fresh[-1].breached)
    return _Breaches(fresh, breaching, enough and not _within_noise(verdicts, chance))


def _within_noise(verdicts: Sequence[Verdict], chance: float) -> bool:
    """Whether the newest ones, which are bad, may be so by chance: by how many records are wrong, where that is all
    that their values say, else by how much these vary. Where little is known yet, k of m alone decide.
    """
    some = verdicts[-MAX_INTERVALS:]
    if len(some) < _MIN_VERDICTS:
        return False
    threshold = some[-1].threshold
    for passing in (False, True):
        if all(math.isclose(one.value, _share(one, passing), abs_tol=ROUNDING) for one in some):
            parts = (Sample(one.samples, one.wrong) for one in reversed(some))
            return within_binomial_noise(parts, 1 - threshold if passing else threshold, chance)
    return within_mean_noise([one.value for one in some], threshold, chance)


def _share(verdict: Verdict, passing: bool) -> float:
    """Of its records those that are wrong, or those that are not."""
    bad = verdict.wrong / verdict.samples if verdict.samples else 0.0
    return 1 - bad if passing else bad


def _update(
    kind: Kind, problem: Problem, breaching: Sequence[Verdict], settings: RuleSettings, now: datetime
) -> Transition | None:
    """A bad stretch that the kind's words do not cover yet, and not too soon after the last ones."""
    if not breaching:
        return None
    reported, newest = problem.by_kind[kind].evidence, breaching[-1]
    until = reported.until or newest.start
    later = newest.end >= until and (newest.end, newest.revision) > (until, reported.revision)
    return updated_by(kind, problem, settings, now, newest.start, newest.revision) if later else None


def _pending_or_withdrawn(
    problem_id: str, last: Problem | None, breaches: _Breaches, settings: RuleSettings, now: datetime
) -> Transition | None:
    """What follows from verdicts that are not enough for a problem."""
    newest = breaches.newest
    if last is not None and last.state == "pending":
        since = _since_text(last)
        return None if breaches.breaching else make_transition("withdrawn", problem_id, last.episode, last, now, since)
    if last is not None and (last.state == "open" or within_flap_interval(last, settings, now)):
        return None
    if newest is None or not newest.breached:
        return None
    return make_transition("pending", problem_id, 1 if last is None else last.episode + 1, None, now, newest.start)


def _is_clear(rule: Rule, verdicts: Sequence[Verdict], breaching: Sequence[Verdict]) -> bool:
    if rule.kind.zero_tolerance:
        return not breaching
    tail = verdicts[-rule.resolve_after :]
    return len(tail) == rule.resolve_after and not any(v.breached for v in tail)


def reported_until(kind_state: KindState) -> datetime:
    """The end of what the kind said last of."""
    return kind_state.evidence.until or kind_state.at


def _since_text(one: KindState | Problem) -> str:
    """As event ids have it."""
    return one.evidence.since.isoformat() if one.evidence.since else ""


KIND_BY_ASPECT: Mapping[str, Kind] = {kind.aspect: kind.problem_kind for kind in KINDS.values()}  # of rules, by aspect
VERDICT_HORIZON = timedelta(days=14)  # verdicts older than this say nothing about today
_MIN_VERDICTS_READ = 20  # verdicts of either kind; more where a rule looks back further
_WITHOUT_STATISTICS = ("withdrawn", "eased", "resolved")  # of a problem that is known

DetailsBuilder = Callable[[Series, Rule, RuleTransition], Details]


def next_event(
    series: Series,
    rule: Rule,
    verdicts: Mapping[VersionStart, Sequence[Verdict]],
    episodes: Sequence[Problem],
    settings: RuleSettings,
    now: datetime,
    closed_until: datetime,
    details_of: DetailsBuilder,
    epoch: int,
) -> EventRow | None:
    """The event, or None; `telling` is asked what to say where it says more than that trouble ended.

    `verdicts` of each fingerprint in order of time; `episodes` of this problem so far, in order.
    """
    key, settings = key_of_series(series, rule), settings.of(series.app)
    found = verdicts_of_active_versions(rule, verdicts)
    step = next_transition(problem_id(*key), rule, found, episodes, settings, now, closed_until)
    if step is None:
        return None
    if step.transition.event in _WITHOUT_STATISTICS:
        return end_event(episodes[-1], kind_of(rule), step, epoch)
    return event_row(key, step.transition, details_of(series, rule, step), epoch)


def end_event(before: Problem, kind: Kind, step: RuleTransition, epoch: int) -> EventRow:
    """The kind's last words stay; only how long it lasted is added."""
    added: dict[str, object] = {"until": step.until.isoformat()}
    if step.newest is not None:
        added["last_value"] = step.newest.value
    return event_row(key_of(before), step.transition, last_details(before, kind, **added), epoch)


def flap_timeout_event(problem: Problem, settings: RuleSettings, now: datetime, epoch: int) -> EventRow | None:
    """A problem that flapped, of whatever kind, and was quiet for long enough is resolved."""
    transition = flap_timeout(problem, settings.of(problem.app), now)
    if transition is None:
        return None
    last = max(problem.by_kind.values(), key=lambda kind_state: kind_state.at).kind
    return event_row(key_of(problem), transition, last_details(problem, last), epoch)


def verdicts_needed(rules: Iterable[Rule]) -> int:
    """So many of the last good and of the last bad verdicts, both, leave no gap that matters to these rules."""
    return max([_MIN_VERDICTS_READ, *(max(rule.m, rule.resolve_after) for rule in rules)])


def aspect_of(rule: Rule) -> Aspect:
    """What of a series the rule watches."""
    return rule.kind.aspect


def key_of_series(series: Series, rule: Rule) -> ProblemKey:
    """Where the trouble is that the rule sees in the series."""
    return ProblemKey(aspect=aspect_of(rule), **series._asdict())


def build_rule_details(
    series: Series,
    rule: Rule,
    statistics: Statistics,
    since: datetime,
    settings: RuleSettings,
    attributes: Mapping[str, Any],
    examples: Sequence[str] = (),
) -> Details:
    """What is said of trouble that the rule sees in the series since then."""
    return build_details(
        kind_of(rule),
        key_of_series(series, rule),
        rule.metric_ref,
        describe(series, rule, statistics, since),
        attributes,
        settings,
        bad=statistics.bad,
        traffic=statistics.traffic,
        severity=rule.severity,
        examples=examples,
        rule_id=rule.rule_id,
    )
