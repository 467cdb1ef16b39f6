"""A webhook's answers over real HTTP and TLS: continue, retry, or change something; and no secret in any message."""

import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import trustme
from pydantic import SecretStr, ValidationError

from ragtide.evaluators.errors import ConfigError, RagtideError, Refused, Transient
from ragtide.sinks.http_post import Busy
from ragtide.sinks.settings import WebhookEndpoint
from ragtide.sinks.webhook import WebhookClient, signature
from tests.infra.webhook_receiver import SECRET, Answer, Receiver, receiving, verified

NOW = 1_614_265_330


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def client(url: str, **settings: Any) -> WebhookClient:
    endpoint = WebhookEndpoint(url=SecretStr(url), secret=SecretStr(SECRET), **settings)
    return WebhookClient(endpoint, "webhooks.pager", clock=lambda: NOW)


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks specification, computed by its reference libraries."""
    body = b'{"test": 2432232314}'
    assert signature([SECRET], "msg_p5jXN8AQM9LWM0D4loKWxJek", NOW, body) == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )
    assert signature([], "msg", NOW, body) == ""


def test_a_text_is_a_key_too_and_two_keys_give_two_signatures() -> None:
    """HMAC-SHA256 of "key-of-16-bytes!" over "1.2.{}" by openssl dgst -sha256 -hmac."""
    one = "v1,Y9LqD0M30KvDs0bcQBZOijwYghIuGSA7oY7RpamlJ9Q="
    assert signature(["key-of-16-bytes!"], "1", 2, b"{}") == one
    both = signature(["key-of-16-bytes!", SECRET], "1", 2, b"{}").split()
    assert (len(both), both[0]) == (2, one)


@pytest.mark.parametrize("status", [200, 202, 204])
def test_any_2xx_is_sent_and_signed(receiver: Receiver, status: int) -> None:
    receiver.script.append(Answer(status))
    assert client(receiver.url, headers={"Authorization": SecretStr("Bearer b")}).post("m1", b"{}") == status
    (call,) = receiver.calls
    assert call.headers["webhook-id"] == "m1"
    assert call.headers["webhook-timestamp"] == str(NOW)
    assert call.headers["Content-Type"] == "application/cloudevents+json; charset=utf-8"
    assert call.headers["Authorization"] == "Bearer b"
    assert verified(call)
    forged = type(call)(call.body + b" ", call.headers)
    assert not verified(forged)


def test_without_a_secret_nothing_is_signed(receiver: Receiver) -> None:
    WebhookClient(WebhookEndpoint(url=SecretStr(receiver.url)), "webhooks.pager").post("m1", b"{}")
    assert "webhook-signature" not in receiver.calls[0].headers


@pytest.mark.parametrize("status", [400, 404, 405, 410, 413, 422])
def test_what_is_refused_says_why(receiver: Receiver, status: int) -> None:
    receiver.script.append(Answer(status, b'{"error": "no such field"}'))
    with pytest.raises(Refused, match=f'answered {status}: {{"error": "no such field"}}'):
        client(receiver.url).post("m1", b"{}")


@pytest.mark.parametrize(
    ("answer", "is_away", "retry_after_s", "says"),
    [
        (Answer(429, headers={"Retry-After": "120"}), True, 120, "429"),
        (Answer(429, headers={"Retry-After": "Thu, 25 Feb 2021 15:03:10 GMT"}), True, 60, "429"),
        (Answer(429, headers={"Retry-After": "soon"}), True, 0, "429"),
        (Answer(503, headers={"Retry-After": "999999999999"}), True, 3600, "503"),
        (
            Answer(500, b"<html><style>p {}</style><h1>Oops</h1>\n<p>trace\x1b[1m</html>"),
            False, 0, "answered 500: Oops trace [1m",
        ),
        (Answer(408), False, 0, "408"),
        (Answer(None), True, 0, "ServerDisconnectedError"),
    ],
)  # fmt: skip
def test_what_may_go_later_is_transient(
    receiver: Receiver, answer: Answer, is_away: bool, retry_after_s: float, says: str
) -> None:
    receiver.script.append(answer)
    with pytest.raises(Busy) as raised:
        client(receiver.url).post("m1", b"{}")
    assert (raised.value.is_away, raised.value.retry_after_s) == (is_away, retry_after_s)
    assert says in str(raised.value)


def test_a_hang_ends_at_the_timeout(receiver: Receiver) -> None:
    released = threading.Event()
    receiver.script.append(Answer(200, hang=released))
    with pytest.raises(Busy, match=r"did not answer within 0\.2 s"):
        client(receiver.url, timeout_s=0.2).post("m1", b"{}")
    released.set()


def test_nobody_listens() -> None:
    with pytest.raises(Busy, match=r"http://127\.0\.0\.1:1 cannot be reached"):
        client("http://127.0.0.1:1/x").post("m1", b"{}")


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_host_is_not_followed(receiver: Receiver, status: int) -> None:
    with receiving() as other:
        receiver.script.append(Answer(status, headers={"Location": other.url}))
        with pytest.raises(ConfigError, match=r"redirects to http://127\.0\.0\.1:\d+, which is not followed"):
            client(receiver.url).post("m1", b"{}")
        assert other.calls == []


@pytest.mark.parametrize("status", [401, 403])
def test_wrong_credentials_name_the_settings(receiver: Receiver, status: int) -> None:
    receiver.script.append(Answer(status))
    with pytest.raises(ConfigError, match=r"webhooks\.pager\.secret"):
        client(receiver.url).post("m1", b"{}")


def test_a_certificate_must_be_trusted_and_of_that_host(tmp_path: Any) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(ca_file := str(tmp_path / "ca.pem"))
    for issuer, host, is_right in ((ours, "127.0.0.1", True), (theirs, "127.0.0.1", False), (ours, "a.example", False)):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        issuer.issue_cert(host).configure_cert(context)
        with receiving(context) as receiver:
            post = client(receiver.url, ca_file=ca_file, timeout_s=5).post
            if is_right:
                assert post("m1", b"{}") == 200
                continue
            with pytest.raises(ConfigError, match=r"no trusted TLS connection .*webhooks\.pager\.ca_file"):
                post("m1", b"{}")
            assert receiver.calls == []


def test_a_ca_file_that_is_none_says_so(tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=r"webhooks\.pager\.ca_file = .* cannot be used"):
        client("https://127.0.0.1:1/", ca_file=str(tmp_path / "none.pem")).post("m1", b"{}")


def test_no_error_holds_the_path_or_a_secret(receiver: Receiver) -> None:
    answers = [Answer(400), Answer(500), Answer(None), Answer(302, headers={"Location": "/x"}), Answer(401)]
    receiver.script.extend(answers)
    for _ in answers:
        with pytest.raises(RagtideError) as raised:
            client(receiver.url, headers={"X-Key": SecretStr("hidden")}).post("m1", b"{}")
        said = f"{raised.value}{raised.value.__cause__}"
        assert "top-secret-path" not in said
        assert "whsec_" not in said
        assert "hidden" not in said
    with pytest.raises(Transient):
        client("http://127.0.0.1:1/top-secret-path").post("m1", b"{}")


def test_one_connection_serves_several_messages(receiver: Receiver) -> None:
    hook = client(receiver.url)
    with hook.connected():
        assert [hook.post(f"m{number}", b"{}") for number in range(3)] == [200] * 3
    assert [call.headers["webhook-id"] for call in receiver.calls] == ["m0", "m1", "m2"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "ftp://a.example/"},
        {"url": "https://kim:hunter2@a.example/"},
        {"url": "https://a.example/\n"},
        {"url": "https://a.example/", "secret": "short"},
        {"url": "https://a.example/", "secret": "whsec_!!"},
        {"url": "https://a.example/", "headers": {"webhook-id": "1"}},
        {"url": "https://a.example/", "headers": {"X y": "1"}},
        {"url": "https://a.example/", "headers": {"X": "1\r\nY: 2"}},
        {"url": "https://a.example/", "timeout_s": 1000},
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as raised:
        WebhookEndpoint.model_validate(wrong)
    messages = " ".join(one["msg"] for one in raised.value.errors())
    assert "hunter2" not in messages
