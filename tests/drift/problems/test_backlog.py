"""A backlog of verdicts raises what live runs raised, wherever it is cut."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragtide.drift.attributes import evidence_of
from ragtide.drift.problems.backlog import Backlog, Clock
from ragtide.drift.problems.model import EventRow
from ragtide.drift.problems.report import Details, build_details
from ragtide.drift.problems.rule_lifecycle import (
    RuleTransition,
    flap_timeout_event,
    key_of_series,
    next_event,
    verdicts_needed,
)
from ragtide.drift.problems.store import fold_events
from ragtide.drift.rules import kinds
from ragtide.drift.rules.evaluator_versions import VersionStart
from ragtide.drift.rules.model import Rule, Series, Verdict
from ragtide.drift.settings import RuleSettings
from ragtide.drift.windows.metrics import metrics_by_name
from tests.drift.world import EVALUATORS

SERIES = Series("shop", "prod", "quality.good", "m1", "", "")
RULE = Rule(kinds.MEAN, metrics_by_name(EVALUATORS)["quality.good"], 0.75, None, 0.05, 10, 3, 5, 5, None)
ANY = replace(RULE, kind=kinds.ANY, k=1, m=1)
SETTINGS = RuleSettings(
    flap_s=600, any_resolve_after_s=300, update_every_s=120, flapping_within_s=3600, flapping_quiet_s=480
)
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
LAG = timedelta(seconds=40)  # of a run after the watermark
LIMIT = verdicts_needed([RULE])


class RaisedEvent(NamedTuple):
    """What must not depend on when the jobs ran."""

    event: str
    event_id: str
    episode: int
    at: datetime
    since: datetime | None


def at(minute: int) -> datetime:
    return T0 + timedelta(minutes=minute)


def verdicts_of(stream: str) -> list[Verdict]:
    """A letter a minute: b(ad), g(ood) or - for none; in capitals of the next evaluator version."""
    found = []
    for minute, letter in enumerate(stream):
        if letter != "-":
            bad, version = letter in "bB", "f2" if letter.isupper() else "f1"
            where = (RULE.rule_id, "live", *SERIES, version, at(minute), at(minute + 1), 1, int(bad))
            found.append(Verdict(*where, 0.4 if bad else 0.9, 0.75, 50, 30 if bad else 0, 0, minute + 1))
    return found


def by_version(verdicts: Sequence[Verdict]) -> dict[VersionStart, list[Verdict]]:
    found: dict[str, list[Verdict]] = {}
    for one in verdicts:
        found.setdefault(one.fingerprint, []).append(one)
    return {VersionStart(some[0].start.timestamp(), name): some for name, some in found.items()}


def details(series: Series, rule: Rule, step: RuleTransition) -> Details:
    span = {"since": step.since.isoformat(), "until": step.until.isoformat(), "revision": step.breaching[-1].revision}
    key = key_of_series(series, rule)
    return build_details(rule.kind.problem_kind, key, rule.metric_ref, "", span, SETTINGS, rule_id=rule.rule_id)


def live(stream: str, rule: Rule) -> list[EventRow]:
    """A run at the end of each minute, that looks at the newest verdicts only."""
    verdicts, events = verdicts_of(stream), list[EventRow]()
    for minute in range(1, len(stream) + 1):
        read = by_version([one for one in verdicts if one.end <= at(minute)])
        episodes, now = fold_events(events), at(minute) + LAG
        event = next_event(SERIES, rule, read, episodes, SETTINGS, now, at(minute), details, 1)
        if event is None and episodes:
            event = flap_timeout_event(episodes[-1], SETTINGS, now, 1)
        events += [] if event is None else [event]
    return events


def late(stream: str, rule: Rule, runs: Sequence[int], *, killed: bool = False) -> list[EventRow]:
    """Runs at the end of these minutes only. `killed`: each before it could say how far it came, and repeated."""
    verdicts, events = verdicts_of(stream), list[EventRow]()
    before = 0
    for minute in runs:
        read = [one for one in verdicts if one.end <= at(minute)]
        fresh = {one.end for one in read if one.end > at(before)}
        clock = Clock.of(at(minute) + LAG, at(minute), at(minute), 60)
        for _ in range(1 + killed):
            run = Backlog(SERIES, rule, events, SETTINGS, clock, LIMIT, details, 1)
            found = run.events(by_version(read), fresh)
            events = [*events, *found]
        before = minute
    return events


def raised(events: Sequence[EventRow]) -> list[RaisedEvent]:
    return [
        RaisedEvent(one.event, one.event_id, one.episode, one.at, evidence_of(one.attributes).since)
        for one in events
        if one.event not in ("pending", "withdrawn", "updated")
    ]


def states(events: Sequence[EventRow]) -> list[tuple[int, str]]:
    """Of every episode that opened."""
    return [(one.episode, one.state) for one in fold_events(events) if one.state != "pending"]


runs_of = st.sets(st.integers(1, 119), max_size=30)
streams = st.lists(
    st.tuples(st.sampled_from(["g", "b", "-", "G", "B", "bg"]), st.integers(1, 12)), min_size=1, max_size=14
).map(lambda parts: "".join(letters * count for letters, count in parts)[:120])


@settings(max_examples=150, deadline=None)
@given(streams, runs_of, st.booleans(), st.booleans())
@example("g" * 5 + "b" * 19, set(), False, False)
@example("bbbggggg" * 8, set(), False, True)
@example("b" + "-" * 8 + "b", {3}, True, False)
def test_wherever_a_stream_is_cut_the_events_are_those_of_live_runs(
    stream: str, cuts: set[int], any_rule: bool, killed: bool
) -> None:
    rule = ANY if any_rule else RULE
    runs = sorted({*(cut for cut in cuts if cut < len(stream)), len(stream)})
    expected = live(stream, rule)
    found = late(stream, rule, runs, killed=killed)
    assert raised(found) == raised(expected)
    assert len({one.event_id for one in found}) == len(found)
    assert states(found) == states(expected)


def test_the_onset_of_a_long_backlog_is_its_first_bad_window() -> None:
    (opened,) = [one for one in late("g" * 5 + "b" * 19, RULE, [24]) if one.event == "opened"]
    assert evidence_of(opened.attributes).since == at(5)
    assert opened.at == at(8) + LAG


@pytest.mark.parametrize("rule", [RULE, ANY])
def test_what_opened_and_ended_within_a_backlog_is_raised_and_resolved(rule: Rule) -> None:
    events = late("gggbbbb" + "g" * 20, rule, [27])
    assert [one.event for one in events] == ["opened", "resolved"]


def test_a_backlog_of_flips_is_no_more_than_live_runs_would_say() -> None:
    """Each opening asks for the figures of the problem: no more of them than before."""
    stream = "bg" * 60
    assert len(late(stream, RULE, [120])) <= len(live(stream, RULE))
