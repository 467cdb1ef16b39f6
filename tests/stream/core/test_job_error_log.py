"""What a job fails of is in the log once an hour for each reason, and that it works again."""

import logging

import pytest

from ragtide.stream.job_error_log import JobErrorLog


def test_each_reason_is_said_once_an_hour_however_its_figures_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = [0.0]
    errors = JobErrorLog(lambda: now[0])
    for at, why in ((0, "no answer"), (5, "asked again in 10 s"), (10, "asked again in 5 s"), (15, "no answer")):
        now[0] = at
        errors.record_failure("announce", why)
    errors.record_failure("watch", "no answer")
    now[0] = 3600
    errors.record_failure("announce", "no answer")
    errors.record_failure("announce", "asked again in 9 s")
    assert caplog.messages == [
        "job announce failed: no answer",
        "job announce failed: asked again in 10 s (2 consecutive failures)",
        "job watch failed: no answer",
        "job announce failed: no answer (5 consecutive failures)",
    ]


def test_that_it_works_again_is_said_and_the_next_failure_is_new(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    errors = JobErrorLog(lambda: 0.0)
    errors.record_success("watch")
    errors.record_failure("watch", "no answer")
    errors.record_failure("watch", "no answer")
    errors.record_success("watch")
    errors.record_success("watch")
    errors.record_failure("watch", "no answer")
    assert caplog.messages == [
        "job watch failed: no answer",
        "job watch succeeded after 2 failed runs",
        "job watch failed: no answer",
    ]
