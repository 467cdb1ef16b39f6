"""Who may use the viewer: programs and people on this machine, or whoever has the token. Never another website."""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from aiohttp import hdrs, web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

COOKIE = "ragtide_view"
LOGIN = "/login"
_PUBLIC = (LOGIN, "/static/")  # what the page that asks for the token needs
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_MONTH_S = 30 * 86400

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """Decides about each request. Without a token the request must name this machine in its Host header.

    A website under a name of its own can reach a loopback port (DNS rebinding); its Host header gives it away.
    """

    def __init__(self, token: str) -> None:
        self._token = token
        self._login_code = secrets.token_urlsafe(24) if token else ""
        self._cookie = hmac.new(token.encode(), b"ragtide view cookie", hashlib.sha256).hexdigest() if token else ""

    @property
    def login_path(self) -> str:
        """Path that logs in once and then no more, so that it may be printed; empty without a token."""
        return f"{LOGIN}?code={self._login_code}" if self._token and self._login_code else ""

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what may not pass."""
        if foreign := self._foreign(request):
            return refuse(403, foreign)
        if not self._token or request.path.startswith(_PUBLIC) or self._knows_token(request):
            return await handler(request)
        if request.path.startswith("/api/"):
            return refuse(401, f"Log in first: open {LOGIN}, or send the token as `Authorization: Bearer TOKEN`.")
        raise web.HTTPSeeOther(f"{LOGIN}?next={quote(request.path_qs, safe='')}")

    async def login(self, request: web.Request) -> web.StreamResponse | None:
        """Log in by a one-time code or by the token of a form; None where neither fits."""
        if not self._token:
            raise web.HTTPSeeOther("/")
        code = request.query.get("code", "")
        form = await request.post() if request.method == "POST" else {}
        token = str(form.get("token", "")).strip()
        if code and _equal(code, self._login_code):
            self._login_code = ""
        elif not (token and _equal(token, self._token)):
            return None
        answer = web.Response(status=303, headers={hdrs.LOCATION: _own_path(request.query.get("next", ""))})
        secure = request.secure or request.headers.get("X-Forwarded-Proto") == "https"
        answer.set_cookie(
            COOKIE, self._cookie, max_age=_MONTH_S, path="/", httponly=True, samesite="Lax", secure=secure
        )
        return answer

    def _foreign(self, request: web.Request) -> str:
        """Why the request comes from another website, or an empty text."""
        if not self._token and (request.host.rpartition(":")[0] or request.host) not in _LOCAL_NAMES:
            return "The Host header must name 127.0.0.1 or localhost. Behind a proxy, set view.token."
        site = request.headers.get("Sec-Fetch-Site", "none")
        if request.method != "GET" and site not in ("same-origin", "none"):
            return "Requests from other websites are refused."
        origin = request.headers.get(hdrs.ORIGIN, "")
        if request.method != "GET" and origin and origin.partition("://")[2] != request.host:
            return "Requests from other websites are refused."
        return ""

    def _knows_token(self, request: web.Request) -> bool:
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        if scheme.lower() == "bearer" and _equal(given.strip(), self._token):
            return True
        return _equal(request.cookies.get(COOKIE, ""), self._cookie)


async def add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every answer."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")


def refuse(status: int, says: str) -> web.Response:
    """Give an error as a sentence."""
    return web.json_response({"error": says}, status=status)


def _own_path(path: str) -> str:
    """The path if it can only lead to this server, else the start page."""
    return path if path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable() else "/"


def _equal(given: str, right: str) -> bool:
    return bool(right) and hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())
