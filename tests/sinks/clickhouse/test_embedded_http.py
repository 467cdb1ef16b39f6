"""The embedded server: who may ask, and what it passes through."""

import base64
import gzip
import http.client
import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import lz4.frame
import pytest

from ragtide.evaluators.errors import BadRecord
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.embedded.bodies import unpack

pytestmark = pytest.mark.clickhouse


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    code: str


@pytest.fixture
def ask(clickhouse_server: EmbeddedClickHouse) -> Callable[..., Answer]:
    """Sends a request as some program would; the key goes along unless `key` is another."""

    def send(
        sql: bytes = b"",
        /,
        *,
        path: str = "/",
        headers: dict[str, str] | None = None,
        key: str | None = None,
        method: str = "POST",
        **query: str,
    ) -> Answer:
        secret = clickhouse_server.settings.password.get_secret_value() if key is None else key
        request = urllib.request.Request(
            f"{clickhouse_server.settings.url}{path}?{urllib.parse.urlencode(query)}",
            data=sql or None,
            headers={"X-ClickHouse-Key": secret, **(headers or {})},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Answer(response.status, response.read(), "")
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.read(), error.headers.get("X-ClickHouse-Exception-Code", ""))

    return send


Ask = Callable[..., Answer]


def test_answers_who_has_the_key(ask: Ask) -> None:
    assert ask(b"SELECT 1 + 1") == Answer(200, b"2\n", "")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:8000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Mode": "no-cors"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost:1"},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/", "/ping"])
@pytest.mark.parametrize("method", ["POST", "GET", "OPTIONS"])
def test_a_web_page_is_refused_even_with_the_key(ask: Ask, headers: dict[str, str], path: str, method: str) -> None:
    """Also where its browser asks first whether it may."""
    sent = ask(method=method, headers=headers, path=path, query="SELECT 1")
    assert sent.status == 403
    assert b"1\n" not in sent.body


def test_a_web_page_changes_nothing(ask: Ask, database: Database) -> None:
    drop = f"DROP TABLE {database.name}.scores".encode()
    assert ask(drop, headers={"Origin": "http://evil.example"}).status == 403
    assert ask(drop, key="").status == 403
    assert database.rows("SELECT count() AS n FROM scores") == [{"n": 0}]


@pytest.mark.parametrize("key", ["", "wrong", "ключ"])
def test_without_the_key_nothing_is_answered(clickhouse_server: EmbeddedClickHouse, ask: Ask, key: str) -> None:
    if key.isascii():
        assert ask(b"SELECT 1", key=key).code == "516"
    address = clickhouse_server.settings.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=10)
    query = urllib.parse.urlencode({"query": "SELECT 1", "user": "default", "password": key})
    connection.request("GET", f"/?{query}")
    response = connection.getresponse()
    assert (response.status, response.headers["X-ClickHouse-Exception-Code"]) == (403, "516")
    connection.close()


def test_the_key_may_come_as_clients_send_it(clickhouse_server: EmbeddedClickHouse, ask: Ask) -> None:
    secret = clickhouse_server.settings.password.get_secret_value()
    assert ask(b"SELECT 1", key="", password=secret, user="default").body == b"1\n"
    connection = http.client.HTTPConnection(clickhouse_server.settings.url.removeprefix("http://"), timeout=10)
    for credentials, status in ((f"default:{secret}", 200), ("default:no", 403)):
        basic = base64.b64encode(credentials.encode()).decode()
        connection.request("POST", "/", body="SELECT 1", headers={"Authorization": f"Basic {basic}"})
        response = connection.getresponse()
        response.read()
        assert response.status == status
    connection.close()


def test_ping_and_unknown_paths(ask: Ask) -> None:
    assert ask(path="/ping", key="", method="GET") == Answer(200, b"Ok.\n", "")
    assert ask(b"SELECT 1", path="/nosuch").status == 404


@pytest.mark.parametrize(
    ("sql", "code", "status"),
    [
        (b"SELEC 1", "62", 400),
        (b"SELECT nosuch FROM system.one", "47", 500),
        (b"SELECT 1 FROM system.nosuch", "60", 404),
        (b"INSERT INTO system.nosuch FORMAT TSV\n1\n", "60", 404),
        (b"SELECT throwIf(1)", "395", 500),
    ],
)
def test_error_codes_pass_through(ask: Ask, sql: bytes, code: str, status: int) -> None:
    answer = ask(sql)
    assert (answer.code, answer.status) == (code, status)
    assert answer.body.startswith(f"Code: {code}. DB::Exception:".encode())


def test_unknown_database_and_setting(ask: Ask) -> None:
    assert ask(b"SELECT 1", database="nosuch").code == "81"
    assert ask(b"SELECT 1", nosuch_setting="1").code == "115"
    assert ask(b"SELECT 1", **{"max_threads = 1, readonly": "1"}).code == "115"


def test_settings_pass_through_and_end_with_the_request(ask: Ask) -> None:
    assert ask(b"SELECT sleepEachRow(0.2) FROM numbers(10) FORMAT Null", max_execution_time="1").code == "159"
    assert ask(b"SELECT getSetting('max_execution_time')", max_execution_time="7").body == b"7\n"
    assert ask(b"SELECT getSetting('max_execution_time')").body == b"0\n"
    quoted = "it's \\ `quoted`"
    assert ask(b"SELECT getSetting('log_comment') FORMAT JSONEachRow", log_comment=quoted).body == (
        json.dumps({"getSetting('log_comment')": quoted}, separators=(",", ":")).encode() + b"\n"
    )


def test_database_ends_with_the_request(ask: Ask) -> None:
    assert ask(b"SELECT currentDatabase()", database="system").body == b"system\n"
    assert ask(b"SELECT currentDatabase()", headers={"X-ClickHouse-Database": "system"}).body == b"system\n"
    assert ask(b"SELECT currentDatabase()").body == b"default\n"


def test_get_cannot_write(ask: Ask, database: Database) -> None:
    assert ask(method="GET", query="SELECT 1").body == b"1\n"
    assert ask(method="GET", query=f"DROP TABLE {database.name}.scores").code == "164"


def test_where_the_statement_may_be(ask: Ask) -> None:
    assert ask(b"2", query="SELECT 1 +").body == b"3\n"
    assert ask(query="SELECT 1", default_format="JSONEachRow").body == b'{"1":1}\n'
    assert ask(b"SELECT 1 AS a FORMAT JSONEachRow", default_format="TSV").body == b'{"a":1}\n'
    assert ask().status == 500
    form = b'--x\r\nContent-Disposition: form-data; name="query"\r\n\r\nSELECT {a:String}\r\n--x\r\n'
    form += b'Content-Disposition: form-data; name="param_a"\r\n\r\nit\\\'s\r\n--x--\r\n'
    assert ask(form, headers={"Content-Type": "multipart/form-data; boundary=x"}).body == b"it\\'s\n"


@pytest.fixture
def numbers(database: Database) -> str:
    table = f"{database.name}.numbers"
    database.command(
        "CREATE TABLE numbers (n UInt64, CONSTRAINT small CHECK n < 100) "
        "ENGINE = MergeTree ORDER BY n PARTITION BY n % 7"
    )
    return table


def _two_lz4_frames(data: bytes) -> bytes:
    return bytes(lz4.frame.compress(data[:3]) + lz4.frame.compress(data[3:]))


def _zstd(data: bytes) -> bytes:
    from backports import zstd

    return bytes(zstd.compress(data))


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("", bytes),
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("lz4", _two_lz4_frames),
        ("zstd", _zstd),
    ],
)
def test_inserts_however_packed(ask: Ask, numbers: str, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    headers = {"Content-Encoding": encoding} if encoding else {}
    for text, query in (("", f"INSERT INTO {numbers} (n) FORMAT TSV"), (f"INSERT INTO {numbers} FORMAT TSV\n", None)):
        body = pack(f"{text}1\n2\n3\n".encode())
        assert ask(body, headers=headers, **({"query": query} if query else {})) == Answer(200, b"", "")
    assert ask(f"SELECT count(), sum(n) FROM {numbers}".encode()).body == b"6\t12\n"


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {table} VALUES (1), (2)",
        "insert into {table}\n(n)\nvalues (1), (2)",
        "INSERT INTO {table} SELECT number + 1 FROM numbers(2)",
        'INSERT INTO {table} (n) SETTINGS async_insert = 0 FORMAT JSONEachRow\n{{"n": 1}}\n{{"n": 2}}',
        "INSERT INTO {quoted} (`n`) FORMAT CSV\n1\n2",
        "INSERT INTO TABLE {table} FORMAT TSV\n1\n2\n",
    ],
)
def test_inserts_as_people_write_them(ask: Ask, numbers: str, statement: str) -> None:
    quoted = ".".join(f"`{part}`" for part in numbers.split("."))
    assert ask(statement.format(table=numbers, quoted=quoted).encode()) == Answer(200, b"", "")
    assert ask(f"SELECT groupArray(n) FROM (SELECT n FROM {numbers} ORDER BY n)".encode()).body == b"[1,2]\n"


@pytest.mark.parametrize(
    ("data", "code"), [(b"1\nx\n", "27"), (b"1\n200\n", "469")], ids=["not a number", "a violated constraint"]
)
def test_a_refused_insert_is_never_acknowledged(ask: Ask, numbers: str, data: bytes, code: str) -> None:
    assert ask(f"INSERT INTO {numbers} (n) FORMAT TSV\n".encode() + data).code == code


def test_too_many_partitions_are_not_acknowledged(ask: Ask, numbers: str) -> None:
    insert = f"INSERT INTO {numbers} (n) FORMAT TSV\n1\n2\n3\n".encode()
    assert ask(insert, max_partitions_per_insert_block="2").code == "252"
    assert ask(f"SELECT count() FROM {numbers}".encode()).body == b"0\n"


@pytest.mark.parametrize("encoding", ["gzip", "lz4", "zstd", "br"])
def test_broken_bodies(ask: Ask, encoding: str) -> None:
    answer = ask(b"SELECT 1", headers={"Content-Encoding": encoding})
    assert (answer.status, answer.code) == (500, "36")
    assert encoding.encode() in answer.body


@pytest.mark.parametrize("pack", [gzip.compress, lz4.frame.compress, _zstd, zlib.compress])
def test_a_body_that_unpacks_to_too_much_is_refused(pack: Callable[[bytes], bytes]) -> None:
    encoding = {gzip.compress: "gzip", zlib.compress: "deflate", _zstd: "zstd"}.get(pack, "lz4")
    bomb = pack(bytes(1_000_001))
    assert len(bomb) < 10_000
    assert unpack(pack(bytes(1_000_000)), encoding, limit=1_000_000) == bytes(1_000_000)
    with pytest.raises(BadRecord, match="more than 1000000 bytes"):
        unpack(bomb, encoding, limit=1_000_000)
    with pytest.raises(BadRecord, match="cut short"):
        unpack(pack(os.urandom(10_000))[:-100], encoding)


def test_statements_run_in_parallel(ask: Ask) -> None:
    """Three that wait until all three are running: one after the other, none would end."""
    done: list[bytes] = []
    wait = b"SELECT sleepEachRow(0.5) FROM numbers(6) FORMAT Null"
    threads = [threading.Thread(target=lambda: done.append(ask(wait).body)) for _ in range(3)]
    for thread in threads:
        thread.start()
    running, deadline = 0, time.monotonic() + 20
    while running < 3 and time.monotonic() < deadline:
        running = int(ask(b"SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow%Null'").body)
    for thread in threads:
        thread.join(30)
    assert running == 3
    assert done == [b""] * 3


def test_a_statement_is_killed_by_its_id_and_the_reader_kills_those_of_readers_only(
    clickhouse_server: EmbeddedClickHouse, ask: Ask
) -> None:
    keys = {"writer": None, "reader": clickhouse_server.reader_settings.password.get_secret_value()}
    codes: dict[str, str] = {}
    endless = (
        b"SELECT count() AS killable FROM system.numbers WHERE NOT sleepEachRow(0.01) SETTINGS max_block_size = 10"
    )

    def run(who: str) -> None:
        codes[who] = ask(endless, key=keys[who], query_id=f"of-{who}").code

    def kill(key: str | None, *ids: str) -> int:
        listed = ", ".join(f"'{one}'" for one in ids)
        answer = ask(f"KILL QUERY WHERE query_id IN ({listed}) ASYNC".encode(), key=key)
        assert answer.status == 200
        return len(answer.body.splitlines())

    threads = [threading.Thread(target=run, args=(who,)) for who in keys]
    for thread in threads:
        thread.start()
    count, deadline = b"SELECT count() FROM system.processes WHERE query LIKE '%AS killable%block_size = 10'", 60
    until = time.monotonic() + deadline
    while int(ask(count).body) < 2:
        assert time.monotonic() < until
    assert kill(keys["reader"], "of-writer", "of-nobody") == 0
    assert kill(keys["reader"], "of-reader", "of-writer") == 1
    threads[1].join(deadline)
    assert codes == {"reader": "394"}
    assert kill(keys["writer"], "of-writer") == 1
    threads[0].join(deadline)
    assert codes == {"reader": "394", "writer": "394"}


def test_the_reader_kills_by_id_only(clickhouse_server: EmbeddedClickHouse, ask: Ask) -> None:
    reader = clickhouse_server.reader_settings.password.get_secret_value()
    for where in (
        "1",
        "query_id != ''",
        "query_id IN ('a') OR 1",
        "query_id IN (SELECT query_id FROM system.processes)",
    ):
        assert ask(f"KILL QUERY WHERE {where} ASYNC".encode(), key=reader).code == "164"
