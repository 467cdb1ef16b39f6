"""Access to the server: programs on this machine that know a key, never web pages."""

import enum
import hmac
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass

# What ClickHouse itself answers when user or password are wrong.
AUTHENTICATION_FAILED = 516
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Access(enum.Enum):
    """What a key allows."""

    NONE = "none"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """The keys of a server: the password decides, whatever the user name."""

    write: str
    read: str

    def access(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Access:
        """Access of the request's key, which may be any text."""
        password = _bytes(_password(headers, query))
        allowed = Access.READ if hmac.compare_digest(password, _bytes(self.read)) else Access.NONE
        return Access.WRITE if hmac.compare_digest(password, _bytes(self.write)) else allowed


def not_local(headers: Mapping[str, str], port: int) -> str:
    """Why the request cannot come from a local program, or "".

    A page in a browser can post to a loopback port, under a name of its own too (DNS rebinding): it always sends
    `Origin` or `Sec-Fetch-Site`, and its `Host` is not this machine's.
    """
    if "Origin" in headers or any(name.lower().startswith("sec-fetch-") for name in headers):
        return "Requests from web pages are refused"
    if headers.get("Host", "") not in {*_LOCAL_NAMES, *(f"{name}:{port}" for name in _LOCAL_NAMES)}:
        return "The Host header must name 127.0.0.1 or localhost and this port"
    return ""


def _password(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """The password, from the places where ClickHouse looks for it, in its order."""
    if key := headers.get("X-ClickHouse-Key"):
        return key
    scheme, _, credentials = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            return b64decode(credentials, validate=True).decode().partition(":")[2]
        except ValueError:  # not Base64, not ASCII, not UTF-8
            return ""
    return query.get("password", "")


def _bytes(text: str) -> bytes:
    """Encode any text that a request may hold: bytes that are not UTF-8 come as surrogates."""
    return text.encode("utf-8", "replace")
