"""What verdicts do to a problem, without a database."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragtide.drift.problems.model import EventRow, Problem, event_id, problem_id
from ragtide.drift.problems.rule_lifecycle import RuleTransition, next_transition
from ragtide.drift.problems.store import fold_events
from ragtide.drift.rules import kinds
from ragtide.drift.rules.model import Rule, Series, Verdict
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from tests.drift.world import EVALUATORS

SERIES = Series("shop", "prod", "quality.good", "m1", "", "")
RULE = Rule(kinds.MEAN, metrics_by_name(EVALUATORS)["quality.good"], 0.75, None, 0.05, 10, 3, 5, 5, None)
ANY = replace(RULE, kind=kinds.ANY, k=1, m=1)
SETTINGS = RuleSettings(flap_s=600, any_resolve_after_s=300, update_every_s=120)
ID = problem_id("shop", "prod", "m1", "level", "quality.good")
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(minute: float) -> datetime:
    return T0 + timedelta(minutes=minute)


def verdict(minute: int, breached: bool, revision: int = 1) -> Verdict:
    value = 0.4 if breached else 0.9
    counts = (50, 30 if breached else 0, 0, 1)
    stretch = (at(minute), at(minute + 1), revision)
    return Verdict(RULE.rule_id, "live", *SERIES, "f1", *stretch, int(breached), value, 0.75, *counts)


def event(step: RuleTransition) -> EventRow:
    attributes = f'{{"since": "{step.since.isoformat()}", "until": "{step.until.isoformat()}", "revision": '
    attributes += f"{step.breaching[-1].revision if step.breaching else 0}}}"
    turn = step.transition
    happened = (turn.event_id, turn.event, turn.episode, turn.at)
    where = ("shop", "prod", "m1", "level", "quality.good", "", "")
    return EventRow(
        ID, *happened, *where, "threshold", "accuracy", "critical", "", [], "", attributes, [], [], "", "", 1
    )


def live(pattern: str, rule: Rule = RULE, settings: RuleSettings = SETTINGS) -> tuple[list[str], list[Problem]]:
    """Each minute a verdict, b(ad) or g(ood) or - for none, and a look at it; the events, and the episodes."""
    verdicts: list[Verdict] = []
    events: list[EventRow] = []
    for minute, letter in enumerate(pattern):
        now = at(minute + 1)
        if letter != "-":
            verdicts.append(verdict(minute, letter == "b"))
        for _ in range(2):  # the second look finds nothing new to say
            known = fold_events(events)
            step = next_transition(ID, rule, verdicts, known, settings, now, now)
            if step is not None:
                assert step.transition.event_id not in {e.event_id for e in events}
                events.append(event(step))
    return [e.event for e in events], fold_events(events)


@pytest.mark.parametrize(
    ("pattern", "events"),
    [
        ("ggggg", []),
        ("gbggggg", ["pending", "withdrawn"]),
        ("gbgbgbg", ["pending", "opened"]),  # 3 of 5, the newest bad
        ("bbg", ["pending"]),
        ("bbgbg", ["pending", "opened"]),
        ("bbb", ["pending", "opened"]),
        ("bbbbb", ["pending", "opened", "updated"]),  # at most every two minutes
        ("bbbgggg", ["pending", "opened"]),
        ("bbbggggg", ["pending", "opened", "resolved"]),
        ("bbbggggbggggg", ["pending", "opened", "updated", "resolved"]),
    ],
)
def test_k_of_m_and_back(pattern: str, events: list[str]) -> None:
    assert live(pattern)[0] == events


def test_back_within_the_flap_interval_it_is_the_same_episode() -> None:
    events, (problem,) = live("bbbgggggbbb")
    assert events == ["pending", "opened", "resolved", "reopened"]
    assert (problem.episode, problem.openings, problem.state, problem.resolved_at) == (1, 2, "open", None)


def test_back_later_it_is_the_next_episode() -> None:
    events, problems = live("bbbggggg" + "g" * 10 + "bbb")
    assert events == ["pending", "opened", "resolved", "pending", "opened"]
    assert [(p.episode, p.state) for p in problems] == [(1, "resolved"), (2, "open")]
    assert len({p.problem_id for p in problems}) == 1


def test_what_was_bad_before_the_resolution_does_not_count_again() -> None:
    short = replace(RULE, resolve_after=1)
    assert live("bbbgb", short)[0] == ["pending", "opened", "resolved"]
    assert live("bbbgbbb", short)[0] == ["pending", "opened", "resolved", "reopened"]


def test_any_opens_at_once_and_resolves_after_its_quiet_time() -> None:
    assert live("ggb", ANY)[0] == ["opened"]
    assert live("ggbgggg", ANY)[0] == ["opened"]
    assert live("ggbggggg", ANY)[0] == ["opened", "resolved"]
    assert live("ggb-----", ANY)[0] == ["opened", "resolved"]  # by the watermark, also without traffic


def test_any_opens_also_where_newer_windows_are_good() -> None:
    """Several windows judged in one round: one leak is enough."""
    verdicts = [verdict(0, False), verdict(1, True), verdict(2, False)]
    step = next_transition(ID, ANY, verdicts, [], SETTINGS, at(3), at(3))
    assert step is not None
    assert step.transition.event == "opened"


def test_a_threshold_does_not_open_where_the_newest_window_is_good() -> None:
    verdicts = [verdict(minute, minute < 3) for minute in range(4)]
    assert next_transition(ID, RULE, verdicts, [], SETTINGS, at(4), at(4)) is None


def test_two_leaders_say_the_same_of_the_same() -> None:
    verdicts = [verdict(minute, True) for minute in range(3)]
    one = next_transition(ID, RULE, verdicts, [], SETTINGS, at(3), at(3))
    other = next_transition(ID, RULE, verdicts, [], SETTINGS, at(4), at(3.5))
    assert one is not None
    assert other is not None
    assert one.transition.event_id == other.transition.event_id == event_id(ID, 1, "opened")
    assert len(fold_events([event(one)])) == 1


@given(st.text("bg-", max_size=40), st.booleans())
def test_whatever_happens_openings_and_resolutions_alternate(pattern: str, any_rule: bool) -> None:
    events, problems = live(pattern, ANY if any_rule else RULE)
    turns = [e for e in events if e in ("opened", "reopened", "resolved")]
    assert all((turn == "resolved") == (number % 2 == 1) for number, turn in enumerate(turns))
    assert sum(p.state != "resolved" for p in problems) <= 1
    assert [p.episode for p in problems] == list(range(1, len(problems) + 1))


@settings(deadline=None)
@given(st.text("bg", min_size=3, max_size=15), st.randoms())
def test_a_fold_does_not_ask_for_the_order_of_its_events(pattern: str, random: object) -> None:
    _, problems = live(pattern)
    verdicts: list[Verdict] = []
    events: list[EventRow] = []
    for minute, letter in enumerate(pattern):
        verdicts.append(verdict(minute, letter == "b"))
        step = next_transition(ID, RULE, verdicts, fold_events(events), SETTINGS, at(minute + 1), at(minute + 1))
        if step is not None:
            events.append(event(step))
    shuffled: Sequence[EventRow] = sorted(events, key=lambda e: e.event_id)
    assert fold_events(shuffled) == fold_events(events) == problems


def test_a_persons_word_is_folded_in_and_a_job_does_not_overwrite_it() -> None:
    verdicts = [verdict(minute, True) for minute in range(3)]
    step = next_transition(ID, RULE, verdicts, [], SETTINGS, at(3), at(3))
    assert step is not None
    opened = event(step)
    person = opened._replace(event="acked", event_id="ack-1", at=at(3.5), actor="ada", description="", kind="")
    later = opened._replace(event="updated", event_id="u", at=at(6), description="worse")
    (problem,) = fold_events([later, person, opened])
    assert (problem.state, problem.acked_by, problem.description) == ("open", "ada", "worse")
    muted = person._replace(event="muted", event_id="m", at=at(4), actor="bob")
    (problem,) = fold_events([opened, person, muted, muted._replace(event="unmuted", event_id="n", at=at(5))])
    assert (problem.acked_by, problem.muted_by) == ("ada", "")
