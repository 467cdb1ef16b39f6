"""Errors by what to do about them, bound parameters, and times."""

import gc
import json
import logging
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from urllib3.connection import HTTPConnection
from urllib3.exceptions import NewConnectionError

from ragtide.evaluators.errors import ConfigError, Refused, Transient
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.errors import classify_error
from ragtide.sinks.settings import ClickHouseSettings

pytestmark = pytest.mark.clickhouse


class Word(str):
    """Can be referred to weakly."""


class Pair(NamedTuple):
    name: str
    value: float


@pytest.fixture
def pairs(database: Database) -> Database:
    database.command("CREATE TABLE pairs (value Float64, name String) ENGINE = MergeTree ORDER BY name")
    return database


def test_columns_go_by_name(pairs: Database) -> None:
    pairs.insert("pairs", [Pair("a", 1.5), Pair("b", 2.5)])
    assert pairs.rows("SELECT name, value FROM pairs ORDER BY name") == [
        {"name": "a", "value": 1.5},
        {"name": "b", "value": 2.5},
    ]


def test_rows_are_let_go_of_without_the_garbage_collector(pairs: Database) -> None:
    """Where it must come for them, dozens of blocks wait for it."""
    name = Word("a")
    kept = weakref.ref(name)
    gc.disable()
    try:
        pairs.insert("pairs", [Pair(name, 1.0)])
        del name
        assert kept() is None
    finally:
        gc.enable()


def test_no_rows_is_no_insert(database: Database) -> None:
    database.insert("nosuch", [])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    number=st.integers(-(1 << 63), (1 << 63) - 1),
    names=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=4),
    time=st.datetimes(datetime(1971, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # bounds of aware times
)
def test_what_is_bound_is_what_the_server_sees(
    database: Database, text: str, number: int, names: list[str], time: datetime
) -> None:
    time = time.replace(microsecond=time.microsecond // 1000 * 1000)
    [row] = database.rows(
        "SELECT {text:String} AS text, {number:Int64} AS number, {names:Array(String)} AS names, "
        "{time:DateTime64(3, 'UTC')} AS time",
        {"text": text, "number": number, "names": names, "time": time},
    )
    assert row == {"text": text, "number": number, "names": names, "time": time}


def test_a_setting_holds_for_a_statement_and_one_that_the_server_does_not_know_is_left_out(database: Database) -> None:
    said = "SELECT getSetting('max_block_size') AS size"
    [usual] = database.rows(said)
    [changed] = database.rows(said, settings={"max_block_size": 4321, "of_a_server_to_come": 1})
    assert (changed["size"], database.rows(said)) == (4321, [usual])
    database.command("SELECT 1", settings={"of_a_server_to_come": 1})


def test_times_are_aware_utc(database: Database) -> None:
    elsewhere = datetime(2026, 3, 1, 14, 30, tzinfo=timezone(timedelta(hours=2)))
    [row] = database.rows("SELECT {at:DateTime('UTC')} AS at, toDateTime64(0, 3, 'UTC') AS zero", {"at": elsewhere})
    assert row == {"at": datetime(2026, 3, 1, 12, 30, tzinfo=UTC), "zero": datetime(1970, 1, 1, tzinfo=UTC)}
    assert {value.tzinfo for value in row.values()} == {UTC}
    with pytest.raises(ValueError, match="time zone"):
        database.rows("SELECT {at:DateTime}", {"at": datetime(2026, 3, 1)})  # noqa: DTZ001  # refused


def test_a_long_parameter_is_no_url(database: Database) -> None:
    text = "x" * 300_000
    assert database.rows("SELECT length({text:String}) AS n", {"text": text}) == [{"n": 300_000}]


def test_a_value_that_does_not_fit_is_refused_without_a_word_of_it(
    pairs: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(Refused, match="pairs: a value does not fit") as refused:
        pairs.insert("pairs", [Pair("a", 1.0), Pair("b", "secret")])  # type: ignore[arg-type]  # no number
    assert "secret" not in f"{refused.value!r} {refused.value.__cause__!r} {caplog.text}"
    assert refused.value.__suppress_context__
    pairs.insert("pairs", [Pair("c", 1.0)])
    assert {row["name"] for row in pairs.rows("SELECT name FROM pairs")} <= {"a", "c"}


def test_a_violated_constraint_is_refused_without_a_word_of_it(database: Database) -> None:
    database.command("CREATE TABLE short (name String, CONSTRAINT s CHECK length(name) < 5) ENGINE = Memory")

    class Short(NamedTuple):
        name: str

    with pytest.raises(Refused, match="VIOLATED_CONSTRAINT") as refused:
        database.insert("short", [Short("secret word")])
    assert "secret" not in str(refused.value)


def test_a_missing_table_says_migrate(database: Database) -> None:
    with pytest.raises(ConfigError, match=r"table is missing.*ragtide migrate"):
        database.insert("nosuch", [Pair("a", 1.0)])
    with pytest.raises(ConfigError, match=r"nosuch"):
        database.rows("SELECT 1 FROM nosuch")


def test_a_missing_database_says_migrate(clickhouse_server: EmbeddedClickHouse) -> None:
    database = Database(clickhouse_server.settings.model_copy(update={"database": "nosuch"}))
    with pytest.raises(ConfigError, match=r"database does not exist.*ragtide migrate"):
        database.rows("SELECT 1")
    with pytest.raises(ConfigError, match="database does not exist"):
        database.insert("traces", [Pair("a", 1.0)])
    database.close()


def test_a_wrong_password_says_which_setting(clickhouse_server: EmbeddedClickHouse) -> None:
    database = Database(clickhouse_server.settings.model_copy(update={"password": SecretStr("sesame")}))
    with pytest.raises(ConfigError, match=r"clickhouse\.password") as error:
        database.rows("SELECT 1")
    assert "sesame" not in str(error.value)
    database.close()


@pytest.mark.parametrize("url", ["", "127.0.0.1:8123", "ftp://host", "http://"])
def test_a_url_that_is_none_says_which_setting(url: str) -> None:
    database = Database(ClickHouseSettings(url=url))
    with pytest.raises(ConfigError, match=r"clickhouse\.url"):
        database.rows("SELECT 1")


def test_a_table_made_anew_with_other_types(pairs: Database) -> None:
    pairs.insert("pairs", [Pair("a", 1.0)])
    pairs.command("DROP TABLE pairs")
    with pytest.raises(ConfigError, match="migrate"):
        pairs.insert("pairs", [Pair("a", 1.0)])
    pairs.command("CREATE TABLE pairs (name LowCardinality(String), value Float32) ENGINE = Memory")
    pairs.insert("pairs", [Pair("a", 0.5)])
    assert pairs.rows("SELECT * FROM pairs") == [{"name": "a", "value": 0.5}]


def test_a_bug_of_ours_is_raised_as_it_is(database: Database) -> None:
    with pytest.raises(Exception, match="SYNTAX_ERROR") as error:
        database.rows("SELEC 1")
    assert not isinstance(error.value, Transient | Refused | ConfigError)


def test_slow_is_transient(clickhouse_server: EmbeddedClickHouse) -> None:
    database = Database(clickhouse_server.settings.model_copy(update={"database": "default", "timeout_s": 1.0}))
    with pytest.raises(Transient):
        database.rows("SELECT sleepEachRow(0.3) FROM numbers(10)")
    assert database.rows("SELECT 1 AS one") == [{"one": 1}]
    database.close()


@pytest.mark.parametrize("query_id", ["", "a'b", "a b", "a\\"])
def test_what_is_no_query_id_kills_nothing(database: Database, query_id: str) -> None:
    with pytest.raises(ValueError, match="query id"):
        database.kill([query_id])


def test_too_many_partitions_are_refused_so_that_they_are_split(database: Database) -> None:
    database.command("CREATE TABLE days (name String) ENGINE = MergeTree ORDER BY name PARTITION BY name")

    class Day(NamedTuple):
        name: str

    with pytest.raises(Refused, match="partitions"):
        database.insert("days", [Day(str(number)) for number in range(101)])
    assert database.rows("SELECT count() AS n FROM days") == [{"n": 0}]


def test_away_is_transient_and_back_is_well(tmp_path: Path) -> None:
    server = EmbeddedClickHouse(tmp_path)
    server.start()
    database, never = Database(server.settings), Database(server.settings)
    database.create()
    database.command("CREATE TABLE pairs (name String, value Float64) ENGINE = MergeTree ORDER BY name")
    database.insert("pairs", [Pair("a", 1.0)])
    server.kill()
    for call in (
        lambda: database.rows("SELECT 1"),
        lambda: database.command("SELECT 1"),
        lambda: database.insert("pairs", [Pair("b", 1.0)]),
        lambda: never.rows("SELECT 1"),
    ):
        with pytest.raises(Transient, match="is it running"):
            call()
    server.start()
    database.insert("pairs", [Pair("b", 1.0)])
    assert database.rows("SELECT count() AS n FROM pairs") == [{"n": 2}]
    assert never.rows("SELECT count() AS n FROM pairs") == [{"n": 2}]
    for opened in (database, never):
        opened.close()
    server.stop()


@pytest.fixture
def other_service() -> Iterator[str]:
    """Something that speaks HTTP and is not ClickHouse."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"

        def serve() -> None:
            for _ in range(3):
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.recv(65_536)
                    peer.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def test_another_service_is_a_wrong_url(other_service: str) -> None:
    database = Database(ClickHouseSettings(url=other_service))
    with pytest.raises(ConfigError, match=r"not ClickHouse.*clickhouse\.url"):
        database.rows("SELECT 1")
    database.close()


def test_the_driver_tries_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who writes tries again, with pauses; a second layer would multiply that."""
    opened = Database(database.settings)
    assert opened.version()
    tried: list[str] = []

    def refused(connection: HTTPConnection) -> None:
        tried.append(connection.host)
        raise NewConnectionError(connection, "refused")

    monkeypatch.setattr(HTTPConnection, "connect", refused)
    assert opened._client is not None
    opened._client.http.clear()
    with pytest.raises(Transient):
        opened.command("SYSTEM FLUSH LOGS")
    assert len(tried) == 1
    opened.close()


def test_rows_are_stored_before_an_insert_is_acknowledged(pairs: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of today gathers inserts unless told not to; what the embedded one was told is in no log of its own."""
    asked: list[str] = []
    request = HTTPConnection.request

    def sent(connection: HTTPConnection, method: str, url: str, *args: Any, **options: Any) -> None:
        asked.append(url)
        request(connection, method, url, *args, **options)

    monkeypatch.setattr(HTTPConnection, "request", sent)
    for name in ("a", "b"):
        pairs.insert("pairs", [Pair(name, 1.0)])
    assert [told for url in asked for told in parse_qs(urlsplit(url).query).get("async_insert", ())] == ["0", "0"]


_INSERT = """
import json, sys
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from tests.sinks.clickhouse.test_database import Pair
at_start = set(sys.modules)
Database(ClickHouseSettings(**json.load(sys.stdin))).insert("pairs", [Pair("a", 1.0)])
print({"pandas", "pyarrow", "polars"} & (set(sys.modules) - at_start) or "none")
"""


def test_an_insert_loads_no_library_of_frames(pairs: Database) -> None:
    """chdb brings pandas, so that it is there to be loaded."""
    assert find_spec("pandas")
    told = {**pairs.settings.model_dump(mode="json"), "password": pairs.settings.password.get_secret_value()}
    done = subprocess.run(
        [sys.executable, "-c", _INSERT], input=json.dumps(told), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "none\n"
    assert pairs.rows("SELECT count() AS n FROM pairs") == [{"n": 1}]


def test_threads_share_one_database(pairs: Database) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for step in range(10):
                pairs.insert("pairs", [Pair(f"{number}.{step}", float(number))])
                assert pairs.rows("SELECT {n:UInt8} AS n", {"n": number}) == [{"n": number}]
        except BaseException as error:  # noqa: BLE001  # a thread's failed assertion is told by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert pairs.rows("SELECT count() AS n FROM pairs") == [{"n": 60}]


def test_closed_is_an_error(clickhouse_server: EmbeddedClickHouse) -> None:
    database = Database(clickhouse_server.settings)
    database.close()
    database.close()
    with pytest.raises(RuntimeError, match="closed"):
        database.rows("SELECT 1")


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (252, "Too many parts (3000)", Transient),
        (252, "Too many partitions for single INSERT block", Refused),
        (241, "(total) memory limit exceeded", Transient),
        (243, "Cannot reserve 1 MiB, not enough space", Transient),
        (242, "Table is in readonly mode", Transient),
        (107, "File data.bin does not exist", Transient),
        (1001, "filesystem error: in create_directory: No space left on device", Transient),
        (1001, "std::out_of_range: vector", type(None)),
        (497, "Not enough privileges", ConfigError),
        (33, "Cannot read all data", Refused),
        (None, "HTTP driver received HTTP status 502, server response: Bad gateway", Transient),
        (None, "HTTP driver received HTTP status 413, server response: Too large", Refused),
        (49, "Logical error", type(None)),
    ],
)
def test_kinds(code: int | None, message: str, kind: type) -> None:
    from clickhouse_connect.driver.exceptions import DatabaseError

    assert isinstance(classify_error(DatabaseError(message, code=code), "http://host:8123"), kind)


@pytest.mark.parametrize("length", [10, 5_000, 300_000])
def test_statements_and_parameters_of_any_length_are_taken(database: Database, length: int) -> None:
    """Beyond what a server takes of a statement, in a field of a form or in a URL."""
    odd = "it's\\ \0\n`{values:Array(String)}{" + "x" * length
    pairs = [(odd, "é")]
    (row,) = database.rows(
        "SELECT {one:String} AS one, {values:Array(String)} AS values, "
        "{pairs:Array(Tuple(String, String))} AS pairs, {number:UInt8} AS number",
        {"one": odd, "values": [odd, "b"], "pairs": pairs, "number": 3},
    )
    assert row == {"one": odd, "values": [odd, "b"], "pairs": pairs, "number": 3}
    literal = "x" * length
    assert database.rows(f"SELECT length('{literal}') AS n") == [{"n": length}]
