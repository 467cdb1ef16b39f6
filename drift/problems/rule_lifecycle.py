"""Derive the next event of a rule's problem from the verdicts of its series. Pure.

Jobs and backtests call the same functions."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ragtide.drift.problems.kinds import Aspect, Kind
from ragtide.drift.problems.model import EventRow, KindState, Problem, problem_id
from ragtide.drift.problems.report import Details, ProblemKey, build_details, event_row, last_details
from ragtide.drift.problems.transitions import (
    Transition,
    cleared_by,
    flap_timeout,
    make_transition,
    opened_by,
    updated_by,
    within_flap_interval,
)
from ragtide.drift.rules import (
    ROUNDING,
    RULE_KINDS,
    Rule,
    Series,
    Statistics,
    Verdict,
    VersionStart,
    describe_problem,
    verdicts_of_active_versions,
)
from ragtide.drift.settings import RuleSettings
from ragtide.drift.stats import (
    CONFIDENCE,
    FEWEST_FREEDOM,
    MAX_INTERVALS,
    BadCount,
    EstimatedValue,
    student_quantile,
    weighted_wilson,
    within_binomial_noise,
    within_mean_noise,
    within_sampling_noise,
)

_MIN_VERDICTS = 11  # for a test of significance


@dataclass(frozen=True, slots=True)
class RuleTransition:
    """A transition, the interval [since, until), the `breaching` verdicts and the `newest` verdict behind it."""

    transition: Transition
    since: datetime
    until: datetime
    breaching: tuple[Verdict, ...]
    newest: Verdict | None


@dataclass(frozen=True, slots=True)
class _Breaches:
    """Verdicts since the kind cleared last: all (`fresh`), and those that breach.

    `enough`: whether they open a problem.
    """

    fresh: Sequence[Verdict]
    breaching: Sequence[Verdict]
    enough: bool

    @property
    def newest(self) -> Verdict | None:
        """The last one; None if there is none."""
        return self.fresh[-1] if self.fresh else None


def next_transition(
    problem_id: str,
    rule: Rule,
    verdicts: Sequence[Verdict],
    episodes: Sequence[Problem],
    settings: RuleSettings,
    now: datetime,
    closed_until: datetime,
) -> RuleTransition | None:
    """Return the next transition; None if there is none, as after its event is stored.

    `verdicts` in order of time, of one fingerprint, each on enough records; `episodes` of this problem so far.
    `closed_until` is the watermark, which counts as the time for rules `any`.
    """
    kind = rule.kind.problem_kind
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
    if kind_state is not None and transition.event in ("updated", "kind_cleared", "resolved", "reopened"):
        first = kind_state.evidence.since or first
    until = max((v.end for v in breaches.fresh), default=first)
    return RuleTransition(transition, first, until, tuple(breaches.breaching), breaches.newest)


def series_gone(
    kind: Kind, problem: Problem, settings: RuleSettings, now: datetime, until: datetime
) -> RuleTransition | None:
    """Return the transition that ends a problem whose series is stale or has no rule, from windows up to `until`.

    None if this kind has nothing to end.
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
    states = [
        kind_state for episode in episodes if (kind_state := episode.by_kind.get(rule.kind.problem_kind)) is not None
    ]
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
    return _Breaches(fresh, breaching, enough and not _within_noise(rule, verdicts, chance))


def _within_noise(rule: Rule, verdicts: Sequence[Verdict], chance: float) -> bool:
    """Tell whether chance alone explains the newest bad verdicts.

    Estimates use their intervals, shares of records the binomial test, and means their variation, estimates too; with
    few verdicts, k of m alone decides means that are no estimates.
    """
    some = verdicts[-MAX_INTERVALS:]
    threshold = some[-1].threshold
    if any(one.freedom is not None for one in some):
        estimates = (_estimated(rule, one) for one in reversed(some))
        if within_sampling_noise(estimates, threshold, chance):
            return True
    are_shares = rule.kind.value_type == "share" or len(some) > 1  # a single mean may equal a share by chance
    for passing in (False, True):
        if are_shares and all(math.isclose(one.value, _share(one, passing), abs_tol=ROUNDING) for one in some):
            parts = (BadCount(one.samples, one.wrong) for one in reversed(some))
            return within_binomial_noise(parts, 1 - threshold if passing else threshold, chance)
    return len(some) >= _MIN_VERDICTS and within_mean_noise([one.value for one in some], threshold, chance)


def _estimated(rule: Rule, verdict: Verdict) -> EstimatedValue:
    """Take the error from the longer side of the interval: the other may end at 0 or 1.

    Beside estimates, a share of records with one weight has the error of their number, and a mean no known one.
    """
    value, low, high, freedom = verdict.value, verdict.low, verdict.high, verdict.freedom
    if freedom is None:
        freedom = verdict.samples - 1.0 if rule.kind.value_type == "share" else 0.0
        if freedom >= FEWEST_FREEDOM:
            low, high = weighted_wilson(value, verdict.samples, _half_width(freedom))
    if freedom < FEWEST_FREEDOM:
        return EstimatedValue(value, math.inf, verdict.samples, 0.0)
    reach = max((abs(end - value) for end in (low, high) if end is not None), default=0.0)
    return EstimatedValue(value, reach / _half_width(freedom), verdict.samples, freedom)


def _half_width(freedom: float) -> float:
    """Return the half-width of an interval in standard errors."""
    return student_quantile((1 + CONFIDENCE) / 2, freedom)


def _share(verdict: Verdict, passing: bool) -> float:
    """Return the share of bad records, or of good ones."""
    bad = verdict.wrong / verdict.samples if verdict.samples else 0.0
    return 1 - bad if passing else bad


def _update(
    kind: Kind, problem: Problem, breaching: Sequence[Verdict], settings: RuleSettings, now: datetime
) -> Transition | None:
    """Return an update if the newest breach is later than the last report, at most every `update_every_s`."""
    if not breaching:
        return None
    reported, newest = problem.by_kind[kind].evidence, breaching[-1]
    until = reported.until or newest.start
    later = newest.end >= until and (newest.end, newest.revision) > (until, reported.revision)
    return updated_by(kind, problem, settings, now, newest.start, newest.revision) if later else None


def _pending_or_withdrawn(
    problem_id: str, last: Problem | None, breaches: _Breaches, settings: RuleSettings, now: datetime
) -> Transition | None:
    """Return the transition if the breaches are not enough for a problem."""
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
    """Return the end of the evidence of the kind's last report."""
    return kind_state.evidence.until or kind_state.at


def _since_text(one: KindState | Problem) -> str:
    """Return the start of the evidence as event ids contain it."""
    return one.evidence.since.isoformat() if one.evidence.since else ""


KIND_BY_ASPECT: Mapping[str, Kind] = {
    kind.aspect: kind.problem_kind for kind in RULE_KINDS.values()
}  # of rules, by aspect
VERDICT_HORIZON = timedelta(days=14)  # verdicts older than this say nothing about today
_MIN_VERDICTS_READ = 20  # verdicts of either kind; more where a rule looks back further
_OF_THE_NEWEST = ("pending", "updated")
_WITHOUT_STATISTICS = ("withdrawn", "kind_cleared", "resolved")  # of a problem that is known

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
    *,
    is_newest: bool = True,
) -> EventRow | None:
    """Return the next event, or None. `details_of` is called unless the event only ends something.

    `verdicts` of each fingerprint in order of time; `episodes` of this problem so far, in order. Of a step that is not
    the newest, pending problems and updates are left out: the newest step has them if they still matter. A problem that
    flaps then keeps its statistics: a backlog may have hundreds of such steps.
    """
    key, settings = key_of_series(series, rule), settings.of(series.app)
    found = verdicts_of_active_versions(rule, verdicts)
    step = next_transition(problem_id(*key), rule, found, episodes, settings, now, closed_until)
    if step is None or (step.transition.event in _OF_THE_NEWEST and not is_newest):
        return None
    if step.transition.event in _WITHOUT_STATISTICS:
        return end_event(episodes[-1], rule.kind.problem_kind, step, epoch)
    if step.transition.event == "kind_opened" and not is_newest and rule.kind.problem_kind in episodes[-1].by_kind:
        span = {"since": step.since.isoformat(), "until": step.until.isoformat()}
        return event_row(key, step.transition, last_details(episodes[-1], rule.kind.problem_kind, **span), epoch)
    return event_row(key, step.transition, details_of(series, rule, step), epoch)


def end_event(before: Problem, kind: Kind, step: RuleTransition, epoch: int) -> EventRow:
    """Make the event that ends a kind: its last details, the end and the last value."""
    added: dict[str, object] = {"until": step.until.isoformat()}
    if step.newest is not None:
        added["last_value"] = step.newest.value
    return event_row(ProblemKey.of(before), step.transition, last_details(before, kind, **added), epoch)


def flap_timeout_event(problem: Problem, settings: RuleSettings, now: datetime, epoch: int) -> EventRow | None:
    """Return the event that resolves a problem that flapped and was quiet for long enough; None if it was not."""
    transition = flap_timeout(problem, settings.of(problem.app), now)
    if transition is None:
        return None
    last = max(problem.by_kind.values(), key=lambda kind_state: kind_state.at).kind
    return event_row(ProblemKey.of(problem), transition, last_details(problem, last), epoch)


def verdicts_needed(rules: Iterable[Rule]) -> int:
    """Return how many of the last good and of the last bad verdicts these rules need."""
    return max([_MIN_VERDICTS_READ, *(max(rule.m, rule.resolve_after) for rule in rules)])


def aspect_of(rule: Rule) -> Aspect:
    """Return the aspect of a series that the rule evaluates."""
    return rule.kind.aspect


def key_of_series(series: Series, rule: Rule) -> ProblemKey:
    """Return the key of the problem that the rule raises for the series."""
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
    """Build the details of a breach since then."""
    return build_details(
        rule.kind.problem_kind,
        key_of_series(series, rule),
        rule.metric_ref,
        describe_problem(series, rule, statistics, since),
        attributes,
        settings,
        bad=statistics.bad if statistics.bad_traces is None else statistics.bad_traces,
        traffic=statistics.traffic,
        severity=rule.severity,
        examples=examples,
        rule_id=rule.rule_id,
    )
