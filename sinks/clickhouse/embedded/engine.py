"""Statements on chDB, each on a connection of its own: no setting, database or session outlives its request."""

import errno
import importlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluators.errors import ConfigError

# An insert whose data follows in the body; the engine's parser takes every other statement as it stands.
_NAME = rb"(?:`[^`]*+`|[^\s(`.]++)"  # possessive: a long statement is looked at once
_INSERT = re.compile(
    rb"\s*+(?P<target>INSERT\s++INTO\s++(?:TABLE\s++)?" + _NAME + rb"(?:\." + _NAME + rb")?\s*+(?:\([^()]*+\))?)"
    rb"\s*+(?P<settings>SETTINGS\s[^\n;]*?\s)?\s*+FORMAT\s++(?P<format>\w++)[^\S\n]*+(?:;|\n|$)",
    re.IGNORECASE,
)
_CODE = re.compile(r"Code: (\d+)\.")
_SETTING = re.compile(r"[a-z][a-z0-9_.]*", re.IGNORECASE)
SYNTAX_ERROR = 62
UNKNOWN_SETTING = 115
UNKNOWN_EXCEPTION = 1002


@dataclass(frozen=True)
class Statement:
    """What one HTTP request asks for: `text` is SQL, followed by the data of an insert where it is one."""

    text: bytes
    database: str = ""
    format: str = "TabSeparated"
    settings: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)


class EngineError(Exception):
    """The engine's own message, and its error code."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _CODE.search(message)
        self.code = int(found[1]) if found else UNKNOWN_EXCEPTION


class Engine:
    """One process may hold a directory; its statements run in parallel, from any thread."""

    def __init__(self, data: Path, incoming: Path) -> None:
        try:
            self._chdb = importlib.import_module("chdb")
        except ModuleNotFoundError:
            raise ConfigError("the embedded ClickHouse is not installed: pip install 'ragwatch[local]'") from None
        self._path = str(data)
        self._incoming = incoming
        try:
            self._keeper = self._chdb.connect(self._path)  # the engine lives as long as one connection does
        except RuntimeError as error:
            raise ConfigError(f"the embedded ClickHouse cannot open {data}: {error}") from None

    def run(self, statement: Statement) -> bytes:
        """What the statement answers, in the statement's own FORMAT or else in `format`. Raises EngineError."""
        connection = self._chdb.connect(self._path)
        try:
            if statement.database:
                connection.query(f"USE `{_escaped(statement.database)}`")
            for name, value in statement.settings.items():
                if not _SETTING.fullmatch(name):
                    raise EngineError(f"Code: {UNKNOWN_SETTING}. DB::Exception: Unknown setting. (UNKNOWN_SETTING)")
                connection.query(f"SET {name} = '{_escaped(value)}'")
            if insert := _INSERT.match(statement.text):
                self._insert(connection, insert, statement.text[insert.end() :])
                return b""
            answer = connection.query(statement.text.decode(), statement.format, params=dict(statement.parameters))
            return bytes(answer.bytes())
        except (self._chdb.ChdbError, RuntimeError) as error:
            raise EngineError(str(error)) from None
        except UnicodeDecodeError:
            raise EngineError(f"Code: {SYNTAX_ERROR}. DB::Exception: Not UTF-8. (SYNTAX_ERROR)") from None
        finally:
            connection.close()

    def _insert(self, connection: Any, insert: re.Match[bytes], data: bytes) -> None:
        """Through a file: chDB's own streaming insert (4.4) reports rows as written that the table refused."""
        try:
            with tempfile.NamedTemporaryFile(dir=self._incoming) as file:
                file.write(data)
                file.flush()
                target, settings, data_format = ((part or b"").decode() for part in insert.groups())
                connection.query(f"{target} FROM INFILE '{_escaped(file.name)}' {settings} FORMAT {data_format}")
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            code, name = (243, "NOT_ENOUGH_SPACE") if full else (75, "CANNOT_WRITE_TO_FILE_DESCRIPTOR")
            raise EngineError(f"Code: {code}. DB::Exception: {error.strerror}. ({name})") from None

    def close(self) -> None:
        """Let go of the directory; statements must have ended."""
        self._keeper.close()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'").replace("`", "\\`")
