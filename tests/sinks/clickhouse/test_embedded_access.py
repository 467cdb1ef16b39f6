"""What the keys of the embedded server allow: tables, and no way from SQL to files, programs or other servers."""

import json
import socket
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from ragtide.sinks.clickhouse.embedded.confinement import landlock_version
from ragtide.sinks.clickhouse.migrate import migrate
from ragtide.sinks.settings import ClickHouseSettings, RetentionSettings

pytestmark = pytest.mark.clickhouse

SECRET = "the operator's own file"

# {secret}: a file beside the data directory. {out}: one that is not there. {port}: another server on this machine.
WAYS_OUT = r"""
SELECT file('{secret}')
SELECT file('{key}')
SELECT file('/etc/passwd')
SELECT file('/proc/self/environ')
SELECT file('/proc/self/cwd/pyproject.toml')
SELECT file('/proc/self/root/etc/passwd')
SELECT * APPLY file FROM (SELECT '{secret}')
SELECT `fi\x6ce`('{secret}')
INSERT INTO own.t VALUES (file('{secret}'))
SELECT a FROM own.t SETTINGS additional_result_filter='throwIf(1, file(\'{secret}\'))'
SELECT * FROM file('{secret}', LineAsString)
SELECT * /* not */ FROM file -- a comment\n('{secret}', 'LineAsString')
SELECT * FROM `default`.`{secret}`
SELECT * FROM filesystem('{folder}')
DESCRIBE file('{secret}')
SELECT * FROM view(SELECT * FROM file('{secret}', LineAsString))
CREATE VIEW own.v AS SELECT * FROM file('{secret}', LineAsString)
CREATE TABLE own.f ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM file('{secret}', LineAsString)
CREATE TABLE own.f (a String) ENGINE = File(LineAsString, '{secret}')
CREATE TEMPORARY TABLE f (a String) ENGINE = File(LineAsString, '{secret}')
CREATE DATABASE f ENGINE = Filesystem('{folder}')
CREATE DATABASE f ENGINE = SQLite('{out}')
CREATE DICTIONARY own.d (a String) PRIMARY KEY a SOURCE(FILE(path '{secret}' format 'CSV')) LIFETIME(0) LAYOUT(FLAT())
CREATE TABLE own.r (a String) ENGINE = EmbeddedRocksDB(0, '{out}') PRIMARY KEY a
CREATE TABLE own.m (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type = local, path = '{out}/')
CREATE TABLE own.m (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type=local_blob_storage, path='{out}/')
CREATE TABLE own.m (a String) ENGINE = MergeTree ORDER BY a SETTINGS disk = disk(type=web,
endpoint='http://127.0.0.1:{port}/') ATTACH TABLE own.a FROM '{folder}' (a String) ENGINE = File(LineAsString)
SELECT 1 INTO OUTFILE '{out}'
SELECT 1 into/**/outfile '{out}' TRUNCATE
SELECT 1 INTO OUTFILE '{inside}'
SELECT 1; SELECT 2 INTO OUTFILE '{out}'
SELECT 1;;; /* one */ SELECT 2
/**/ INSERT INTO own.t FORMAT TSV it's\nSELECT 1 INTO OUTFILE '{out}' --'
INSERT INTO own.t FROM INFILE '{secret}' FORMAT LineAsString
INSERT INTO own.t FROM INFILE '{folder}/*' FORMAT LineAsString
INSERT INTO own.t SETTINGS async_insert = 0 FROM INFILE '{secret}' FORMAT LineAsString\nx
INSERT INTO FUNCTION file('{out}', 'CSV', 'a String') VALUES ('x')
INSERT INTO FUNCTION url('http://127.0.0.1:{port}/', 'CSV', 'a String') VALUES ('x')
SELECT * FROM url('http://127.0.0.1:{port}/', 'CSV', 'a String')
SELECT * FROM s3('http://127.0.0.1:{port}/bucket/k', 'CSV', 'a String')
SELECT * FROM remote('127.0.0.1:{port}', 'system.one')
SELECT * FROM mysql('127.0.0.1:{port}', 'd', 't', 'u', 'p')
SELECT * FROM postgresql('127.0.0.1:{port}', 'd', 't', 'u', 'p')
SELECT * FROM hdfs('hdfs://127.0.0.1:{port}/x', 'CSV', 'a String')
CREATE TABLE own.u (a String) ENGINE = URL('http://127.0.0.1:{port}/', CSV)
SELECT * FROM executable('cat', 'CSV', 'a String')
SELECT * FROM sqlite('{out}', 't')
SELECT * FROM Python(statement)
SELECT * FROM python('environ')
SELECT 1 FORMAT Template SETTINGS format_template_resultset = '{secret}'
SELECT 1 AS a FORMAT Protobuf SETTINGS format_schema = '{secret}:a'
BACKUP TABLE own.t TO File('{out}')
CREATE FUNCTION f AS x -> x
CREATE USER u
CREATE NAMED COLLECTION c AS a = 1
GRANT FILE ON *.* TO default
GRANT ALL ON *.* TO CURRENT_USER
EXECUTE AS other SELECT 1
SYSTEM SHUTDOWN
SYSTEM RELOAD CONFIG
""".strip().split("\n")
WRITES = r"""
INSERT INTO own.t VALUES ('x')
INSERT INTO own.t FORMAT TSV\nx\n
INSERT INTO FUNCTION null('a String') VALUES ('x')
CREATE TABLE own.n (a String) ENGINE = MergeTree ORDER BY a
CREATE DATABASE n
DROP TABLE own.t
DROP DATABASE own
TRUNCATE TABLE own.t
ALTER TABLE own.t DELETE WHERE 1
OPTIMIZE TABLE own.t
RENAME TABLE own.t TO own.t2
CREATE TEMPORARY TABLE x (a String)
KILL QUERY WHERE 1
/* SELECT */ KILL QUERY WHERE 1
SET readonly = 0
SELECT 1 SETTINGS readonly = 0
SELECT 1; SET readonly = 0; DROP TABLE own.t
USE own
""".strip().split("\n")


def unescaped(statements: list[str]) -> list[str]:
    return [statement.replace("\\n", "\n") for statement in statements]


class Answer(NamedTuple):
    status: int
    body: str
    code: str


@dataclass
class Outside:
    """A server, and what lies outside of its data: a file, and another server that counts who connects."""

    server: EmbeddedClickHouse
    folder: Path
    inside: Path
    port: int
    connected: list[object] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def filled(self, statement: str) -> str:
        names = {"secret": self.folder / "secret.txt", "key": self.inside / "key", "folder": self.folder}
        names |= {"out": self.out, "inside": self.inside / "data" / "out"}
        for name, value in names.items():
            statement = statement.replace(f"{{{name}}}", str(value))
        return statement.replace("{port}", str(self.port))

    def ask(self, sql: str, settings: ClickHouseSettings, method: str = "POST", **query: str) -> Answer:
        key = settings.password.get_secret_value()
        query = query | ({"query": sql} if method == "GET" else {})
        request = urllib.request.Request(
            f"{settings.url}/?{urllib.parse.urlencode(query)}",
            data=sql.encode() if method == "POST" else None,
            headers={"X-ClickHouse-Key": key},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Answer(response.status, response.read().decode(errors="replace"), "")
        except urllib.error.HTTPError as error:
            with error:
                code = error.headers.get("X-ClickHouse-Exception-Code", "")
                return Answer(error.code, error.read().decode(errors="replace"), code)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret.txt").write_text(SECRET)
    inside = tmp_path_factory.mktemp("inside") / "clickhouse"
    with EmbeddedClickHouse(inside) as server, socket.create_server(("127.0.0.1", 0)) as other:
        made = Outside(server, folder, inside, other.getsockname()[1])

        def count() -> None:
            while True:
                try:
                    connection, _ = other.accept()
                except OSError:
                    return
                made.connected.append(connection.getpeername())
                connection.close()

        threading.Thread(target=count, daemon=True).start()
        for statement in ("CREATE DATABASE own", "CREATE TABLE own.t (a String) ENGINE = MergeTree ORDER BY a"):
            assert made.ask(statement, server.settings).status == 200
        assert made.ask("INSERT INTO own.t VALUES ('kept')", server.settings).status == 200
        yield made


@pytest.mark.skipif(landlock_version() < 4, reason="some ways are shut by the kernel's Landlock only")
@pytest.mark.parametrize("statement", unescaped(WAYS_OUT))
def test_no_statement_leads_out(outside: Outside, statement: str) -> None:
    """By either key, by GET and POST, with settings in the address that would widen what may be done."""
    sql = outside.filled(statement)
    for settings in (outside.server.settings, outside.server.reader_settings):
        for method in ("GET", "POST"):
            for query in ({}, {"readonly": "0", "user": "admin", "role": "all", "allow_ddl": "1"}):
                answer = outside.ask(sql, settings, method, **query)
                assert answer.status != 200, (method, query)
                assert answer.code
                assert SECRET not in answer.body.replace(statement, "")
                assert "root:" not in answer.body
                assert not outside.out.exists()
    assert outside.connected == []
    assert outside.ask("SELECT * FROM own.t", outside.server.settings).body == "kept\n"


@pytest.mark.parametrize("statement", unescaped(WRITES))
def test_the_reader_key_and_get_only_read(outside: Outside, statement: str) -> None:
    for settings, method in (
        (outside.server.reader_settings, "POST"),
        (outside.server.reader_settings, "GET"),
        (outside.server.settings, "GET"),
    ):
        for query in ({}, {"readonly": "0"}, {"readonly": "2", "max_threads": "1"}):
            answer = outside.ask(statement, settings, method, **query)
            assert answer.code in ("164", "62"), answer  # READONLY, or several statements
    assert outside.ask("SELECT a FROM own.t", outside.server.settings).body == "kept\n"


def test_the_reader_key_reads_with_settings_and_parameters(outside: Outside) -> None:
    reader = outside.server.reader_settings
    assert outside.ask("SELECT a FROM own.t", reader).body == "kept\n"
    assert outside.ask("/* first */ (SELECT 1) UNION ALL (SELECT 1)", reader, "GET").body == "1\n1\n"
    assert outside.ask("WITH 2 AS n SELECT n SETTINGS max_threads = 1;", reader).body == "2\n"
    assert outside.ask("SELECT getSetting('max_threads')", reader, max_threads="3", readonly="2").body == "3\n"
    assert outside.ask("SELECT {n:UInt8}", reader, "GET", param_n="5").body == "5\n"
    assert outside.ask("SHOW TABLES FROM own", reader).body == "t\n"
    assert outside.ask("SELECT 1 SETTINGS max_threads = 1", reader, readonly="1").code == "164"


def test_words_in_literals_comments_and_names_are_no_statements(outside: Outside) -> None:
    """A question about OUTFILE may be asked for, stored and read by both keys."""
    question = "How do I write INTO OUTFILE 'x'; or FROM INFILE? INSERT … FORMAT; python(df)"
    literal = question.replace("'", "\\'")
    for settings in (outside.server.settings, outside.server.reader_settings):
        assert outside.ask(f"SELECT '{literal}' -- ; INTO OUTFILE", settings).body == f"{literal}\n"
        assert outside.ask('SELECT 1 AS `a;b`, 2 AS "into outfile" /* ; */ ;', settings).body == "1\t2\n"
    own = outside.server.settings
    assert outside.ask("CREATE TABLE own.q (a String) ENGINE = MergeTree ORDER BY a", own).status == 200
    assert outside.ask(f"INSERT INTO own.q FORMAT TSV\n{literal}\n", own).status == 200
    assert outside.ask(f"INSERT INTO own.q VALUES ('{literal}')", own).status == 200
    assert outside.ask(f"SELECT count() FROM own.q WHERE a = '{literal}'", own).body == "2\n"


def test_the_ordinary_client_reads_with_the_reader_key(outside: Outside) -> None:
    writer, reader = Database(outside.server.settings), Database(outside.server.reader_settings)
    writer.create()
    migrate(writer, RetentionSettings())
    assert reader.rows("SELECT count() AS n FROM traces FINAL") == [{"n": 0}]
    with pytest.raises(ConfigError, match="may only read"):
        reader.command("DROP TABLE traces")
    for database in (writer, reader):
        database.close()


@pytest.mark.parametrize("name", ["X-ClickHouse-Key", "Authorization"])
@pytest.mark.parametrize("key", ["ключ", "\udcff\udcfe", "Basic ключ", "Basic \udcff", "Basic 0A=", "Basic //8="])
def test_a_key_of_any_bytes_is_refused(outside: Outside, name: str, key: str) -> None:
    with socket.create_connection(("127.0.0.1", outside.server.port), timeout=30) as connection:
        header = f"{name}: {key}".encode("utf-8", "surrogateescape")
        connection.sendall(
            b"GET /?query=SELECT+1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + header + b"\r\n\r\n"
        )
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"X-ClickHouse-Exception-Code: 516" in answer


@pytest.mark.parametrize("name", ["dataframe", "DataFrame", "ArrowTable", "debug", "nothing"])
def test_a_format_that_clickhouse_lacks_is_its_own_error(outside: Outside, name: str) -> None:
    """chDB gives Python objects for some of these names."""
    answer = outside.ask("SELECT 1", outside.server.reader_settings, default_format=name)
    assert (answer.status, answer.code) == (500, "73")


def test_a_path_that_no_configuration_can_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="control characters"):
        EmbeddedClickHouse(tmp_path / "a\x1bb").start()


def test_the_environment_of_the_server_holds_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it was started: the engine can read what its process began with."""
    monkeypatch.setenv("RAGTIDE_GRAFANA__TOKEN", SECRET)
    program = [sys.executable, "-m", "ragtide.sinks.clickhouse.embedded", str(tmp_path / "alone"), "0"]
    with EmbeddedClickHouse(tmp_path / "child") as server, subprocess.Popen(program, stderr=subprocess.PIPE) as alone:
        assert alone.stderr is not None
        assert b"listening" in alone.stderr.readline()
        for pid in (server.pid, alone.pid):
            began_with = Path(f"/proc/{pid}/environ").read_text()
            assert "PATH=" in began_with
            assert SECRET not in began_with
        alone.terminate()


def test_a_directory_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    directory = tmp_path / "clickhouse"
    with EmbeddedClickHouse(directory) as server:
        keys = {server.settings.password, server.reader_settings.password}
    for path in (directory, *directory.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    with EmbeddedClickHouse(directory) as server:
        assert {server.settings.password, server.reader_settings.password} == keys
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        open_to_others = [path.name for path in directory.iterdir() if path.stat().st_mode & 0o077]
        assert open_to_others == []
        assert len(keys) == 2


def test_without_landlock_grants_and_checks_remain(tmp_path: Path) -> None:
    """On systems without it: the engine in a process that was not confined."""
    (tmp_path / "secret.txt").write_text(SECRET)
    program = """
import json, pathlib, sys
from ragtide.sinks.clickhouse.embedded.access import write_configuration
from ragtide.sinks.clickhouse.embedded.confinement import hide_python_objects
from ragtide.sinks.clickhouse.embedded.engine import Engine, Statement
from ragtide.sinks.clickhouse.embedded.errors import EngineError
root = pathlib.Path(sys.argv[1])
for name in ("data", "incoming", "engine"):
    (root / name).mkdir()
hide_python_objects()
engine = Engine(root / "data", root / "incoming", write_configuration(root / "engine", root))
codes = []
for sql in json.load(sys.stdin):
    try:
        engine.run(Statement(sql.encode()))
        codes.append(0)
    except EngineError as error:
        codes.append(error.code)
engine.close()
json.dump(codes, sys.stdout)
"""
    setup = ["CREATE DATABASE own", "CREATE TABLE own.t (a String) ENGINE = MergeTree ORDER BY a"]
    ways = [
        "SELECT * FROM file('{root}/secret.txt', LineAsString)",
        "SELECT * FROM url('http://127.0.0.1:9/', 'CSV', 'a String')",
        "SELECT * FROM remote('127.0.0.1:9', 'system.one')",
        "SELECT * FROM s3('http://127.0.0.1:9/bucket/k', 'CSV', 'a String')",
        "CREATE TABLE own.f (a String) ENGINE = File(LineAsString, '{root}/secret.txt')",
        "CREATE DICTIONARY own.d (a String) PRIMARY KEY a SOURCE(NULL()) LIFETIME(0) LAYOUT(FLAT())",
        "SELECT 1 INTO OUTFILE '{root}/out'",
        "INSERT INTO own.t FROM INFILE '{root}/secret.txt' FORMAT LineAsString",
        "INSERT INTO FUNCTION file('{root}/out', 'CSV', 'a String') VALUES ('x')",
        "BACKUP TABLE own.t TO File('{root}/out')",
        "SELECT * FROM Python(codes)",
        "CREATE FUNCTION f AS x -> x",
    ]
    statements = setup + [way.replace("{root}", str(tmp_path)) for way in ways]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        input=json.dumps(statements), capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    codes = json.loads(done.stdout)
    assert codes[:2] == [0, 0]
    assert (
        dict(zip(ways, codes[2:], strict=True)).items()
        == {
            way: 358 if "OUTFILE" in way or "INFILE" in way else 801 if "Python" in way else 497 for way in ways
        }.items()
    )
    assert not (tmp_path / "out").exists()
