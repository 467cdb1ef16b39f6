"""Who may ask: a program on this machine that knows the key. Never a web page."""

import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping

# What ClickHouse itself answers when user or password are wrong.
AUTHENTICATION_FAILED = 516
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


def refusal(headers: Mapping[str, str], query: Mapping[str, str], port: int, key: str) -> str:
    """Why the request is turned away, or "" where it may pass.

    A page in a browser can post to a loopback port, under a name of its own too (DNS rebinding): it always sends
    `Origin` or `Sec-Fetch-Site`, and its `Host` is not this machine's.
    """
    if foreign := not_local(headers, port):
        return foreign
    if not hmac.compare_digest(_password(headers, query).encode(), key.encode()):
        return "Authentication failed: the password is the key in the file `key` of the data directory"
    return ""


def not_local(headers: Mapping[str, str], port: int) -> str:
    """Why the request cannot come from a program that means this server, or ""."""
    if "Origin" in headers or any(name.lower().startswith("sec-fetch-") for name in headers):
        return "Requests from web pages are refused"
    if headers.get("Host", "") not in {*_LOCAL_NAMES, *(f"{name}:{port}" for name in _LOCAL_NAMES)}:
        return "The Host header must name 127.0.0.1 or localhost and this port"
    return ""


def _password(headers: Mapping[str, str], query: Mapping[str, str]) -> str:
    """From where ClickHouse looks for it, in its order."""
    if key := headers.get("X-ClickHouse-Key"):
        return key
    scheme, _, credentials = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            return b64decode(credentials, validate=True).decode().partition(":")[2]
        except (Base64Error, UnicodeDecodeError):
            return ""
    return query.get("password", "")
