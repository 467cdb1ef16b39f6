"""Run statements on chDB, each on its own connection: no setting, database or session outlives its request."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragtide.sinks.clickhouse.embedded.checks import check
from ragtide.sinks.clickhouse.embedded.errors import SYNTAX_ERROR, UNKNOWN_FORMAT, UNKNOWN_SETTING, EngineError
from ragtide.sinks.clickhouse.embedded.storage import Storage, refuse

# An insert whose data follows in the body; the engine's parser takes every other statement as it stands.
_NAME = rb"(?:`[^`]*+`|[^\s(`.]++)"  # possessive: a long statement is scanned once
_INSERT = re.compile(
    rb"\s*+(?P<target>INSERT\s++INTO\s++(?:TABLE\s++)?" + _NAME + rb"(?:\." + _NAME + rb")?\s*+(?:\([^()]*+\))?)"
    rb"\s*+(?P<settings>SETTINGS\s[^\n;]*?\s)?\s*+FORMAT\s++(?P<format>\w++)[^\S\n]*+(?:;|\n|$)",
    re.IGNORECASE,
)
# The engine gives statements ids of its own: the client's stands in their log comment.
_KILL = re.compile(
    rb"\s*+KILL\s++QUERY\s++WHERE\s++query_id\s++IN\s*+\((?P<ids>'[\w-]++'(?:\s*+,\s*+'[\w-]++')*+)\)\s*+ASYNC\s*+",
    re.IGNORECASE,
)
_OF_PYTHON = {"arrowtable", "dataframe", "debug"}  # names that chDB takes for objects in its own process
_SETTING = re.compile(r"[a-z][a-z0-9_.]*", re.IGNORECASE)
_READS = re.compile(rb"\s*+(?:SELECT|WITH|SHOW|DESC|DESCRIBE|EXISTS|EXPLAIN|CHECK|USE|SET)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """The statement of one HTTP request: `text` is SQL, followed by the data of an insert."""

    text: bytes
    database: str = ""
    format: str = "TabSeparated"
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    read_only: bool = False
    query_id: str = ""

    @property
    def kills(self) -> bool:
        """Whether it stops other statements by their `query_id`, and so must not wait for them."""
        return _KILL.fullmatch(self.text) is not None


class Engine:
    """One process may hold a directory; its statements run in parallel, from any thread."""

    def __init__(self, data: Path, incoming: Path, configuration: Path) -> None:
        self._storage = Storage(data, incoming, configuration)
        self._incoming = incoming

    def run(self, statement: Statement) -> bytes:
        """Run the statement; return its answer in its own FORMAT or else in `format`. Raises EngineError."""
        if kill := _KILL.fullmatch(statement.text):
            return self._kill(re.findall(r"[\w-]+", kill["ids"].decode()), read_only=statement.read_only)
        insert = _INSERT.match(statement.text)
        reads = not insert and _READS.match(statement.text) is not None
        if not insert and not reads:
            self._storage.probe()  # an insert's data is its own probe
        try:
            with self._storage.connection(reads=reads) as connection:
                text = (insert["target"] + (insert["settings"] or b"") if insert else statement.text).decode()
                check(text, lambda sql: _normalize(connection, sql), read_only=statement.read_only)
                _prepare(connection, statement)
                if insert:
                    self._insert(connection, insert, statement.text[insert.end() :])
                    return b""
                if statement.format.lower() in _OF_PYTHON:
                    raise EngineError(f"Code: {UNKNOWN_FORMAT}. DB::Exception: Unknown format. (UNKNOWN_FORMAT)")
                answer = connection.query(text, statement.format, params=dict(statement.parameters))
                return bytes(answer.bytes())
        except UnicodeDecodeError:
            raise EngineError(f"Code: {SYNTAX_ERROR}. DB::Exception: Not UTF-8. (SYNTAX_ERROR)") from None

    def _insert(self, connection: Any, insert: re.Match[bytes], data: bytes) -> None:
        """Insert through a file: chDB's streaming insert (4.4) reports refused rows as written."""
        try:
            with tempfile.NamedTemporaryFile(dir=self._incoming) as file:
                file.write(data)
                file.flush()
                target, settings, data_format = ((part or b"").decode() for part in insert.groups())
                connection.query(f"{target} FROM INFILE '{_escape(file.name)}' {settings} FORMAT {data_format}")
        except OSError as error:
            refuse(error)

    def _kill(self, query_ids: Sequence[str], *, read_only: bool) -> bytes:
        """Stop statements of these ids; who may only read stops none that may write."""
        comments = [_comment(each, read_only=only) for each in query_ids for only in {True, read_only}]
        listed = ", ".join(f"'{each}'" for each in comments)
        with self._storage.connection(reads=True) as connection:
            answer = connection.query(f"KILL QUERY WHERE Settings['log_comment'] IN ({listed}) ASYNC", "TabSeparated")
            return bytes(answer.bytes())

    def close(self) -> None:
        """Release the directory; statements must have ended."""
        self._storage.close()


def _prepare(connection: Any, statement: Statement) -> None:
    if statement.database:
        connection.query(f"USE `{_escape(statement.database)}`")
    settings = dict(statement.settings)
    if statement.query_id:
        settings["log_comment"] = _comment(statement.query_id, read_only=statement.read_only)
    if statement.read_only:  # last: it forbids further changes. 1 is stricter than 2 and may be asked for.
        settings["readonly"] = "1" if settings.pop("readonly", "") == "1" else "2"
    if not all(map(_SETTING.fullmatch, settings)):
        raise EngineError(f"Code: {UNKNOWN_SETTING}. DB::Exception: Unknown setting. (UNKNOWN_SETTING)")
    if settings:
        connection.query("SET " + ", ".join(f"{name} = '{_escape(value)}'" for name, value in settings.items()))


def _comment(query_id: str, *, read_only: bool) -> str:
    return f"{'reads' if read_only else 'writes'} {query_id}"


def _normalize(connection: Any, text: str) -> str:
    answer = connection.query(f"SELECT normalizeQuery('{_escape(text)}')", "RawBLOB")
    return bytes(answer.bytes()).decode(errors="replace")


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("`", "\\`")
