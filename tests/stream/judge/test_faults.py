"""The client against endpoints that fail, hang or throttle, bounded in time."""

import asyncio
import time
from email.utils import formatdate

import pytest
from aiohttp import web

from ragtide.evaluators.judge.calls import Asker, TraceCalls
from ragtide.evaluators.judge.replies import Texts
from tests.stream.judge.asking import STATEMENTS, ask, ask_all, judge, kind, verdicts
from tests.stream.judge.chat_server import (
    Behaviour,
    Sent,
    chat_server,
    cut_connection,
    error,
    hang,
    raw,
    reply,
    slow_stream,
)

GOOD = reply({"texts": ["It opens at nine."]})
SAID = Texts(("It opens at nine.",))


@pytest.mark.parametrize("status", [500, 501, 502, 503, 521, 523, 525, 529, 599, 408])
def test_a_server_that_fails_is_asked_again(status: int) -> None:
    with chat_server(GOOD, error(status), error(status)) as server, judge(server.url) as client:
        assert ask(client) == SAID
        assert len(server.sent) == 3


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (error(500), "judge_unavailable"),
        (error(429, "rate_limit_exceeded"), "judge_throttled"),
        (cut_connection, "judge_unavailable"),
        (raw(b"<html>gateway</html>"), "judge_unavailable"),
        (raw(b'{"choices": []}'), "judge_unavailable"),
        (raw(b"x" * (5 << 20)), "judge_unavailable"),
    ],
)
def test_attempts_are_bounded(behaviour: Behaviour, expected: str) -> None:
    with chat_server(behaviour) as server, judge(server.url, retries=2) as client:
        result = ask(client)
        assert len(server.sent) == 3
    assert kind(result) == expected
    assert "3 attempts" in str(result)


@pytest.mark.parametrize("status", [401, 403, 404, 307])
def test_what_only_a_person_can_mend_is_not_tried_again(status: int) -> None:
    with (
        chat_server(error(status, "invalid_api_key", Location="http://127.0.0.1:1/")) as server,
        judge(server.url) as client,
    ):
        result = ask(client)
        assert len(server.sent) == 1
    assert kind(result) == "judge_rejected"
    assert f"status {status} (invalid_api_key)" in str(result)


@pytest.mark.parametrize("slow", [hang, slow_stream])
def test_a_call_takes_no_longer_than_its_limit(slow: Behaviour) -> None:
    with chat_server(slow) as server, judge(server.url, timeout_s=0.3, retries=1) as client:
        start = time.monotonic()
        assert kind(ask(client)) == "judge_timeout"
        assert 0.55 < time.monotonic() - start < 3
        assert len(server.sent) == 2


def test_finding_out_the_structured_output_takes_no_longer_than_the_limit() -> None:
    async def late(sent: Sent, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.3)
        return await error(400, "unsupported_parameter")(sent, request)

    with chat_server(late) as server, judge(server.url, timeout_s=0.4, retries=0) as client:
        start = time.monotonic()
        assert kind(ask(client)) == "judge_timeout"
        assert time.monotonic() - start < 0.7, "three posts of 0.3 s each within one limit"


def test_all_calls_about_a_trace_have_one_limit() -> None:
    with chat_server(hang) as server, judge(server.url, timeout_s=10, trace_timeout_s=0.4, retries=9) as client:
        asker = Asker("e", TraceCalls("shop"))
        start = time.monotonic()
        assert kind(ask(client, asker=asker)) == "judge_timeout"
        assert kind(ask(client, verdicts(1), asker)) == "judge_timeout"
        assert time.monotonic() - start < 2
        assert len(server.sent) == 1, "for the second call no time was left"


@pytest.mark.parametrize("wait", ["1", "date"])
def test_retry_after_is_honoured_by_every_call(wait: str) -> None:
    with chat_server(GOOD, GOOD) as server, judge(server.url) as client:
        assert ask(client) == SAID
        seconds = wait if wait == "1" else formatdate(time.time() + 2, usegmt=True)
        server.script = [error(429, "rate_limit_exceeded", Retry_After=seconds)]
        start = time.monotonic()
        assert ask_all(client, [STATEMENTS]) == [SAID]
        assert 0.9 < time.monotonic() - start < 4
        assert len(server.sent) == 3


def test_a_longer_wait_than_a_trace_may_take_fails_at_once() -> None:
    with chat_server(error(429, "insufficient_quota", Retry_After="3600")) as server, judge(server.url) as client:
        start = time.monotonic()
        result = ask(client)
        assert time.monotonic() - start < 2
        assert len(server.sent) == 1
    assert kind(result) == "judge_throttled"
    assert "insufficient_quota" in str(result)


def test_a_breaker_leaves_a_broken_endpoint_alone_and_tries_it_again() -> None:
    with (
        chat_server(error(500)) as server,
        judge(server.url, retries=0, breaker_failures=3, breaker_s=0.4) as client,
    ):
        for _ in range(6):
            assert kind(ask(client)) == "judge_unavailable"
        assert len(server.sent) == 3
        server.otherwise = GOOD
        time.sleep(0.5)
        assert ask(client) == SAID
        assert ask(client) == SAID


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with judge("http://127.0.0.1:9/v1", retries=1) as client:
        assert kind(ask(client)) == "judge_unavailable"


def test_calls_end_when_the_client_is_closed() -> None:
    done: list[object] = []
    with chat_server(hang) as server, judge(server.url, timeout_s=60) as client:
        client.submit(STATEMENTS, Asker("e", TraceCalls("shop")), done.append)
        end = time.monotonic() + 5
        while not server.sent and time.monotonic() < end:
            time.sleep(0.01)
        start = time.monotonic()
        client.close()
        assert time.monotonic() - start < 3
        client.submit(STATEMENTS, Asker("e", TraceCalls("shop")), done.append)
    assert [kind(one) for one in done] == ["judge_unavailable"] * 2


def test_a_call_that_is_cancelled_before_it_begins_ends_too() -> None:
    done: list[object] = []
    with chat_server(GOOD) as server, judge(server.url) as client:
        assert ask(client) == SAID
        for _ in range(50):
            client.submit(STATEMENTS, Asker("e", TraceCalls("shop")), done.append)
        client.close()
    assert len(done) == 50
