"""Headless Chromium, and pages that note what went wrong in them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from ragtide.sinks.clickhouse.embedded import EmbeddedClickHouse
from tests.dashboards.shown_application import Shown, showing
from tests.dashboards.viewer.gallery import gallery
from tests.dashboards.viewer.serving import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
Open = Callable[..., "Page"]


@pytest.fixture(scope="module")  # while it is there, an event loop runs in this thread: no other test may see it
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=30_000)
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    assert found, "Chromium is missing: run `make chromium`"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=list(FLAGS), headless=True)
        yield launched
        launched.close()


@contextmanager
def watched(browser: Browser, served: Served, **options: Any) -> Iterator[Page]:
    """A page of this viewer. At the end it had no error, and asked no other host."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark", **options})
    page = context.new_page()
    page.set_default_timeout(30_000)
    wrong: list[str] = []

    def hear(said: ConsoleMessage) -> None:
        if said.type != "info":
            wrong.append(f"{said.type}: {said.text}")

    def see(request: Request) -> None:
        if not request.url.startswith((f"{served.url}/", "data:", "blob:")):
            wrong.append(f"request: {request.url}")

    page.on("console", hear)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("request", see)
    yield page
    assert wrong == []
    context.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens a path of a viewer, settled."""
    from contextlib import ExitStack

    with ExitStack() as pages:

        def open_(served: Served, path: str, **options: Any) -> Page:
            page = pages.enter_context(watched(browser, served, **options))
            page.goto(f"{served.url}{path}")
            settle(page)
            return page

        yield open_


def settle(page: Page) -> None:
    """Wait until the dashboard is there and every answer that was asked for."""
    page.wait_for_selector(".board[aria-busy=false]")
    page.wait_for_function("() => !document.querySelector('.board[aria-busy=true], .panel.loading')")


@pytest.fixture(scope="module")
def shown(clickhouse_server: EmbeddedClickHouse) -> Iterator[Shown]:
    with showing(clickhouse_server) as shared:
        yield shared


@pytest.fixture(scope="module")
def viewer(shown: Shown) -> Iterator[Served]:
    """The dashboards of the product."""
    with serving(shown.database) as served:
        yield served


@pytest.fixture(scope="module")
def generated(shown: Shown) -> Iterator[Served]:
    """The dashboard with every panel type."""
    with serving(shown.database, documents={"gallery": gallery()}) as served:
        yield served
