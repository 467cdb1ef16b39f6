"""One trouble that several kinds see, step by step and without a database."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.problems.kinds import Kind
from ragtide.drift.problems.model import EventRow, Problem, problem_id
from ragtide.drift.problems.report import Details, ProblemKey, event_row, last_details
from ragtide.drift.problems.store import fold_events
from ragtide.drift.problems.transitions import cleared_by, flap_timeout, opened_by
from ragtide.drift.settings import RuleSettings, Severity

KEY = ProblemKey("shop", "prod", "m1", "level", "quality.good")
ID = problem_id(*KEY)
SETTINGS = RuleSettings(flap_s=600, flapping_openings=2, flapping_within_s=7200, flapping_quiet_s=1800)
T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEVERITIES: dict[Kind, Severity] = {"threshold": "info", "drift": "critical", "change_point": "warning"}


class Life:
    """A problem to which things happen, minute by minute."""

    def __init__(self) -> None:
        self.rows: list[EventRow] = []

    @property
    def problem(self) -> Problem | None:
        return max(fold_events(self.rows), key=lambda one: one.episode, default=None)

    @property
    def events(self) -> list[str]:
        return [row.event for row in self.rows]

    def sees(self, kind: Kind, minute: float) -> None:
        turn = opened_by(ID, kind, self.problem, SETTINGS, T0 + timedelta(minutes=minute))
        if turn is not None:
            said = f"{kind} sees it"
            account = Details(kind, "accuracy", SEVERITIES[kind], "", (), said, {}, (), "", (f"trace-{kind}",))
            self.rows.append(event_row(KEY, turn, account, 1))

    def sees_no_more(self, kind: Kind, minute: float) -> None:
        turn = (
            None if self.problem is None else cleared_by(kind, self.problem, SETTINGS, T0 + timedelta(minutes=minute))
        )
        if self.problem is not None and turn is not None:
            self.rows.append(event_row(KEY, turn, last_details(self.problem, kind), 1))

    def rests(self, minute: float) -> None:
        turn = None if self.problem is None else flap_timeout(self.problem, SETTINGS, T0 + timedelta(minutes=minute))
        if self.problem is not None and turn is not None:
            self.rows.append(event_row(KEY, turn, last_details(self.problem, self.problem.kinds[-1]), 1))


def test_a_problem_is_open_until_the_last_kind_says_that_it_is_over() -> None:
    life = Life()
    life.sees("threshold", 0)
    for minute in (1, 2):  # told again nothing happens
        life.sees("drift", minute)
        life.sees("threshold", minute)
    life.sees_no_more("threshold", 3)
    assert life.problem is not None
    assert (life.problem.state, life.problem.kinds, life.problem.active_kinds) == (
        "open",
        ("threshold", "drift"),
        ("drift",),
    )
    life.sees_no_more("change_point", 4)
    life.sees_no_more("drift", 5)
    life.sees_no_more("drift", 6)
    assert (life.problem.state, life.problem.active_kinds) == ("resolved", ())
    assert life.events == ["opened", "kind_opened", "kind_cleared", "resolved"]


def test_the_words_of_the_highest_severity_that_holds_stand() -> None:
    life = Life()

    def said() -> tuple[str, str, tuple[str, ...]]:
        assert life.problem is not None
        return life.problem.description, life.problem.severity, life.problem.examples

    life.sees("change_point", 0)
    life.sees("threshold", 1)  # spoke last, and is of less weight
    assert said() == ("change_point sees it", "warning", ("trace-change_point",))
    life.sees("drift", 2)
    assert said() == ("drift sees it", "critical", ("trace-drift",))
    life.sees_no_more("drift", 3)
    assert said() == ("change_point sees it", "warning", ("trace-change_point",))
    life.sees_no_more("change_point", 4)
    assert said() == ("threshold sees it", "info", ("trace-threshold",))


def test_another_kind_reopens_within_the_flap_interval_and_opens_an_episode_later() -> None:
    life = Life()
    life.sees("threshold", 0)
    life.sees_no_more("threshold", 1)
    life.sees("drift", 10)
    life.sees_no_more("drift", 11)
    life.sees("drift", 22)
    assert life.events == ["opened", "resolved", "reopened", "resolved", "opened"]
    assert [one.kinds for one in fold_events(life.rows)] == [("threshold", "drift"), ("drift",)]


def test_what_happens_in_one_moment_is_in_order() -> None:
    life = Life()
    life.sees("threshold", 0)
    life.sees_no_more("threshold", 1)
    life.sees("drift", 1)
    assert life.events == ["opened", "resolved", "reopened"]
    assert life.problem is not None
    assert (life.problem.state, life.problem.active_kinds) == ("open", ("drift",))


def test_a_problem_that_flaps_stays_open_until_it_is_quiet_for_longer() -> None:
    life = Life()
    for minute in (0, 20, 40):  # the third opening within two hours, and two are allowed
        life.sees("threshold", minute)
        life.sees_no_more("threshold", minute + 5)
    assert life.events == ["opened", "resolved", "opened", "resolved", "opened", "kind_cleared"]
    assert life.problem is not None
    assert (life.problem.state, life.problem.active_kinds, life.problem.attributes["flapping"]) == ("open", (), 3)
    life.rests(74)
    life.sees("threshold", 74)  # it was not quiet for half an hour
    life.sees_no_more("threshold", 80)
    life.rests(109)
    assert life.events[6:] == ["kind_opened", "kind_cleared"]
    life.rests(110)
    life.rests(111)
    assert life.events[8:] == ["resolved"]
    life.sees("threshold", 200)  # the first openings are long ago
    life.sees_no_more("threshold", 201)
    assert life.events[9:] == ["opened", "resolved"]


KINDS = st.sampled_from(list(SEVERITIES))


@given(st.lists(st.tuples(st.sampled_from(["sees", "sees_no_more", "rests"]), KINDS, st.integers(0, 30)), max_size=40))
def test_whatever_is_told_a_problem_is_open_while_a_kind_holds(told: list[tuple[str, Kind, int]]) -> None:
    life, minute, holding = Life(), 0, set[str]()
    for what, kind, later in told:
        minute += later
        if what == "rests":
            life.rests(minute)
            continue
        getattr(life, what)(kind, minute)
        (holding.add if what == "sees" else holding.discard)(kind)
        if life.problem is not None:
            assert set(life.problem.active_kinds) == holding
            assert life.problem.state == "open" if holding else life.problem.all_clear_since or life.problem.resolved_at
    ids = [row.event_id for row in life.rows]
    assert len(ids) == len(set(ids))
    assert [row.at for row in life.rows] == sorted({row.at for row in life.rows})


@pytest.mark.parametrize("event", ["opened", "kind_opened"])
def test_two_leaders_that_see_the_same_write_the_same(event: str) -> None:
    life = Life()
    if event == "kind_opened":
        life.sees("threshold", 0)
    one, other = (opened_by(ID, "drift", life.problem, SETTINGS, T0 + timedelta(minutes=minute)) for minute in (1, 2))
    assert one is not None
    assert other is not None
    assert (one.event, one.event_id) == (event, other.event_id)
