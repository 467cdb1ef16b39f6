"""Calls by batches: gathered, sent once, handed out, repaired, and found again after a stop."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.calls import OVER_BUDGET, Answer, Asker, JudgeCall, Section, TraceCalls
from ragtide.evaluators.judge.replies import Texts
from ragtide.evaluators.judge.settings import JudgeEndpoint, JudgeSettings
from ragtide.stream.judge import JudgeClient, UsageKey
from ragtide.stream.judge.limits import MemoryLedger
from tests.stream.judge.asking import FAST, ask, ask_all, judge, kind, verdicts
from tests.stream.judge.batch_server import NEVER, Refusal, batch_server
from tests.stream.judge.batches import CALLS, REPLY, SAID, batching, number_of, statements
from tests.stream.judge.chat_server import KEY, Sent, error

PRICES: dict[str, Any] = {"input_usd_per_million": 10.0, "cached_usd_per_million": 4.0, "output_usd_per_million": 40.0}


def usage_of(client: JudgeClient) -> Any:
    return client.usage()[UsageKey("local", "e", "shop")]


def test_calls_go_in_one_batch_at_half_the_price_and_its_files_are_deleted(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server:
        with batching(server.url, tmp_path, **PRICES) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
            used = usage_of(client)
        assert server.calls == [6]
        assert (used.calls, used.input_tokens, used.output_tokens) == (6, 6000, 300)
        assert used.cost_usd == pytest.approx((6000 * 10 + 300 * 40) / 1e6 / 2)
        assert not server.files, "the input and the output"
        assert not server.chats
        [batch] = server.batches.values()
        assert (batch.body["endpoint"], batch.body["completion_window"]) == ("/v1/chat/completions", "24h")
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}


def test_a_line_is_the_request_that_a_direct_call_sends(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server:
        with judge(server.url) as client:
            direct = ask_all(client, CALLS)
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == direct
        [batch] = server.batches.values()
        lines = sorted((line["body"] for line in batch.lines), key=str)
        assert lines == sorted((sent.body for sent in server.chats), key=str)


def test_prices_of_batches_may_be_given() -> None:
    made = JudgeEndpoint.model_validate(
        {"url": "http://j", "model": "m", **PRICES, "batch": {"output_usd_per_million": 1.0}}
    ).at_batch_prices()
    assert (made.input_usd_per_million, made.cached_usd_per_million, made.output_usd_per_million) == (5.0, 2.0, 1.0)


@pytest.mark.parametrize(("limit", "calls"), [({"max_requests": 2}, [2, 2, 2]), ({"max_bytes": 4200}, None)])
def test_files_are_bounded(tmp_path: Path, limit: dict[str, int], calls: list[int] | None) -> None:
    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path, limit) as client:
        assert ask_all(client, CALLS) == [SAID] * 6
        assert calls is None or server.calls == calls
        sizes = [sum(len(str(line["body"])) for line in batch.lines) for batch in server.batches.values()]
        assert len(sizes) > 1
        assert max(sizes) < 4200


def test_a_call_that_is_larger_than_a_file_may_be_is_rejected(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path, {"max_bytes": 1024}) as client:
        result = ask(client)
        assert kind(result) == "judge_rejected"
        assert "larger than batch.max_bytes" in str(result)
        assert not server.requests


def test_a_reply_that_cannot_be_read_is_asked_again_in_the_next_batch(tmp_path: Path) -> None:
    def rule(sent: Sent) -> Any:
        return REPLY if number_of(sent) or len(sent.body["messages"]) > 2 else "I would say nine."

    with batch_server(rule) as server, batching(server.url, tmp_path) as client:
        assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6, 1]
        assert usage_of(client).repairs == 1


def test_replies_come_from_the_cache_and_equal_calls_go_once(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server:
        for _ in range(2):
            with batching(server.url, tmp_path) as client:
                assert ask_all(client, [*CALLS, CALLS[0]]) == [SAID] * 7
        assert server.calls == [6]
        assert server.requests["upload"] == 1


@pytest.mark.parametrize("most", [6, 2])
@pytest.mark.parametrize(("known", "rounds"), [("json_schema", 1), ("json_object", 2), ("none", 3)])
def test_structured_output_is_found_out_by_refused_calls(tmp_path: Path, known: str, rounds: int, most: int) -> None:
    def rule(sent: Sent) -> Any:
        return Refusal(400, "context_length_exceeded") if number_of(sent) == 3 else REPLY

    limit = {"max_requests": most}
    with batch_server(rule, structured=(known,)) as server, batching(server.url, tmp_path, limit) as client:
        results = ask_all(client, CALLS)
        assert kind(results.pop(3)) == "judge_rejected"
        assert results == [SAID] * 5
        assert sum(server.calls) == 6 * rounds


def test_no_reply_of_an_endpoint_that_refuses_every_form(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY, structured=()) as server, batching(server.url, tmp_path) as client:
        assert {kind(one) for one in ask_all(client, CALLS)} == {"judge_rejected"}
        assert server.calls == [6] * 3


def test_large_files_are_sent(tmp_path: Path) -> None:
    calls = [JudgeCall("statements", (Section("text", f"{number}" * (3 << 20)),), Texts) for number in range(3)]
    with batch_server(lambda sent: REPLY) as server, batching(server.url, tmp_path) as client:
        assert ask_all(client, calls) == [SAID] * 3
        assert server.calls == [3]


def test_a_file_is_waited_for(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY, waits_for_files=True) as server, batching(server.url, tmp_path) as client:
        assert ask(client, statements(1)) == SAID
        assert server.requests["file"] == 2


def test_a_query_of_the_url_is_kept(tmp_path: Path) -> None:
    with batch_server(lambda sent: REPLY) as server, batching(f"{server.url}?api-version=1", tmp_path) as client:
        server.faults_after["create"] = [error(500)]
        assert ask(client, statements(1)) == SAID
        client.finish()
        client.close()
        assert all("api-version=1" in path.partition("?")[2].split("&") for path in server.paths), server.paths
        assert server.requests.keys() >= {"upload", "create", "list", "look", "content", "delete"}


@pytest.mark.parametrize("most", [50_000, 2, 1])
def test_no_batch_is_paid_for_beyond_the_budget(tmp_path: Path, most: int) -> None:
    """The most that calls can cost is reserved; they cost less, so that what waits is sent afterwards."""
    prices = {"input_usd_per_million": 0.0, "output_usd_per_million": 1000.0, "max_tokens": 2000}  # 1 USD at most
    settings = {"limit": {"usd_per_day": 2.2}, "cache": {"path": str(tmp_path / "replies.db")}}
    with batch_server(lambda sent: REPLY) as server:
        own = {"batch": {"poll_s": 0.02, "max_requests": most}, **prices}
        with judge(server.url, settings, by_batch=True, **own) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
            assert server.calls == ([2] * 3 if most > 1 else [1] * 6), "2 reserved of 2.2; each then costs 0.025"
            assert usage_of(client).cost_usd == pytest.approx(6 * 0.025)
        with judge(server.url, settings | {"limit": {"usd_per_day": 0.9}}, by_batch=True, **own) as client:
            assert ask_all(client, [statements(at) for at in range(10, 13)]) == [OVER_BUDGET] * 3
        assert sum(server.calls) == 6


class SlowLedger(MemoryLedger):
    """Its third lease takes until the test goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.leases, self.goes_on = 0, threading.Event()

    def lease(self, *given: Any) -> float:
        self.leases += 1
        assert self.leases < 3 or self.goes_on.wait(10)
        return super().lease(*given)


def test_money_that_a_batch_gives_back_during_a_lease_is_spent(tmp_path: Path) -> None:
    own = {"url": "", "model": "m", **FAST, "batch": {"poll_s": 0.02}, "input_usd_per_million": 0.0}
    own |= {"output_usd_per_million": 1000.0, "max_tokens": 2000}  # 1 USD at most, and 0.025 in the end
    done: dict[int, Answer] = {}
    ledger = SlowLedger()
    with batch_server(lambda sent: REPLY, looks=NEVER) as server:
        endpoints = {"local": own | {"url": server.url}}
        own_limits = {"limit": {"usd_per_day": 1.2}, "limit_by_app": {"poor": {"usd_per_day": 0.5}}}
        limits = {**own_limits, "cache": {"path": tmp_path / "replies.db"}}
        settings = JudgeSettings.model_validate({"endpoints": endpoints, **limits})
        with closing(JudgeClient(settings, ledger=ledger, by_batch=True)) as client:
            client.submit(statements(0), Asker("e", TraceCalls("shop")), partial(done.__setitem__, 0))
            client.flush(1)
            wait_for(lambda: len(server.calls) == 1)
            for at, app in ((1, "shop"), (2, "poor")):
                client.submit(statements(at), Asker("e", TraceCalls(app)), partial(done.__setitem__, at))
            client.flush(3)
            wait_for(lambda: ledger.leases == 3)
            server.batches["batch_1"].looks = server.looks = 0
            wait_for(lambda: 0 in done)
            client.flush(2)
            ledger.goes_on.set()

            def is_done() -> bool:
                client.flush(3 - len(done))  # as the driver does
                return len(done) == 3

            wait_for(is_done)
    assert done == {0: SAID, 1: SAID, 2: OVER_BUDGET}


def test_lost_replies_are_charged_at_the_most(tmp_path: Path) -> None:
    prices = {"input_usd_per_million": 0.0, "output_usd_per_million": 1000.0, "max_tokens": 2000}
    settings = {"limit": {"usd_per_day": 2.2}, "cache": {"path": str(tmp_path / "replies.db")}}
    own: dict[str, Any] = {"batch": {"poll_s": 0.02}, **prices}
    with (
        batch_server(lambda sent: REPLY, change=lambda lines: []) as server,
        judge(server.url, settings, by_batch=True, **own) as client,
    ):
        results = ask_all(client, CALLS)
        assert [one == OVER_BUDGET for one in results].count(True) == 4
        assert server.calls == [2]


def test_limits_are_of_one_application(tmp_path: Path) -> None:
    settings = {"limit_by_app": {"spent": {"usd_per_day": 0.001}}, "cache": {"path": str(tmp_path / "replies.db")}}
    with (
        batch_server(lambda sent: REPLY) as server,
        judge(server.url, settings, by_batch=True, batch={"poll_s": 0.02}, **PRICES) as client,
    ):
        assert ask(client, statements(1), Asker("e", TraceCalls("spent"))) == OVER_BUDGET
        assert ask(client, statements(1), Asker("e", TraceCalls("shop"))) == SAID


def stop_while_in_flight(url: str, folder: Path) -> None:
    """Begin a batch and close the client, as Ctrl-C does."""
    with batching(url, folder) as client:
        waiting = [statements(number) for number in range(6)]
        done: list[object] = []
        for call in waiting:
            client.submit(call, Asker("e", TraceCalls("shop")), done.append)
        client.flush(len(waiting))
        wait_for(lambda: bool(notes(folder)) and notes(folder)[0][4] is not None)
    assert [kind(one) for one in done] == ["judge_unavailable"] * 6


def wait_for(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def notes(folder: Path) -> list[tuple[Any, ...]]:
    """The batches of the state, read beside its owner's lock."""
    path = folder / "replies.db.batches"
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
        try:
            return database.execute("SELECT * FROM batches").fetchall()
        except sqlite3.Error:
            return []


def test_a_batch_in_flight_is_found_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with batch_server(lambda sent: REPLY, looks=NEVER) as server:
        stop_while_in_flight(server.url, tmp_path)
        assert "1 batch with 6 calls; the same command finds them again" in caplog.text
        [file] = server.files
        assert f"its files stay at the endpoint until then: {file}" in caplog.text
        state = (tmp_path / "replies.db.batches").read_bytes()
        assert b"batch_" in state
        assert not [word for word in (b"opens", KEY.encode(), server.url.encode()) if word in state]
        assert (tmp_path / "replies.db.batches").stat().st_mode & 0o077 == 0
        server.looks = 1
        for batch in server.batches.values():
            batch.looks = 1
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, [*CALLS, statements(99)]) == [SAID] * 7
        assert server.calls == [6, 1], "only what the first had not asked"
        assert not server.files
        assert notes(tmp_path) == []
    assert KEY not in caplog.text
    assert "opens" not in caplog.text


def test_a_repair_is_not_asked_twice_after_a_stop(tmp_path: Path) -> None:
    """The reply that could not be read is in no cache: the batch that has it is read again."""

    def rule(sent: Sent) -> Any:
        return REPLY if len(sent.body["messages"]) > 2 else "I would say nine."

    with batch_server(rule) as server:
        with batching(server.url, tmp_path) as client:
            for call in CALLS:
                client.submit(call, Asker("e", TraceCalls("shop")), lambda answer: None)
            client.flush(len(CALLS))
            wait_for(lambda: len(server.calls) == 1)
            server.looks = NEVER
            wait_for(lambda: len(notes(tmp_path)) == 2 and notes(tmp_path)[1][4] is not None)
        server.looks = 0
        for batch in server.batches.values():
            batch.looks = 0
        with batching(server.url, tmp_path) as client:
            assert ask_all(client, CALLS) == [SAID] * 6
        assert server.calls == [6, 6]
        assert not server.files


def test_replies_that_were_read_are_read_again_if_their_scores_were_not_stored(tmp_path: Path) -> None:
    """The cache has no reply that cannot be read: only the batches at the endpoint do."""
    with batch_server(lambda sent: "I would say nine.") as server:
        for _ in range(2):
            with suppress(KeyboardInterrupt), batching(server.url, tmp_path) as client:
                assert {kind(one) for one in ask_all(client, CALLS)} == {"judge_reply"}
                raise KeyboardInterrupt
            assert server.calls == [6, 6], "the calls and their repairs"
            assert server.files
        with batching(server.url, tmp_path) as client:
            assert {kind(one) for one in ask_all(client, CALLS)} == {"judge_reply"}
        assert server.calls == [6, 6]
        assert not server.files
        assert notes(tmp_path) == []


def test_one_command_at_a_time_uses_the_state(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"
    used = pytest.raises(ConfigError, match="another command with --batch uses it")
    with batching(url, tmp_path), used, batching(url, tmp_path):
        pass
    with batching(url, tmp_path):
        pass


def test_batches_need_a_cache() -> None:
    settings = JudgeSettings.model_validate({"endpoints": {"local": {"url": "http://j", "model": "m"}}})
    with pytest.raises(ConfigError, match=r"--batch needs evaluators\.judge\.cache\.path"):
        JudgeClient(settings, by_batch=True)


def test_a_state_that_cannot_be_used_is_an_error_of_settings(tmp_path: Path) -> None:
    (tmp_path / "replies.db.batches").write_text("this is no database, and long enough to be read as one: " * 50)
    unusable = pytest.raises(ConfigError, match="where --batch notes its batches, cannot be used: DatabaseError")
    with unusable, batching("http://j", tmp_path):
        pass


def test_different_calls_of_one_round_share_a_batch(tmp_path: Path) -> None:
    def rule(sent: Sent) -> Any:
        return {"verdicts": [{"number": 1, "verdict": True}]} if "claims" in sent.user else REPLY

    with batch_server(rule) as server, batching(server.url, tmp_path) as client:
        ask_all(client, [*CALLS, verdicts(1)])
        assert server.calls == [7]
