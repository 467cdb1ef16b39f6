"""Replies on disk: paid for once, within a size, and never a reason to stop."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.evaluators.judge.replies import Texts
from ragtide.stream.judge.reply_cache import ReplyCache
from tests.stream.judge.asking import STATEMENTS, ask, judge
from tests.stream.judge.chat_server import chat_server, reply, say

GOOD = reply({"texts": ["It opens at nine."]})


def test_a_call_is_paid_for_once_even_by_another_process(tmp_path: Path) -> None:
    more = {"cache": {"path": str(tmp_path / "judge" / "replies.db")}}
    with chat_server(GOOD) as server:
        for _ in range(2):
            with judge(server.url, more) as client:
                assert ask(client) == ask(client) == Texts(("It opens at nine.",))
                from_cache = sum(usage.from_cache for usage in client.usage().values())
        assert len(server.sent) == 1
        assert from_cache == 2
        with judge(server.url, more, model="m-2") as client:
            ask(client)
        assert len(server.sent) == 2, "another model, another call"
    assert (tmp_path / "judge" / "replies.db").stat().st_mode & 0o077 == 0


def test_what_cannot_be_read_is_not_kept(tmp_path: Path) -> None:
    with (
        chat_server(GOOD, say("no"), say("no")) as server,
        judge(server.url, {"cache": {"path": str(tmp_path / "replies.db")}}) as client,
    ):
        ask(client)
        assert ask(client) == Texts(("It opens at nine.",))
        assert len(server.sent) == 3


def test_the_oldest_replies_go_first(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.db", 10_000)
    for number in range(200):
        cache.put(f"{number:032}".encode(), b"x" * 100)
        assert cache.get(f"{0:032}".encode()) is not None, "it is used again and again"
    kept = [number for number in range(200) if cache.get(f"{number:032}".encode())]
    assert kept[0] == 0
    assert kept[1:] == list(range(200 - len(kept) + 1, 200))
    assert 40 < len(kept) <= 10_000 // (132 + 64)
    cache.put(b"large", b"x" * 20_000)
    assert cache.get(b"large") is None
    cache.close()
    assert ReplyCache(tmp_path / "replies.db", 10_000).get(f"{199:032}".encode()) == b"x" * 100


def test_a_file_that_breaks_is_told_once_and_calls_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "replies.db"
    with chat_server(GOOD) as server, judge(server.url, {"cache": {"path": str(path)}}) as client:
        with sqlite3.connect(path) as other:
            other.execute("DROP TABLE replies")
        other.close()
        caplog.set_level(logging.WARNING)
        assert ask(client) == ask(client, STATEMENTS) == Texts(("It opens at nine.",))
        assert len(server.sent) == 2
    assert len(caplog.messages) == 1
    assert "does not work: OperationalError" in caplog.messages[0]


def test_a_file_that_cannot_be_used_is_an_error_of_settings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match=r"judge\.cache\.path: .* cannot be used"):
        ReplyCache(tmp_path / "file" / "replies.db", 1_000)
    (tmp_path / "no.db").write_text("this is no database, and long enough to be read as one: " * 50)
    with pytest.raises(ConfigError, match="cannot be used: DatabaseError"):
        ReplyCache(tmp_path / "no.db", 1_000)


def test_half_a_surrogate_pair_is_replaced_and_kept(tmp_path: Path) -> None:
    with (
        chat_server(say('{"texts": ["It opens \\ud83d at nine."]}')) as server,
        judge(server.url, {"cache": {"path": str(tmp_path / "replies.db")}}) as client,
    ):
        assert ask(client) == ask(client) == Texts(("It opens \ufffd at nine.",))
        assert len(server.sent) == 1


def test_a_lock_costs_no_reply_that_was_read(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies.db", 1_000)
    cache.put(b"key", b"reply")
    with closing(sqlite3.connect(tmp_path / "replies.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert cache.get(b"key") == b"reply"
    cache.close()
