"""An OAuth 2 token endpoint for tests: over real HTTPS, with tokens that a broker checks by its keys."""

import json
import ssl
import threading
import time
from base64 import b64decode, urlsafe_b64encode
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

ISSUER = "https://issuer.ragtide.test"
AUDIENCE = "kafka"
CLIENT = "ragtide-client"
SECRET = "secret-of-the-client"


@dataclass(frozen=True)
class Asked:
    """One request: who asked (ID and secret as sent) and the form."""

    path: str
    basic: str
    form: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """What is answered in place of a token."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


class TokenServer:
    """Use as a context. `answer` goes before tokens; the brokers' clock is this machine's."""

    def __init__(self, certificate: Path | None = None) -> None:
        self.asked: list[Asked] = []
        self.life_s = 3600
        self.age_s = 0
        self.answer: Answer | None = None
        self._key = generate_private_key(65537, 2048)
        handler = type("Handler", (_Handler,), {"tokens": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._http.daemon_threads = True
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        return f"{self._scheme}://localhost:{self._http.server_port}/oauth2/token"

    def jwks(self) -> str:
        """The public key, as brokers read it."""
        numbers = self._key.public_key().public_numbers()
        modulus, exponent = (n.to_bytes((n.bit_length() + 7) // 8) for n in (numbers.n, numbers.e))
        key = {"kty": "RSA", "kid": "tests", "alg": "RS256", "use": "sig", "n": _url64(modulus), "e": _url64(exponent)}
        return json.dumps({"keys": [key]})

    def granted(self, asked: Asked) -> Answer:
        if self.answer is not None:
            return self.answer
        if asked.basic != f"{CLIENT}:{SECRET}":
            return Answer(401, b'{"error": "invalid_client", "error_description": "who is %s?"}' % asked.basic.encode())
        began = time.time() - self.age_s
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": CLIENT,
            "iat": int(began),
            "exp": int(began + self.life_s),
            "jti": str(len(self.asked)),
        }
        granted = {"access_token": _signed(claims, self._key), "token_type": "Bearer", "expires_in": self.life_s}
        return Answer(200, json.dumps(granted).encode())

    def __enter__(self) -> "TokenServer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    tokens: TokenServer

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        basic = b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        asked = Asked(self.path, basic, dict(parse_qsl(form)))
        self.tokens.asked.append(asked)
        answer = self.tokens.granted(asked)
        self.send_response(answer.status)
        for name, value in (*answer.headers, ("Content-Length", str(len(answer.body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: standard error is the test's."""


def _signed(claims: dict[str, object], key: RSAPrivateKey) -> str:
    """A JSON Web Token (RFC 7519) by RS256."""
    head = {"alg": "RS256", "kid": "tests", "typ": "JWT"}
    text = ".".join(_url64(json.dumps(part).encode()) for part in (head, claims))
    return f"{text}.{_url64(key.sign(text.encode(), PKCS1v15(), SHA256()))}"


def _url64(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
