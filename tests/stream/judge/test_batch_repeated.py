"""What the next command does about batches, results and lists that could not be read: it pays for no call twice."""

import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.stream.judge.asking import ask_all
from tests.stream.judge.batch_server import Refusal, batch_server
from tests.stream.judge.batches import CALLS, REPLY, SAID, always, batching, kinds, number_of
from tests.stream.judge.chat_server import Behaviour, Sent, cut_connection, error, raw


def test_results_that_could_not_be_read_are_read_by_the_next_command(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server:
        always(server, "content", error(500))
        with batching(server.url, tmp_path, retries=1) as client:
            assert kinds(ask_all(client, CALLS)) == ["judge_unavailable"] * 6
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]
        assert not server.files


@pytest.mark.parametrize("fault", [error(500), error(401, "invalid_api_key"), error(403), cut_connection, raw(b"[]")])
def test_a_batch_that_cannot_be_looked_at_is_not_paid_for_again(tmp_path: Path, fault: Behaviour) -> None:
    """Neither while it may still end, nor once the longest wait is over and it cannot be cancelled."""
    with batch_server(lambda sent: REPLY) as server:
        always(server, "look", fault)
        always(server, "cancel", fault)
        for _ in range(2):
            with batching(server.url, tmp_path, {"max_wait_s": 0.5}, retries=1) as client:
                assert set(kinds(ask_all(client, CALLS))) <= {"judge_timeout", "judge_rejected"}
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]
        assert not server.files


def test_a_batch_that_is_not_found_once_is_looked_at_again(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path) as client:
        server.faults["look"] = [error(404)] * 2
        assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]


def test_a_batch_that_is_not_found_is_paid_for_again_only_after_the_longest_wait(tmp_path: Path) -> None:
    """So may it be with the key of another project."""
    with batch_server(lambda sent: REPLY) as server:
        always(server, "look", error(404))
        for _ in range(2):
            with batching(server.url, tmp_path, {"max_wait_s": 3.0}) as client:
                assert kinds(ask_all(client, CALLS)) == ["judge_rejected"] * 6
        with batching(server.url, tmp_path, {"max_wait_s": 0.5}) as client:
            assert kinds(ask_all(client, CALLS)) == ["judge_rejected"] * 6
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6, 6]


@pytest.mark.parametrize("fault", [error(500), cut_connection, error(403)])
def test_replies_of_a_file_that_can_be_read_count_if_the_other_cannot(tmp_path: Path, fault: Behaviour) -> None:
    def rule(sent: Sent) -> Any:
        return Refusal(403, "content_policy") if number_of(sent) == 3 else REPLY

    async def output_only(sent: Sent, request: web.Request) -> web.StreamResponse:
        [batch] = server.batches.values()
        if batch.errors is not None and batch.errors in sent.path:
            return await fault(sent, request)
        return web.Response(body=server.files[request.match_info["id"]])

    with batch_server(rule) as server:
        always(server, "content", output_only)
        with batching(server.url, tmp_path, retries=1) as client:
            results = ask_all(client, CALLS)
        assert "cannot be read" in str(results.pop(3))
        assert results == [SAID] * 5
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert "content_policy" in str(ask_all(client, CALLS)[3])
        assert server.calls == [6]
        assert not server.files


@pytest.mark.parametrize("status", [404, 410])
def test_results_that_are_gone_are_asked_for_again_by_the_next_command(
    tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    with batch_server(lambda sent: REPLY) as server:
        always(server, "content", error(status))
        with batching(server.url, tmp_path, retries=1) as client:
            assert kinds(ask_all(client, CALLS)) == ["judge_unavailable"] * 6
        assert f"is gone: status {status}" in caplog.text
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6, 6]


def test_results_that_are_not_found_at_first_are_read(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path) as client:
        server.faults["content"] = [error(404)]
        assert ask_all(client, CALLS) == [SAID] * 6


def test_whether_a_batch_exists_is_found_out_by_the_next_command(tmp_path: Path) -> None:
    """The batch was made, no answer came, and the list of batches failed."""
    with batch_server(lambda sent: REPLY) as server:
        server.faults_after["create"] = [error(500)]
        always(server, "list", error(404))
        with batching(server.url, tmp_path) as client:
            assert kinds(ask_all(client, CALLS)) == ["judge_rejected"] * 6
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]


@pytest.mark.parametrize(("page", "others", "expected"), [(5, 20, ""), (100, 20, ""), (1, 120, "judge_unavailable")])
def test_the_list_of_batches_is_read_page_by_page_and_one_that_is_too_long_tells_nothing(
    tmp_path: Path, page: int, others: int, expected: str
) -> None:
    with batch_server(lambda sent: REPLY, page=page) as server:
        server.faults_after["create"] = [error(500)]
        always(server, "list", error(404))
        with batching(server.url, tmp_path) as client:
            assert kinds(ask_all(client, CALLS)) == ["judge_rejected"] * 6
        server.faults.clear()
        server.add_batches(others)
        with batching(server.url, tmp_path) as client:
            results = ask_all(client, CALLS)
        assert kinds(results) == [expected] * 6
        assert "the list of batches is too long" in str(results) or not expected
        assert server.calls == [6]


def test_an_endpoint_that_never_tells_whether_a_batch_exists_is_asked_anew_after_the_longest_wait(
    tmp_path: Path,
) -> None:
    with batch_server(lambda sent: REPLY) as server:
        server.faults_after["create"] = [error(500)]
        always(server, "list", error(404))
        for after_s, expected in ((0.0, "judge_rejected"), (0.0, "judge_rejected"), (1.0, "")):
            time.sleep(after_s)
            with batching(server.url, tmp_path, {"max_wait_s": 1.0}) as client:
                assert kinds(ask_all(client, CALLS)) == [expected] * 6
        assert server.calls == [6, 6]


@pytest.mark.parametrize("fault", [error(500), error(401, "invalid_api_key"), cut_connection])
def test_a_list_that_cannot_be_read_tells_nothing_after_the_longest_wait_either(
    tmp_path: Path, fault: Behaviour
) -> None:
    with batch_server(lambda sent: REPLY) as server:
        server.faults_after["create"] = [error(500)]
        always(server, "list", fault)
        for _ in range(2):
            with batching(server.url, tmp_path, {"max_wait_s": 0.2}, retries=1) as client:
                assert "" not in kinds(ask_all(client, CALLS))
            time.sleep(0.2)
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]


def test_a_batch_that_was_never_made_is_made_by_the_next_command(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server:
        always(server, "create", error(500))
        always(server, "list", error(500))
        with batching(server.url, tmp_path, retries=1) as client:
            assert kinds(ask_all(client, CALLS)) == ["judge_unavailable"] * 6
        server.faults.clear()
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6]
        assert not server.files, "the file of the first command too"
