"""Post batches to an OTLP/HTTP endpoint as JSON: compressed, and with what the endpoint rejected."""

import gzip
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

import msgspec
from pydantic import SecretStr

from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.http_post import HttpPoster, StatusRefused

Signal = Literal["logs", "spans"]
_REJECTED: Mapping[Signal, str] = {"logs": "rejectedLogRecords", "spans": "rejectedSpans"}
PATHS: Mapping[Signal, str] = {"logs": "/v1/logs", "spans": "/v1/traces"}
_RETRIED = frozenset({429, 502, 503, 504})  # OTLP/HTTP: all other answers of 4xx and 5xx must not be retried
_NO_ENDPOINT = frozenset({404, 405, 410, 415, 501})
_LONGEST_REASON = 200  # characters


class Accepted(NamedTuple):
    """The number of log records or spans that an accepted batch lost; None if the answer does not say it readably.

    They are not to be sent again. `why` may also warn about records that were taken.
    """

    rejected: int | None
    why: str


class OtlpHttpClient:
    """Posts to one endpoint. Every call raises `Transient`, `ConfigError` or `Refused`, nothing else.

    Not for use by several threads at once, nor from an event loop.
    """

    def __init__(
        self,
        url: SecretStr,
        headers: Mapping[str, SecretStr],
        ca_file: str,
        timeout_s: float,
        signal: Signal,
        setting: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signal = signal
        self._setting = setting
        self._headers = {name: value.get_secret_value() for name, value in headers.items()}
        self._headers |= {"Content-Type": "application/json", "Content-Encoding": "gzip", "User-Agent": "ragtide"}
        self._poster = HttpPoster(url, ca_file, timeout_s, setting, f"{setting}.headers and .url", clock, _RETRIED)
        self.where = self._poster.where

    def connected(self) -> AbstractContextManager[None]:
        """Keep a connection open for several batches."""
        return self._poster.connected()

    def send(self, body: bytes) -> Accepted:
        """Post a batch. An answer of 404 or of another encoding alone is a wrong setting, not a bad batch."""
        try:
            answer = self._poster.post(gzip.compress(body, 1, mtime=0), self._headers, reads_answer=True)
        except StatusRefused as error:
            if error.status in _NO_ENDPOINT:
                raise ConfigError(
                    f"{error}. {self._setting}.url must be the whole URL of an OTLP/HTTP endpoint that reads JSON, "
                    f"such as http://collector:4318{PATHS[self._signal]}"
                ) from None
            raise
        return _accepted(answer.body, _REJECTED[self._signal])


def _accepted(body: bytes, field: str) -> Accepted:
    """Read a partial success; any other answer of 2xx accepts all. JSON that is cut or wrong says nothing."""
    try:
        partial = msgspec.json.decode(body, type=dict[str, object]).get("partialSuccess")
        rejected = int(str(partial.get(field) or 0)) if isinstance(partial, dict) else 0
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        return Accepted(None if body.startswith(b"{") else 0, "")  # 0: protobuf, a text, or empty
    why = str(partial.get("errorMessage") or "") if isinstance(partial, dict) else ""
    return Accepted(max(rejected, 0), "".join(one for one in why if one.isprintable())[:_LONGEST_REASON])
