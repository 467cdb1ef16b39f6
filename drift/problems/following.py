"""The event that follows where a rule judged a series; the jobs and a dry run of rules ask alike. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from drift.problems.accounts import account_of
from drift.problems.events import Account, Place, event_row, last_account, place_of
from drift.problems.fingerprints import Begun, verdicts_that_count
from drift.problems.lifecycle import Step, kind_of, next_step
from drift.problems.problem import Aspect, EventRow, Kind, Problem, problem_id
from drift.problems.turns import settles
from drift.problems.wording import Figures, describe
from drift.rules.series import Rule, Series, Verdict
from drift.settings import RuleSettings

KINDS: Mapping[str, Kind] = {"level": "threshold", "coverage": "coverage"}  # of rules, by aspect
REMEMBERED = timedelta(days=14)  # verdicts older than this say nothing about today
_ENOUGH = 20  # verdicts of either kind; more where a rule looks back further
_WITHOUT_FIGURES = ("withdrawn", "eased", "resolved")  # of a problem that is known

Telling = Callable[[Series, Rule, Step], Account]


def following(
    series: Series,
    rule: Rule,
    verdicts: Mapping[Begun, Sequence[Verdict]],
    episodes: Sequence[Problem],
    settings: RuleSettings,
    now: datetime,
    closed_until: datetime,
    telling: Telling,
    epoch: int,
) -> EventRow | None:
    """The event, or None; `telling` is asked what to say where it says more than that trouble ended.

    `verdicts` of each fingerprint in order of time; `episodes` of this problem so far, in order.
    """
    place, settings = place_at(series, rule), settings.of(series.app)
    found = verdicts_that_count(rule, verdicts)
    step = next_step(problem_id(*place), rule, found, episodes, settings, now, closed_until)
    if step is None:
        return None
    if step.turn.event in _WITHOUT_FIGURES:
        return ended(episodes[-1], kind_of(rule), step, epoch)
    return event_row(place, step.turn, telling(series, rule, step), epoch)


def ended(before: Problem, kind: Kind, step: Step, epoch: int) -> EventRow:
    """The kind's last words stay; only how long it lasted is added."""
    added: dict[str, object] = {"until": step.until.isoformat()}
    if step.newest is not None:
        added["last_value"] = step.newest.value
    return event_row(place_of(before), step.turn, last_account(before, kind, **added), epoch)


def settled(problem: Problem, settings: RuleSettings, now: datetime, epoch: int) -> EventRow | None:
    """A problem that flapped, of whatever kind, and was quiet for long enough is resolved."""
    turn = settles(problem, settings.of(problem.app), now)
    if turn is None:
        return None
    last = max(problem.voices.values(), key=lambda voice: voice.at).kind
    return event_row(place_of(problem), turn, last_account(problem, last), epoch)


def enough(rules: Iterable[Rule]) -> int:
    """So many of the last good and of the last bad verdicts, both, leave no gap that matters to these rules."""
    return max([_ENOUGH, *(max(rule.m, rule.resolve_after) for rule in rules)])


def aspect_of(rule: Rule) -> Aspect:
    """What of a series the rule watches."""
    return "coverage" if rule.kind == "coverage" else "level"


def place_at(series: Series, rule: Rule) -> Place:
    """Where the trouble is that the rule sees in the series."""
    return Place(aspect=aspect_of(rule), **series._asdict())


def account_under(
    series: Series,
    rule: Rule,
    figures: Figures,
    since: datetime,
    settings: RuleSettings,
    attributes: Mapping[str, Any],
    examples: Sequence[str] = (),
) -> Account:
    """What is said of trouble that the rule sees in the series since then."""
    return account_of(
        kind_of(rule),
        place_at(series, rule),
        rule.watched,
        describe(series, rule, figures, since),
        attributes,
        settings,
        wrong=figures.wrong,
        traffic=figures.traffic,
        severity=rule.severity,
        examples=examples,
        rule_id=rule.rule_id,
    )
