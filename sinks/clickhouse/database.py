"""One ClickHouse database over HTTP; every error says what to do about it."""

import contextlib
import logging
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol
from urllib.parse import urlsplit

import clickhouse_connect
import numpy as np
import numpy.typing as npt
from clickhouse_connect.driver import options
from clickhouse_connect.driver.binding import str_query_value
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError
from clickhouse_connect.driver.httpclient import HttpClient
from clickhouse_connect.driver.insert import InsertContext

from ragtide.evaluators.errors import ConfigError, Refused
from ragtide.sinks.clickhouse.errors import UNSUITABLE, classify_error
from ragtide.sinks.settings import ClickHouseSettings

_CONNECT_TIMEOUT_S = 10
_LONGEST_BOUND = 4096  # characters of a value; servers take 128 KiB in a field of a request, and 1 MiB in a URL
_QUERY_ID = re.compile(r"[A-Za-z0-9-]+")
_LONGEST_STATEMENT = 262_144  # bytes: `max_query_size` where nothing else is set

# At each insert the driver asks whether the rows are a frame, and for that loads pandas and pyarrow wherever they are
# installed (chdb brings them): 80 MB and up to seconds. Nothing here is a frame.
vars(options).setdefault("pd", None)


class Row(Protocol):
    """A NamedTuple whose fields are columns of the table."""

    @property
    def _fields(self) -> tuple[str, ...]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Database:
    """Usable from any number of threads; connects at the first call and again after a failure.

    Raises Transient, Refused (inserts only) or ConfigError, see `ragtide.evaluators.errors`; never retries by
    itself.
    """

    def __init__(self, settings: ClickHouseSettings) -> None:
        self.settings = settings
        self.name = settings.database
        self._lock = threading.Lock()
        self._client: HttpClient | None = None
        self._column_types: dict[tuple[str, Sequence[str]], Sequence[Any]] = {}
        self._closed = False

    def rows(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None
    ) -> list[dict[str, Any]]:
        """Rows of a SELECT by column name; times are aware UTC.

        `parameters` are bound by the server: `{name:Type}` in the statement. `settings` hold for the statement; those
        that the server does not know, or does not let this user change, are left out. Statement and parameters may
        have any length.
        """
        with self._named_errors():
            client = self._connection()
            sql, bound = _bind(sql, parameters)
            result = client.query(sql, parameters=bound, settings=_supported_settings(client, sql, settings))
            return list(result.named_results())

    def numbers(
        self, sql: str, columns: npt.DTypeLike, settings: Mapping[str, int] | None = None
    ) -> npt.NDArray[np.void]:
        """Rows of a SELECT of numbers, a million per second and more; `columns` are their types, in order.

        A structured array; its types must be those of the statement, since nothing else says what the bytes are.
        """
        with self._named_errors():
            client = self._connection()
            answer = client.raw_query(sql, settings=_supported_settings(client, sql, settings), fmt="RowBinary")
            return np.frombuffer(answer, np.dtype(columns))

    def json(self, sql: str, settings: Mapping[str, int | str], query_id: str) -> bytes:
        """Answer of a SELECT as ClickHouse's format JSONCompact: columns with types, then rows.

        `settings` hold for the statement, as for `rows`. `query_id` is the unique id that `kill` takes.
        """
        with self._named_errors():
            client = self._connection()
            supported = {**_supported_settings(client, sql, settings), "query_id": query_id}
            return client.raw_query(sql, settings=supported, fmt="JSONCompact")

    def kill(self, query_ids: Sequence[str]) -> None:
        """Stop statements that run now; they raise Transient soon after. Ids that do not run are ignored.

        Read access suffices for a user's own statements. A load balancer may send the request to another server.
        """
        if not all(map(_QUERY_ID.fullmatch, query_ids)):
            raise ValueError("a query id has other signs than letters, digits and hyphens")
        ids = ", ".join(f"'{each}'" for each in query_ids)
        with self._named_errors():
            self._connection().command(f"KILL QUERY WHERE query_id IN ({ids}) ASYNC")

    def arrow(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None
    ) -> bytes:
        """Answer of a SELECT as a stream of Arrow record batches, with texts as strings; arguments as for `rows`."""
        with self._named_errors():
            client = self._connection()
            sql, bound = _bind(sql, parameters)
            wanted = {"output_format_arrow_string_as_string": 1, **(settings or {})}
            supported = _supported_settings(client, sql, wanted)
            return client.raw_query(sql, parameters=bound, settings=supported, fmt="ArrowStream")

    def command(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, int] | None = None
    ) -> None:
        """Run any other statement, with the same `settings`."""
        with self._named_errors():
            client = self._connection()
            sql, bound = _bind(sql, parameters)
            client.command(sql, parameters=bound, settings=_supported_settings(client, sql, settings))

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert the rows; they are durable when this returns. Raises Refused if the content can never be stored.

        The rows are of one type; its fields name the columns.
        """
        if not rows:
            return
        columns = rows[0]._fields
        try:
            with self._named_errors():
                client = self._connection()
                context = client.create_insert_context(
                    table,
                    column_names=columns,
                    column_types=self._types_of(client, table, columns),
                    column_oriented=True,
                    settings={"async_insert": 0},
                )
                _insert(client, context, rows)
        except UNSUITABLE as error:  # no word of the error's own: it quotes the value
            raise Refused(f"{table}: a value does not fit its column ({type(error).__name__})") from None
        except Refused as error:
            raise Refused(f"{table}: {error}") from None
        except ConfigError:
            self._column_types.pop((table, columns), None)  # the table may have been created again
            raise

    def create(self) -> None:
        """Create the database if it is missing."""
        with self._named_errors():
            self._connection().command(
                "CREATE DATABASE IF NOT EXISTS {name:Identifier}", parameters={"name": self.name}, use_database=False
            )

    def version(self) -> str:
        """Ask the server for its version."""
        return str(self.rows("SELECT version() AS version")[0]["version"])

    def close(self) -> None:
        """Release the connections; any use afterwards is an error."""
        with self._lock:
            self._closed = True
            if self._client is not None:
                self._client.close()
                self._client = None

    def _types_of(self, client: Client, table: str, columns: Sequence[str]) -> Sequence[Any]:
        key = (table, columns)  # writers of one table may name different columns
        if key not in self._column_types:
            self._column_types[key] = client.create_insert_context(table, column_names=columns).column_types
        return self._column_types[key]

    def _connection(self) -> HttpClient:
        with self._lock:
            if self._closed:
                raise RuntimeError("the database is closed")
            if self._client is None:
                self._client = _client(self.settings)
            return self._client

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except ClickHouseError as error:
            named = classify_error(error, self.settings.url)
            if named is None:
                raise
            raise named from None


def _client(settings: ClickHouseSettings) -> HttpClient:
    """Connect: ask for version and time zone. Without a session, so threads share it."""
    # The driver logs values that it cannot serialise, with a traceback: what users wrote must not reach a log.
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    url = urlsplit(settings.url)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise ConfigError(f"clickhouse.url must look like http://host:8123, not {settings.url!r}")
    client = clickhouse_connect.get_client(
        interface=url.scheme,
        host=url.hostname,
        port=url.port or (8443 if url.scheme == "https" else 8123),
        proxy_path=url.path,
        username=settings.user,
        password=settings.password.get_secret_value(),
        autogenerate_session_id=False,
        compress=url.hostname not in ("127.0.0.1", "localhost", "::1"),
        connect_timeout=min(_CONNECT_TIMEOUT_S, math.ceil(settings.timeout_s)),
        send_receive_timeout=math.ceil(settings.timeout_s),
        settings={"max_execution_time": math.ceil(settings.timeout_s)},  # the server gives up when we do
        query_retries=0,
        tz_mode="aware",
        dedicated_pool=True,
    )
    assert isinstance(client, HttpClient)  # what it makes of a URL
    client.http_retries = 0  # callers retry, not the driver as well
    client.database = settings.database  # named with each request: it need not exist yet
    return client


def _insert(client: Client, context: InsertContext, rows: Sequence[Row]) -> None:
    """Keeps none of the rows. The driver's context refers to itself, and so the columns would stay until the garbage
    collector comes for them: in a lane, which lets it come seldom, dozens of blocks.
    """
    try:
        client.insert(data=list(zip(*rows, strict=True)), context=context)
    finally:
        vars(context).clear()


def _supported_settings(
    client: Client, sql: str, settings: Mapping[str, int | str] | Mapping[str, int] | None
) -> dict[str, Any]:
    known = client.server_settings
    wanted: dict[str, Any] = dict(settings or {})
    if (size := len(sql.encode())) >= _LONGEST_STATEMENT:
        wanted["max_query_size"] = size + _LONGEST_STATEMENT  # the driver adds some words
    return {name: value for name, value in wanted.items() if name in known and not known[name].readonly}


def _bind(sql: str, parameters: Mapping[str, Any] | None) -> tuple[str, dict[str, Any] | None]:
    """The statement and its parameters; long parameters are written into the statement, which has no limit."""
    if not parameters:
        return sql, None
    bound = {name: _plain(value) for name, value in parameters.items()}
    literals = {name: str_query_value(value) for name, value in bound.items() if isinstance(value, str | list | tuple)}
    long = {name: literal for name, literal in literals.items() if len(literal) > _LONGEST_BOUND}
    if long:
        sql = re.sub(rf"\{{({'|'.join(long)}):([^}}]+)\}}", lambda found: _cast(long[found[1]], found[2]), sql)
    return sql, {name: value for name, value in bound.items() if name not in long} or None


def _cast(literal: str, type_: str) -> str:
    quoted = type_.replace("\\", "\\\\").replace("'", "\\'")
    return "CAST({}, '{}')".format(literal.replace("\0", "\\0"), quoted)


def _plain(value: Any) -> Any:
    """Format times with milliseconds: the driver binds whole seconds."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time without a time zone was bound")
        text = value.astimezone(UTC).isoformat(" ", timespec="milliseconds" if value.microsecond else "seconds")
        return text.removesuffix("+00:00")
    return value
