"""Batches at endpoints that fail, refuse, forget or hang: each ends in failures, bounded in time, and nothing twice."""

import json
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from ragtide.stream.judge.batch_state import BatchRecord, BatchState
from tests.stream.judge.asking import ask, ask_all, kind
from tests.stream.judge.batch_server import NEVER, Refusal, batch_server
from tests.stream.judge.batches import CALLS, REPLY, SAID, always, batching, kinds, number_of, statements
from tests.stream.judge.chat_server import Behaviour, Sent, cut_connection, error, hang, raw, slow_stream


@pytest.mark.parametrize(
    ("status", "expected", "said"),
    [
        ("failed", ["judge_rejected"] * 6, "batch batch_1 was refused (invalid_json_line)"),
        ("expired", ["", "", "", *["judge_timeout"] * 3], "the batch expired before this call"),
        ("cancelled", ["", "", "", *["judge_unavailable"] * 3], "the batch was cancelled before this call"),
    ],
)
def test_a_batch_that_does_not_complete(tmp_path: Path, status: str, expected: list[str], said: str) -> None:
    with batch_server(lambda sent: REPLY, ends_as=status) as server:
        with batching(server.url, tmp_path) as client:
            results = ask_all(client, CALLS)
        assert not server.files
    assert sorted(kinds(results)) == sorted(expected)
    assert said in str(results)


def test_too_many_tokens_in_the_queue_are_throttling(tmp_path: Path) -> None:
    options = {"ends_as": "failed", "refused_for": "token_limit_exceeded"}
    with batch_server(lambda sent: REPLY, **options) as server, batching(server.url, tmp_path) as client:
        assert kind(ask(client)) == "judge_throttled"


@pytest.mark.parametrize(("cancels", "replies"), [(True, 3), (False, 0)])
def test_a_batch_that_never_ends_is_cancelled_and_gives_what_it_has(
    tmp_path: Path, cancels: bool, replies: int
) -> None:
    with batch_server(lambda sent: REPLY, looks=NEVER, cancels=cancels) as server:
        start = time.monotonic()
        with batching(server.url, tmp_path, {"max_wait_s": 0.5}) as client:
            results = ask_all(client, CALLS)
        assert 0.4 < time.monotonic() - start < 3
        assert server.requests["cancel"] == 1
        assert sorted(kinds(results)) == [""] * replies + ["judge_timeout"] * (6 - replies)
        assert "batch batch_1 did not end within 0.5 s" in str(results)
        assert not server.files
        server.looks = 0
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6, 6 - replies], "the next command asks only what has no reply"


def without_first(lines: list[bytes]) -> list[bytes]:
    return lines[1:]


def with_broken(lines: list[bytes]) -> list[bytes]:
    return [lines[0][:40] + b"\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b'{"custom_id": 7}\n', *lines[1:]]


def with_repeats(lines: list[bytes]) -> list[bytes]:
    changed = json.loads(lines[0])
    changed["response"] = {"status_code": 500, "body": {}}
    other = json.dumps(json.loads(lines[1]) | {"custom_id": "someone else's"}).encode()
    return [json.dumps(changed).encode() + b"\n", *lines, *lines, other, b"\n\n"]


def with_a_huge_line(lines: list[bytes]) -> list[bytes]:
    return [b"x" * (9 << 20) + b"\n", lines[0].rstrip() + b" " * (5 << 20) + b"\n", *lines[1:]]


def without_completions(lines: list[bytes]) -> list[bytes]:
    first = json.loads(lines[0])
    first["response"]["body"] = {"choices": []}
    return [json.dumps(first).encode() + b"\n", *lines[1:]]


@pytest.mark.parametrize(
    ("change", "failed", "said", "logged"),
    [
        (without_first, 1, "has no line about this call", ""),
        (with_broken, 1, "has no line about this call", "4 that cannot be read"),
        (with_repeats, 0, "", "1 that are about other calls, 7 that repeat"),
        (with_a_huge_line, 1, "has no line about this call", "2 that cannot be read"),
        (without_completions, 1, "the answer is not a chat completion", ""),
        (lambda lines: [], 6, "has no line about this call", ""),
    ],
)
def test_results_with_faults(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[list[bytes]], list[bytes]],
    failed: int,
    said: str,
    logged: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        batch_server(lambda sent: REPLY, change=change) as server,
        batching(server.url, tmp_path) as client,
    ):
        results = ask_all(client, CALLS)
    assert sorted(kinds(results)) == [""] * (6 - failed) + ["judge_unavailable"] * failed
    assert said in str(results)
    assert logged in caplog.text
    assert "lines of its results are ignored" in caplog.text or not logged
    assert "opens" not in caplog.text


@pytest.mark.parametrize(
    ("refusal", "expected", "said"),
    [
        (Refusal(429, "rate_limit_exceeded"), "judge_throttled", "status 429 (rate_limit_exceeded)"),
        (Refusal(500), "judge_unavailable", "status 500 (server_error)"),
        (Refusal(404, "model_not_found"), "judge_rejected", "status 404 (model_not_found)"),
        (Refusal(0, "too_weird"), "judge_rejected", "the call was refused (too_weird)"),
        (Refusal(0, "user text: Hello"), "judge_rejected", "the call was refused"),
    ],
)
def test_a_call_that_fails_within_a_batch(tmp_path: Path, refusal: Refusal, expected: str, said: str) -> None:
    def rule(sent: Sent) -> Any:
        return refusal if number_of(sent) == 3 else REPLY

    with batch_server(rule) as server, batching(server.url, tmp_path) as client:
        results = ask_all(client, CALLS)
        failure = results.pop(3)
        assert results == [SAID] * 5
        assert kind(failure) == expected
        assert said in str(failure)
        assert server.calls == [6]


ROUTES = ["upload", "create", "look", "content"]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("fault", [error(500), error(429, "rate_limit_exceeded", Retry_After="0"), cut_connection])
def test_a_request_that_fails_is_made_again(tmp_path: Path, route: str, fault: Behaviour) -> None:
    with batch_server(lambda sent: REPLY) as server:
        server.faults[route] = [fault, fault]
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]


@pytest.mark.parametrize("fault", [error(500), error(502), cut_connection, raw(b"<html>gateway</html>"), hang])
def test_a_batch_that_was_made_although_no_answer_came_is_not_made_twice(tmp_path: Path, fault: Behaviour) -> None:
    with batch_server(lambda sent: REPLY) as server:
        server.faults_after["create"] = [fault]
        with batching(server.url, tmp_path, timeout_s=0.5) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]
        assert server.requests["create"] == 1
        assert server.requests["list"] == 1


@pytest.mark.parametrize(
    ("route", "fault", "expected", "said"),
    [
        ("upload", error(500), "judge_unavailable", "the file of a batch was not accepted: status 500"),
        ("upload", error(429, "rate_limit_exceeded"), "judge_throttled", "status 429 (rate_limit_exceeded)"),
        ("upload", error(401, "invalid_api_key"), "judge_rejected", "status 401 (invalid_api_key)"),
        ("upload", error(404), "judge_rejected", "status 404"),
        ("upload", hang, "judge_timeout", "no answer within"),
        ("upload", raw(b'{"id": "../batches"}'), "judge_unavailable", "an id that cannot be one"),
        ("upload", raw(b"x" * (5 << 20)), "judge_unavailable", "too large"),
        ("create", error(500), "judge_unavailable", "a batch was not accepted: status 500"),
        ("create", error(400, "billing_hard_limit_reached"), "judge_rejected", "(billing_hard_limit_reached)"),
        ("create", error(307, Location="http://127.0.0.1:1/"), "judge_rejected", "status 307"),
        ("look", error(404), "judge_rejected", "batch batch_1: status 404"),
        ("look", error(401, "invalid_api_key"), "judge_rejected", "batch batch_1: status 401"),
        ("look", error(500), "judge_timeout", "did not end within 1 s"),
        ("look", raw(b"[]"), "judge_timeout", "did not end within 1 s"),
        ("content", error(500), "judge_unavailable", "the results of batch batch_1 cannot be read: status 500"),
        ("content", error(307, Location="http://127.0.0.1:1/"), "judge_rejected", "status 307"),
        ("content", slow_stream, "judge_timeout", "no end of the file within"),
        ("content", cut_connection, "judge_unavailable", "cannot be read: no connection"),
    ],
)
def test_an_endpoint_that_keeps_failing(
    tmp_path: Path, route: str, fault: Behaviour, expected: str, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    start = time.monotonic()
    with batch_server(lambda sent: REPLY) as server:
        always(server, route, fault)
        batch = {"max_wait_s": 1.0}
        with batching(server.url, tmp_path, batch, timeout_s=0.3, retries=1) as client:
            results = ask_all(client, CALLS)
    assert {kind(one) for one in results} == {expected}
    assert said in str(results[0])
    assert time.monotonic() - start < 8
    assert "user" not in caplog.text


@pytest.mark.parametrize(
    ("route", "looks", "expected"), [("cancel", NEVER, "judge_timeout"), ("content", 1, "judge_throttled")]
)
def test_pauses_that_the_endpoint_asks_for_at_the_end_are_bounded(
    tmp_path: Path, route: str, looks: int, expected: str
) -> None:
    start = time.monotonic()
    with batch_server(lambda sent: REPLY, looks=looks) as server:
        always(server, route, error(429, Retry_After="1"))
        with batching(server.url, tmp_path, {"max_wait_s": 1.0}) as client:
            assert kinds(ask_all(client, CALLS)) == [expected] * 6
        assert server.requests[route] == 1
    assert time.monotonic() - start < 2.5


def test_a_redirect_of_results_takes_no_key_to_another_host(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server, batch_server(lambda sent: REPLY) as other:
        server.faults["content"] = [error(307, Location=f"{other.url}/files/file-1/content")]
        with batching(server.url, tmp_path, api_key_header="api-key") as client:
            assert kind(ask(client, statements(1))) == "judge_rejected"
        assert not other.headers


def test_a_wait_that_is_longer_than_the_longest_is_not_waited_for(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path) as client:
        always(server, "upload", error(429, Retry_After="3600"))
        assert kind(ask(client)) == "judge_throttled"
        assert server.requests["upload"] == 1


def test_a_file_that_never_becomes_ready_is_deleted(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY, waits_for_files=True) as server:
        always(server, "file", error(500))
        with batching(server.url, tmp_path, retries=1) as client:
            assert kind(ask(client)) == "judge_unavailable"
        assert server.requests["upload"] == 1
        assert not server.files


def test_a_file_whose_upload_had_no_answer_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with batch_server(lambda sent: REPLY) as server:
        server.faults_after["upload"] = [cut_connection]
        with batching(server.url, tmp_path) as client:
            assert ask(client) == SAID
        assert len(server.files) == 1, "that of the first attempt"
    [named] = re.findall(r"the endpoint may hold a file (ragtide-[0-9a-f]{32}\.jsonl) that is never used", caplog.text)
    assert named


def test_files_of_a_batch_that_is_too_old_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    state = BatchState(tmp_path / "batches", 0.0)
    state.begin("http://j", BatchRecord("t", 1.0, {"c": 1}))
    state.update(BatchRecord("t", 1.0, {"c": 1}, "file-7", "batch_7"))
    state.close()
    later = BatchState(tmp_path / "batches", 31 * 86_400.0)
    assert later.records("http://j") == []
    later.close()
    assert "batch_7" in caplog.text
    assert "file-7" in caplog.text


def test_files_that_the_endpoint_does_not_delete_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with batch_server(lambda sent: REPLY) as server:
        always(server, "delete", error(405))
        with batching(server.url, tmp_path) as client:
            assert ask(client, statements(1)) == SAID
        assert f"did not delete the files {', '.join(server.files)}" in caplog.text


def test_a_batch_whose_only_call_is_refused_does_not_change_the_form_of_later_ones(tmp_path: Path) -> None:
    def rule(sent: Sent) -> Any:
        return Refusal(400, "context_length_exceeded") if number_of(sent) == 3 else REPLY

    with batch_server(rule) as server, batching(server.url, tmp_path) as client:
        assert "context_length_exceeded" in str(ask(client, statements(3)))
        assert ask_all(client, CALLS[:3]) == [SAID] * 3
        modes = [Sent(line["body"], {}, "").mode for batch in server.batches.values() for line in batch.lines]
        assert modes == ["json_schema", "json_object", "none", *["json_schema"] * 3]


def test_an_endpoint_without_batches_says_so(tmp_path: Path) -> None:
    async def only_chat(sent: Sent, request: web.Request) -> web.StreamResponse:
        return web.Response(status=404)

    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path) as client:
        always(server, "upload", only_chat)
        assert "the file of a batch was not accepted: status 404" in str(ask(client))
