"""What an annotation says of a problem, from its opening to its end."""

from datetime import timedelta

import pytest

from ragtide.drift.notify.delivery import DeliveryResult
from tests.dashboards.sample_rows import APP, NOON
from tests.drift.notify.delivery_job import OPENED, REOPENED, RESOLVED, UPDATED, Job, ms

pytestmark = pytest.mark.clickhouse


def test_an_open_problem_is_a_region_from_its_beginning(job: Job) -> None:
    job.happened(OPENED, UPDATED)
    assert job.run() == DeliveryResult(opened=1)
    (shown,) = job.annotations()
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON - timedelta(minutes=3)), ms(NOON))
    assert shown["text"] == "critical accuracy: it fell from 0.9 to 0.2\nLook there.\nExamples: t1, t2"
    assert shown["tags"] == [
        "ragtide", "problem", f"app:{APP}", "environment:prod", "metric:groundedness.groundedness", "type:accuracy",
        "severity:critical", f"group:{APP}/prod/m1/accuracy", "id:p1:1",
    ]  # fmt: skip


def test_a_resolved_problem_is_closed(job: Job) -> None:
    job.happened(OPENED)
    job.run()
    job.happened(RESOLVED)
    assert job.run() == DeliveryResult(closed=1)
    (shown,) = job.annotations()
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON - timedelta(minutes=3)), ms(RESOLVED.at))
    assert shown["tags"][-2:] == ["id:p1:1", "resolved"]
    assert shown["text"].startswith("critical accuracy: it is back")


EXPLAINED = OPENED._replace(
    event_id="c1", event="explained", at=NOON + timedelta(minutes=2), kind="", type="", severity="",
    description="Of one tenant.", attributes='{"opening": 1}', examples=(), actions=(),
)  # fmt: skip


def test_a_cause_is_told_beside_the_description_once_it_is_known(job: Job) -> None:
    job.happened(OPENED)
    job.run()
    job.happened(EXPLAINED)
    assert job.run() == DeliveryResult()
    (shown,) = job.annotations()
    assert shown["text"] == "critical accuracy: it fell from 0.9 to 0.2 Of one tenant.\nLook there.\nExamples: t1, t2"
    assert (shown["time"], shown["tags"][-1]) == (ms(NOON - timedelta(minutes=3)), "id:p1:1")
    job.happened(RESOLVED)
    job.run()
    (shown,) = job.annotations()
    assert shown["text"].startswith("critical accuracy: it is back Of one tenant.")
    assert shown["tags"][-2:] == ["id:p1:1", "resolved"]


KIND_OPENED = OPENED._replace(
    event_id="j1", event="kind_opened", at=NOON + timedelta(minutes=1), kind="drift", severity="warning",
    description="it is unlike last week",
)  # fmt: skip
KIND_CLEARED = OPENED._replace(
    event_id="j2", event="kind_cleared", at=NOON + timedelta(minutes=2), description="it was lower"
)


def test_what_is_told_changes_with_what_sees_the_problem_once_each(job: Job) -> None:
    job.happened(OPENED)
    job.run()
    job.happened(KIND_OPENED)  # the severer kind still speaks
    assert job.run() == DeliveryResult()
    (shown,) = job.annotations()
    assert shown["text"].startswith("critical accuracy: it fell from 0.9 to 0.2\n")
    assert shown["timeEnd"] == ms(KIND_OPENED.at)
    job.happened(KIND_CLEARED)
    job.run()
    (shown,) = job.annotations()
    assert shown["text"].startswith("warning accuracy: it is unlike last week\n")
    assert "severity:warning" in shown["tags"]
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON - timedelta(minutes=3)), ms(KIND_CLEARED.at))
    calls = len(job.grafana.calls)
    assert job.run() == job.run(epoch=2) == DeliveryResult()
    assert len(job.grafana.calls) == calls
    assert len(job.grafana.made("PATCH", "/api/annotations/")) == 2


def test_a_kind_that_cleared_before_the_end_or_in_an_earlier_opening_is_told_no_more(job: Job) -> None:
    job.happened(OPENED, KIND_OPENED, KIND_CLEARED, RESOLVED)
    assert job.run() == DeliveryResult(opened=1, closed=1)
    job.happened(REOPENED)
    assert job.run() == DeliveryResult(opened=1)
    (shown,) = job.annotations()
    assert (shown["timeEnd"], "resolved" in shown["tags"]) == (ms(REOPENED.at), False)
    assert job.states() == dict.fromkeys(("grafana:e1", "grafana:e3", "grafana:e4"), "sent")


def test_groups_that_are_too_long_for_a_tag_stay_apart(job: Job) -> None:
    long = "a" * 90
    job.happened(OPENED._replace(app=long), OPENED._replace(app=long, type="fairness", problem_id="p2", event_id="f1"))
    job.run()
    groups = {tag for each in job.annotations() for tag in each["tags"] if tag.startswith("group:")}
    assert len(groups) == 2
    assert all(len(tag) <= 80 for tag in groups)


def test_a_cause_that_comes_after_the_end_reopens_nothing(job: Job) -> None:
    job.happened(OPENED, RESOLVED)
    job.run()
    job.happened(EXPLAINED._replace(at=RESOLVED.at + timedelta(seconds=1)))
    calls = len(job.grafana.calls)
    assert job.run() == DeliveryResult()
    assert len(job.grafana.calls) == calls


def test_a_problem_without_extent_is_still_a_region(job: Job) -> None:
    job.happened(OPENED._replace(attributes=""))
    job.run()
    (shown,) = job.annotations()
    assert (shown["time"], shown["timeEnd"]) == (ms(NOON), ms(NOON) + 1000)


def test_names_that_applications_choose_are_text_and_not_too_long(job: Job) -> None:
    bad = "<img src=x onerror=alert(1)>" + "ä" * 200
    job.happened(OPENED._replace(app=bad, environment=bad, metric=bad, description=bad))
    job.run()
    (shown,) = job.annotations()
    assert "<" not in shown["text"]
    assert all(len(tag.encode()) <= 100 for tag in shown["tags"])
    assert shown["tags"][-1] == "id:p1:1"
