"""Check statements that the server itself refuses, like ClickHouse's own HTTP interface.

The engine acts as server and client at once: `INTO OUTFILE` and `FROM INFILE` are a client's work that no grant covers,
several statements in one text are a client's work too. Keywords are looked for in the engine's own tokens, so neither
comments nor quotes hide one, and a question about OUTFILE in a literal is no keyword.
"""

import re
from collections.abc import Callable

from ragtide.sinks.clickhouse.embedded.errors import READONLY, SYNTAX_ERROR, EngineError

_OUTFILE_NOT_ALLOWED = 358
_FILES = re.compile(r"\b(?:IN|OUT)FILE\b", re.IGNORECASE)
_INSERT = re.compile(r"\bINSERT\b", re.IGNORECASE)
_FORMAT = re.compile(r"\bFORMAT\b", re.IGNORECASE)
_QUOTED_NAME = re.compile(r'`(?:[^`\\]|\\.|``)*+`|"(?:[^"\\]|\\.|"")*+"', re.DOTALL)
_READS = re.compile(r"[\s(]*+(?:SELECT|WITH|FROM|SHOW|DESC|DESCRIBE|EXISTS|EXPLAIN)\b", re.IGNORECASE)


def check(text: str, normalize: Callable[[str], str], *, read_only: bool) -> None:
    """Raise EngineError where the text is more than one statement, names a file of the server, or must only read.

    `normalize` gives the engine's tokens with `?` for each literal and without comments.
    """
    if not (read_only or ";" in text or _FILES.search(text) or _has_inline_data(text)):
        return
    keywords = _QUOTED_NAME.sub("name", normalize(text))
    if _FILES.search(keywords):
        raise _error(_OUTFILE_NOT_ALLOWED, "INTO OUTFILE and FROM INFILE are not allowed", "INTO_OUTFILE_NOT_ALLOWED")
    if _has_inline_data(keywords):
        raise _error(
            SYNTAX_ERROR, "INSERT with data must begin the query: INSERT INTO table FORMAT name", "SYNTAX_ERROR"
        )
    if ";" in keywords.rstrip("; \n\t"):
        raise _error(SYNTAX_ERROR, "Multi-statements are not allowed", "SYNTAX_ERROR")
    if read_only and not _READS.match(keywords):
        raise _error(READONLY, "Cannot execute query in readonly mode", "READONLY")


def _has_inline_data(text: str) -> bool:
    insert = _INSERT.search(text)
    return insert is not None and _FORMAT.search(text, insert.end()) is not None


def _error(code: int, message: str, name: str) -> EngineError:
    return EngineError(f"Code: {code}. DB::Exception: {message}. ({name})")
