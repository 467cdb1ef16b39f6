"""Who may use the viewer: no other website, and with a token nobody without it."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from pydantic import SecretStr

from ragtide.dashboards.settings import ViewSettings, split_address
from ragtide.dashboards.viewer.access import is_loopback
from ragtide.dashboards.viewer.server import ViewerServer
from ragtide.evaluators.errors import ConfigError
from ragtide.sinks.clickhouse.database import Database
from ragtide.sinks.settings import ClickHouseSettings
from tests.dashboards.viewer.serving import Served, serving

TOKEN = "a-token-of-the-tests-0123456789"
NOWHERE = Database(ClickHouseSettings(url="http://127.0.0.1:9", timeout_s=1))  # nothing here reads it
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def opened() -> Iterator[Served]:
    with serving(NOWHERE) as served:
        yield served


@pytest.fixture
def locked() -> Iterator[Served]:
    with serving(NOWHERE, token=TOKEN) as served:
        yield served


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "localhost@evil"])
def test_a_website_under_a_name_of_its_own_reaches_nothing(opened: Served, host: str) -> None:
    answer = opened.get("/api/dashboards", headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "dashboards" not in answer.json() if answer.status_code == 403 else True


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "localhost:8080", "[::1]:8080"])
def test_names_of_this_machine_are_accepted(opened: Served, host: str) -> None:
    assert opened.get("/api/dashboards", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("header", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_request_from_another_website_is_refused(opened: Served, header: dict[str, str]) -> None:
    assert opened.post("/api/query", {}, headers=header).status_code == 403
    assert opened.post("/api/query", {}, headers={"Origin": opened.url}).status_code == 400


@pytest.mark.parametrize("path", ["/d/ragtide-application", "/api/dashboards", "/login", "/explore", "/static/x/y.js"])
def test_every_answer_has_the_headers_that_protect_it(locked: Served, path: str) -> None:
    headers = locked.get(path, headers=BEARER, allow_redirects=False).headers
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'self';")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers


def test_without_the_token_nothing_is_told(locked: Served) -> None:
    for wrong in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": f"ragtide_view={TOKEN}"}):
        for path in ("/api/dashboards", "/api/dashboards/ragtide-application", "/api/activity"):
            answer = locked.get(path, headers=wrong)
            assert answer.status_code == 401
            assert "Log in" in answer.json()["error"]
        assert locked.post("/api/query", {}, headers=wrong).status_code == 401
    wanted = "/d/ragtide-application?from=now-1h&to=now&var-app=a%26b"
    page = locked.get(wanted, allow_redirects=False)
    assert page.status_code == 303
    assert parse_qs(urlsplit(page.headers["Location"]).query) == {"next": [wanted]}
    assert locked.get("/login").status_code == 200
    assert locked.get("/api/dashboards", headers=BEARER).status_code == 200


def test_the_token_of_the_form_opens_the_page_that_was_asked_for(locked: Served) -> None:
    session = requests.Session()
    wrong = session.post(f"{locked.url}/login", data={"token": "wrong"}, timeout=60)
    assert wrong.status_code == 401
    assert not session.cookies
    right = session.post(
        f"{locked.url}/login?next=%2Fd%2Fa%3Fb%3D1", data={"token": TOKEN}, timeout=60, allow_redirects=False
    )
    assert right.headers["Location"] == "/d/a?b=1"
    assert {"HttpOnly", "SameSite=Lax"} <= {part.strip() for part in right.headers["Set-Cookie"].split(";")}
    assert TOKEN not in right.headers["Set-Cookie"]
    assert session.get(f"{locked.url}/api/dashboards", timeout=60).status_code == 200


@pytest.mark.parametrize("next_", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", ""])
def test_no_login_leads_to_another_website(locked: Served, next_: str) -> None:
    answer = requests.post(
        f"{locked.url}/login", params={"next": next_}, data={"token": TOKEN}, timeout=60, allow_redirects=False
    )
    assert answer.headers["Location"] == "/"


def test_the_printed_link_logs_in_once(locked: Served) -> None:
    assert TOKEN not in locked.first_url
    first = requests.get(locked.first_url, timeout=60, allow_redirects=False)
    assert first.headers["Location"] == "/"
    assert first.cookies
    second = requests.get(locked.first_url, timeout=60, allow_redirects=False)
    assert second.status_code == 200
    assert not second.cookies


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "host.example:80"])
def test_other_addresses_need_a_token(listen: str) -> None:
    with pytest.raises(ConfigError, match=r"set view\.token"):
        ViewerServer(dict, lambda: NOWHERE, ViewSettings(listen=listen), "")
    ViewerServer(dict, lambda: NOWHERE, ViewSettings(listen=listen), TOKEN)


def test_a_port_in_use_says_what_to_do(opened: Served) -> None:
    listen = opened.url.removeprefix("http://")
    with pytest.raises(ConfigError, match="choose another port"), serving(NOWHERE, listen=listen, documents={}):
        pass


@pytest.mark.parametrize("listen", ["", "8080", ":8080", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:80"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(ValueError, match="port"):
        ViewSettings(listen=listen)


def test_addresses_are_read() -> None:
    assert split_address("[::1]:8080") == ("::1", 8080)
    assert [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")] == [
        *(True, True, True),
        *(False, False),
    ]


def test_a_short_token_is_refused() -> None:
    with pytest.raises(ValueError, match="openssl rand"):
        ViewSettings(token=SecretStr("short"))
