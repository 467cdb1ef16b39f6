"""Which problems have one cause, and which of them is the parent."""

import json
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from ragtide.drift.problems.groups import EpisodeKey, group, parents, speaks_for
from ragtide.drift.problems.model import Problem
from ragtide.drift.problems.store import fold_events
from tests.dashboards.sample_rows import event
from tests.infra.growth import growth_fault

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RETRIEVAL: dict[str, Any] = {"aspect": "level", "metric": "context_relevancy.score", "type": "retrieval"}
ANSWERS: dict[str, Any] = {"aspect": "level", "metric": "groundedness.groundedness", "type": "accuracy"}
LATENCY: dict[str, Any] = {"aspect": "level", "metric": "operations.latency_seconds", "type": "efficiency"}
COST: dict[str, Any] = {"aspect": "level", "metric": "operations.cost_usd", "type": "cost"}
ERRORS: dict[str, Any] = {"aspect": "level", "metric": "operations.error", "type": "runtime"}
PII: dict[str, Any] = {"aspect": "level", "metric": "pii_leakage.passes", "type": "privacy"}
EMAIL: dict[str, Any] = {
    "aspect": "finding",
    "metric": "pii_leakage",
    "model": "",
    "type": "privacy",
    "segment": "finding",
    "segment_value": "email",
}
SECRET: dict[str, Any] = {"aspect": "level", "metric": "sensitive_data_leakage.passes", "type": "security"}
FLIP: dict[str, Any] = {"aspect": "flip", "type": "robustness", "segment": "typos", "segment_value": "1"}
UNSTABLE: dict[str, Any] = {"aspect": "inconsistency", "type": "stability"}
COVERAGE: dict[str, Any] = {"aspect": "coverage", "type": "data_quality"}
ERROR: dict[str, Any] = {"aspect": "error", "model": "", "type": "runtime"}
MISSING: dict[str, Any] = {"aspect": "missing", "metric": "", "model": "", "type": "data_quality"}
DEAD_LETTERS: dict[str, Any] = {
    "aspect": "storage",
    "app": "",
    "environment": "",
    "model": "",
    "metric": "",
    "type": "storage",
}
JUDGE: dict[str, Any] = {"aspect": "judge", "app": "", "environment": "", "model": "", "type": "data_quality"}
TENANT: dict[str, Any] = {"segment": "tenant", "segment_value": "acme"}


def problem(
    id_: str = "p", after_m: float = 0, ends_m: float | None = None, interval_m: float = 0, **where: Any
) -> Problem:
    """Began and opened `after_m` minutes after noon, by intervals of a length."""
    since = NOON + timedelta(minutes=after_m)
    window = {"start": since.isoformat(), "end": (since + timedelta(minutes=interval_m)).isoformat()}
    evidence = json.dumps({"since": since.isoformat(), "window": window})
    said = {"attributes": evidence, "metric": "quality.good", **where}
    events = [event(id_, f"{id_}1", "opened", 1, since, **said)]
    if ends_m is not None:
        events.append(event(id_, f"{id_}2", "resolved", 1, NOON + timedelta(minutes=ends_m), **said))
    (found,) = fold_events(events)
    return found


def parent_ids(*problems: Problem, now: datetime = NOON) -> dict[str, str]:
    return {key.problem_id: parent.problem_id for key, parent in parents(problems, now).items()}


@pytest.mark.parametrize(
    ("cause", "other", "expected"),
    [
        (RETRIEVAL, ANSWERS, True),
        (RETRIEVAL, UNSTABLE, True),
        (RETRIEVAL, FLIP, True),
        (RETRIEVAL, {**RETRIEVAL, "metric": "other.score"}, True),  # one retriever, many metrics
        (RETRIEVAL, {**ANSWERS, "model": "m2"}, True),  # a retriever serves every model
        (RETRIEVAL, {**ANSWERS, **TENANT}, True),
        ({**RETRIEVAL, **TENANT}, {**ANSWERS, **TENANT}, True),
        ({**RETRIEVAL, **TENANT}, ANSWERS, False),
        ({**RETRIEVAL, **TENANT}, {**ANSWERS, **TENANT, "segment_value": "globex"}, False),
        (RETRIEVAL, {**ANSWERS, "segment": "objective", "segment_value": "in-time"}, False),
        (RETRIEVAL, {**ANSWERS, "app": "other"}, False),
        (RETRIEVAL, {**ANSWERS, "environment": "other"}, False),
        (RETRIEVAL, PII, False),
        (RETRIEVAL, {**ANSWERS, "type": "fairness"}, False),
        (ANSWERS, LATENCY, True),  # longer answers
        (ANSWERS, {**LATENCY, "model": "m2"}, False),
        (ANSWERS, {**ANSWERS, "model": "m2"}, True),  # the same metric
        (LATENCY, COST, True),
        (LATENCY, {**UNSTABLE, "metric": "operations.cost_usd"}, True),  # of the same evaluator
        (LATENCY, {**UNSTABLE, "metric": "answers.agreement"}, False),
        (COST, {**UNSTABLE, "metric": "operations.cost_usd"}, True),
        (PII, {**UNSTABLE, "metric": "pii_leakage.passes"}, True),
        (PII, UNSTABLE, False),
        (ERRORS, RETRIEVAL, True),
        (ERRORS, LATENCY, True),
        (PII, EMAIL, True),
        (PII, SECRET, True),
        (SECRET, EMAIL, False),  # of another evaluator
        (PII, ANSWERS, False),
        (COVERAGE, {**ANSWERS, "metric": "quality.other"}, True),  # of the same evaluator
        (ERROR, COVERAGE, True),
        (ERROR, {**ERROR, "app": "other"}, True),  # one evaluator fails everywhere
        (ERROR, {**ERROR, "app": "other", "metric": "toxicity"}, False),
        (MISSING, {**MISSING, "app": "other"}, True),
        (MISSING, COVERAGE, True),
        (MISSING, ANSWERS, True),  # of an application that sends nothing, whatever else is said rests on few traces
        (MISSING, LATENCY, True),
        (MISSING, PII, False),
        (MISSING, {**ANSWERS, "app": "other"}, False),
        (DEAD_LETTERS, MISSING, True),
        (DEAD_LETTERS, {**DEAD_LETTERS, "aspect": "jobs"}, True),
        (DEAD_LETTERS, ANSWERS, False),
        (JUDGE, {**ANSWERS, "metric": "quality.good"}, True),
        (JUDGE, {**ANSWERS, "metric": "quality.good", **TENANT}, True),
        (JUDGE, {**UNSTABLE, "metric": "quality.good"}, True),
        (JUDGE, {**ANSWERS, "metric": "quality.good", "type": "privacy"}, False),  # a leak is told whatever else is
        (JUDGE, ANSWERS, False),  # of another evaluator
        (JUDGE, COVERAGE, False),  # a judge that scores otherwise scores
    ],
)
def test_what_begins_together_and_follows_from_another_is_its_symptom(
    cause: dict[str, Any], other: dict[str, Any], expected: bool
) -> None:
    both = problem("a", **cause), problem("b", after_m=1, **other)
    assert parent_ids(*both) == ({"b": "a"} if expected else {})


@pytest.mark.parametrize(
    ("cause", "other", "minutes", "expected"),
    [
        (RETRIEVAL, ANSWERS, 10, True),
        (RETRIEVAL, ANSWERS, -10, True),
        (RETRIEVAL, ANSWERS, 11, False),
        (RETRIEVAL, {**ANSWERS, "interval_m": 30}, 40, True),  # pooled windows
        (RETRIEVAL, {**ANSWERS, "interval_m": 30}, 41, False),
        (RETRIEVAL, UNSTABLE, 23 * 60, True),  # looks at a day at once
        (RETRIEVAL, UNSTABLE, 25 * 60, False),
        (RETRIEVAL, UNSTABLE, -11, False),
        (MISSING, {**MISSING, "app": "other"}, 10, True),
        (MISSING, {**MISSING, "app": "other"}, 11, False),
        ({**JUDGE, "interval_m": 1440}, {**ANSWERS, "metric": "quality.good"}, -1000, True),  # it changed between runs
        ({**JUDGE, "interval_m": 1440}, {**ANSWERS, "metric": "quality.good"}, -1500, False),
    ],
)
def test_a_symptom_begins_with_its_parent(
    cause: dict[str, Any], other: dict[str, Any], minutes: float, expected: bool
) -> None:
    both = problem("a", **cause), problem("b", after_m=minutes, **other)
    linked = bool(parents(both, NOON + timedelta(minutes=minutes)))
    assert linked is expected


def test_the_parent_lies_first_on_the_faults_way_and_has_no_parent() -> None:
    found = [
        problem("retrieval", **RETRIEVAL),
        problem("answers", **ANSWERS),
        problem("latency", after_m=2, **LATENCY),
        problem("unstable", after_m=90, **UNSTABLE),
        problem("leak", **PII),
        problem("part", **{**ANSWERS, **TENANT}),
    ]
    expected = dict.fromkeys(("answers", "latency", "unstable", "part"), "retrieval")
    for some in permutations(found):
        assert parent_ids(*some) == expected
    groups = group(found, NOON)
    assert [one.problem_id for one in groups.symptoms_of(found[0])] == ["answers", "latency", "unstable", "part"]
    assert groups.fold(found) == [found[0], found[4]]
    assert groups.fold(found[1:]) == found[1:]  # their parent is not shown
    assert groups.unfold(found) == [*found[:4], found[5], found[4]]


def test_a_finding_goes_with_its_evaluators_scores_to_their_parent() -> None:
    key = {**EMAIL, "metric": "sensitive_data_leakage", "type": "security", "segment_value": "key"}
    found = problem("a", **PII), problem("b", **SECRET), problem("c", after_m=3, **key)
    assert parent_ids(*found) == {"b": "a", "c": "a"}


def test_no_chain_of_onsets_links_what_is_far_apart() -> None:
    chain = [
        problem(str(place), after_m=8 * place, **{**ANSWERS, "metric": f"metric{place}.score"}) for place in range(4)
    ]
    assert parent_ids(*chain) == {"1": "0", "3": "2"}


def test_symptoms_stand_alone_once_their_parent_has_resolved() -> None:
    over, still = problem("a", ends_m=30, **RETRIEVAL), problem("b", **ANSWERS)
    for minutes, expected in ((44, {"b": "a"}), (45, {})):
        assert parent_ids(over, still, now=NOON + timedelta(minutes=minutes)) == expected
    later = NOON + timedelta(days=30)
    assert parent_ids(over, problem("b", ends_m=45, **ANSWERS), now=later) == {"b": "a"}  # the past stays grouped
    assert parent_ids(over, problem("b", ends_m=46, **ANSWERS), now=later) == {}  # and what was announced alone
    assert parent_ids(over, problem("b", after_m=31, ends_m=35, **ANSWERS), now=later) == {}  # after its end


@pytest.mark.parametrize(
    ("cause", "other", "lookback_m"), [(RETRIEVAL, UNSTABLE, 24 * 60), (RETRIEVAL, FLIP, 24 * 60), (PII, EMAIL, 60)]
)
def test_what_looks_back_at_a_fault_that_is_over_stays_its_symptom(
    cause: dict[str, Any], other: dict[str, Any], lookback_m: int
) -> None:
    over = problem("a", ends_m=30, **cause)
    opens = {"while it is open": 5, "soon after": 31, "as its last traffic is judged": 30 + lookback_m}
    for opens_m in opens.values():
        still = problem("b", after_m=opens_m, **other)
        for minutes in (30 + lookback_m, 44 + lookback_m):
            assert parent_ids(over, still, now=NOON + timedelta(minutes=minutes)) == {"b": "a"}
        assert parent_ids(over, still, now=NOON + timedelta(minutes=45 + lookback_m)) == {}
    apart = problem("b", after_m=31 + lookback_m, **other)
    assert parent_ids(over, apart, now=NOON + timedelta(minutes=32 + lookback_m)) == {}


def test_a_finding_is_a_symptom_for_as_long_as_its_evaluators_scores_are_bad() -> None:
    both = problem("a", **PII), problem("b", after_m=300, **EMAIL)
    assert parent_ids(*both, now=NOON + timedelta(minutes=301)) == {"b": "a"}


def test_a_symptom_that_is_more_severe_than_its_parent_is_announced() -> None:
    cause, worse = problem("a", **RETRIEVAL, severity="warning"), problem("b", **ANSWERS, severity="critical")
    assert parents([cause, worse], NOON) == {EpisodeKey("b", 1): cause}
    assert not speaks_for(cause, worse)
    assert group([cause, worse], NOON).severity(cause) == "critical"
    assert speaks_for(worse, cause)
    assert speaks_for(problem("c", **COVERAGE, severity="warning"), problem("d", aspect="level", severity="critical"))


def test_grouping_takes_time_as_there_are_problems() -> None:
    """A problem is compared with those of its traffic and time only."""

    def unrelated(count: int) -> list[Problem]:
        every = [problem(f"p{n}", after_m=11 * n, **ANSWERS, model=f"m{n % 3}") for n in range(count)]
        return [*every, *(problem(f"s{n}", **ANSWERS, segment="tenant", segment_value=str(n)) for n in range(count))]

    few, many = unrelated(300), unrelated(2400)
    assert growth_fault(lambda: parents(few, NOON), lambda: parents(many, NOON), 8) is None
