"""Labels that route alerts, and words that people read on a phone."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragtide.drift.notify.alert import AlertContext, alert_of, alertname, kind_of
from ragtide.drift.problems import LONGEST_TITLE, Kind, Problem, fold_events
from ragtide.drift.routes import Route
from tests.dashboards.sample_rows import NOON, event

FELL = {
    "rule": "mean", "value": 0.42, "baseline": 0.9123, "threshold": 0.7, "sample_size": 1412,
    "since": (NOON - timedelta(minutes=14)).isoformat(),
}  # fmt: skip

NO_CONTEXT = AlertContext()


def problem(what: dict[str, Any] = FELL, *, explanation: str = "", **details: Any) -> Problem:
    fields = {
        "description": "helpdesk (prod): it fell.",
        "actions": ("Look there.", "Then there."),
        "examples": ("t1",),
    }
    made = event("p1", "e1", "opened", 1, NOON, attributes=json.dumps(what), **{**fields, **details})
    [folded] = fold_events([made])
    return replace(folded, explanation=explanation)


def labels(context: AlertContext = NO_CONTEXT, **details: Any) -> dict[str, str]:
    return dict(alert_of(problem(**details), context).labels)


def texts(found: Problem, context: AlertContext = NO_CONTEXT, *symptoms: Problem) -> dict[str, str]:
    return dict(alert_of(found, context, symptoms).annotations)


def test_labels_say_what_where_how_bad_and_whose() -> None:
    routes = [Route(app="help*", owner="search-team", labels={"channel": "#search", "empty": ""})]
    found = labels(AlertContext(routes, {"cluster": "eu", "channel": "#all"}), segment="tenant", segment_value="acme")
    assert found == {
        "alertname": "RagtideThreshold", "app": "helpdesk", "environment": "prod", "severity": "warning",
        "type": "accuracy", "metric": "groundedness.groundedness", "evaluator": "groundedness",
        "segment": "tenant=acme", "model": "m1", "owner": "search-team", "channel": "#search", "cluster": "eu",
        "problem_id": "p1",
    }  # fmt: skip


def test_a_problem_of_the_system_has_no_empty_labels() -> None:
    found = labels(app="", environment="", model="", metric="", aspect="storage", segment="disk", segment_value="a")
    assert set(found) == {"alertname", "severity", "type", "segment", "problem_id"}


@pytest.mark.parametrize("kind", get_args(Kind))
def test_each_kind_has_an_alertname_of_its_own(kind: str) -> None:
    assert alertname(kind) == "Ragtide" + kind.replace("_", " ").title().replace(" ", "")
    assert labels(kind=kind)["alertname"] == alertname(kind)


def test_the_alertname_stays_while_other_kinds_join_and_leave() -> None:
    first = event("p1", "e1", "opened", 1, NOON, kind="drift")
    pending = event("p1", "e0", "pending", 1, NOON - timedelta(minutes=1), kind="threshold")
    more = [
        event("p1", "e2", "kind_opened", 1, NOON + timedelta(minutes=1), kind="threshold", severity="critical"),
        event("p1", "e3", "kind_cleared", 1, NOON + timedelta(minutes=2), kind="drift"),
    ]
    for events in ([first], [first, more[0]], [first, *more], [pending, first, *more]):
        [folded] = fold_events(events)
        assert kind_of(folded) == "drift"


@pytest.mark.parametrize(
    ("details", "title"),
    [
        ({}, "helpdesk: groundedness 0.912 → 0.42"),
        ({"metric": "operations.latency_seconds"}, "helpdesk: operations.latency_seconds 0.912 → 0.42"),
        ({"segment": "tenant", "segment_value": "acme"}, "helpdesk: groundedness (acme) 0.912 → 0.42"),
        ({"what": {"rule": "share", "value": 0.31, "baseline": 0.02}}, "helpdesk: groundedness failed 2 % → 31 %"),
        ({"what": {"value": 0.31}, "kind": "failure_rate"}, "helpdesk: groundedness failed 31 %"),
        ({"what": {"value": 0.31}, "kind": "evaluator_error"}, "helpdesk: groundedness evaluator errors 31 %"),
        ({"what": {"value": 0.05}, "kind": "slo_burn"}, "helpdesk: groundedness outside its objective 5 %"),
        ({"what": {}}, "helpdesk: it fell."),
        ({"what": {}, "app": "", "environment": "", "model": "", "description": "Disk full."}, "ragtide: Disk full."),
        (
            {"app": "a" * 100, "metric": "b" * 100},
            f"{'a' * 27}…: {'b' * 36}… 0.912 → 0.42",
        ),
    ],
)
def test_a_title_says_app_metric_and_before_and_after(details: dict[str, Any], title: str) -> None:
    said = texts(problem(**details))["title"]
    assert said == title
    assert len(said) <= LONGEST_TITLE


def test_the_description_answers_what_a_person_asks_at_night() -> None:
    symptoms = [problem(metric="answer.relevancy"), problem(metric="answer.length"), problem(metric="a.a")]
    said = texts(problem(explanation="Since release 7 the index is empty."), NO_CONTEXT, *symptoms)["description"]
    assert said.splitlines() == [
        "helpdesk (prod): it fell.",
        "How bad: warning, 0.912 → 0.42, limit 0.7, on 1,412 traces.",
        "Since 2026-03-01 11:46:00 UTC.",
        "Why: Since release 7 the index is empty.",
        "It explains 3 other problems: answer.relevancy, answer.length, a.",
        "To do:",
        "1. Look there.",
        "2. Then there.",
    ]


def test_links_lead_to_runbook_dashboard_and_worst_trace() -> None:
    context = AlertContext(
        runbook_link="https://wiki/{}".format, trace_link=lambda *names: "/".join(("t:", *names)),
        problem_link=lambda *names: "/".join(("p:", *names)),
    )  # fmt: skip
    said = texts(problem(kind="drift"), context)
    links = [said[name] for name in ("runbook_url", "dashboard_url", "trace_url")]
    assert links == ["https://wiki/drift", "p:/p1/helpdesk/prod", "t:/t1/helpdesk"]
    assert not {"runbook_url", "dashboard_url", "trace_url"} & texts(problem(examples=())).keys()


def test_the_summary_is_the_same_over_a_group() -> None:
    one, other = problem(), problem(metric="answer.relevancy", severity="critical", description="another")
    assert texts(one)["summary"] == texts(other)["summary"] == "Accuracy problems in helpdesk (prod)"


def test_the_alert_begins_with_the_problem_and_never_after_it_opened() -> None:
    assert alert_of(problem(), NO_CONTEXT).starts_at == NOON - timedelta(minutes=14)
    later = {"since": (NOON + timedelta(hours=1)).isoformat()}
    assert alert_of(problem(later), NO_CONTEXT).starts_at == NOON


names = st.text(st.characters(codec=None), max_size=400)


@given(app=names, metric=names, segment=names, value=names, model=names, description=names, action=names)
def test_whatever_names_hold_labels_and_texts_fit(
    app: str, metric: str, segment: str, value: str, model: str, description: str, action: str
) -> None:
    found = problem(
        app=app, metric=metric, segment=segment, segment_value=value, model=model, description=description,
        actions=(action,),
    )  # fmt: skip
    alert = alert_of(found, NO_CONTEXT)
    for text in alert.labels.values():
        assert 0 < len(text) <= 200
        assert not any(ord(sign) < 32 for sign in text)
    for text in (*alert.labels.values(), *alert.annotations.values()):
        text.encode()
    assert len(alert.annotations["title"]) <= LONGEST_TITLE
    assert len(alert.annotations["description"]) <= 3000


def test_long_names_that_differ_at_their_end_stay_different() -> None:
    one, other = (labels(segment="url", segment_value=f"{'x' * 300}{end}")["segment"] for end in "ab")
    assert one != other
