"""Post signed messages to a webhook, as the Standard Webhooks specification has it; redirects are never followed.

Headers `webhook-id`, `webhook-timestamp` (Unix seconds) and `webhook-signature`: `v1,` and the base64 of HMAC-SHA256
over `ID.TIMESTAMP.BODY`. The time in the signature lets receivers refuse a message that somebody replays later.
"""

import base64
import hashlib
import hmac
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from ragtide.sinks.http_post import HttpPoster
from ragtide.sinks.settings import WebhookEndpoint, signing_key

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"


class WebhookClient:
    """Posts to one receiver. Every call raises `Transient`, `ConfigError` or `Refused`, nothing else.

    `where` names the receiver in errors: scheme and host, since the path may hold a token. `clock` is Unix time. Not
    for use by several threads at once, nor from an event loop.
    """

    def __init__(self, endpoint: WebhookEndpoint, setting: str, clock: Callable[[], float] = time.time) -> None:
        self._endpoint = endpoint
        self._clock = clock
        credentials = f"{setting}.secret, .headers and .url"
        self._poster = HttpPoster(endpoint.url, endpoint.ca_file, endpoint.timeout_s, setting, credentials, clock)
        self.where = self._poster.where

    def connected(self) -> AbstractContextManager[None]:
        """Keep connections open for several messages."""
        return self._poster.connected()

    def post(self, message_id: str, body: bytes) -> int:
        """Post a message and return the status of the answer, one of 2xx."""
        return self._poster.post(body, self._headers(message_id, body)).status

    def _headers(self, message_id: str, body: bytes) -> dict[str, str]:
        endpoint, now = self._endpoint, int(self._clock())
        own = {name: value.get_secret_value() for name, value in endpoint.headers.items()}
        own |= {"Content-Type": CONTENT_TYPE, "User-Agent": "ragtide", "webhook-id": message_id}
        own["webhook-timestamp"] = str(now)
        secrets = (endpoint.secret.get_secret_value(), endpoint.previous_secret.get_secret_value())
        if signed := signature(filter(None, secrets), message_id, now, body):
            own["webhook-signature"] = signed
        return own


def signature(secrets: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of header `webhook-signature`: one signature for each secret, separated by spaces."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.new(signing_key(secret), signed, hashlib.sha256).digest() for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)
