"""Screenshots of every dashboard of a viewer: dark, light, and 390 pixels wide.

python -m tests.dashboards.viewer.browser.screenshots FOLDER     starts a demo and waits for its first problem
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import requests
from playwright.sync_api import Browser, Page, sync_playwright

from tests.dashboards.viewer.browser.conftest import BROWSERS, FLAGS, settle

SIZES = {"dark": (1280, 900), "light": (1280, 900), "narrow": (390, 844)}
_FIRST_PROBLEM_S = 300
_GOES_ON_S = 30  # so that graphs show the fault
# Observers of what is in view are called after the next frame.
_SCROLL = """top => new Promise(done => {
    window.scrollTo(0, top);
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
})"""


def scroll_through(page: Page) -> None:
    """Bring every panel into view once, so that it asks for its data."""
    top = 0
    while top < page.evaluate("document.documentElement.scrollHeight"):  # panels grow as their rows come
        page.evaluate(_SCROLL, top)
        settle(page)
        top += 700
    page.evaluate(_SCROLL, 0)


def photograph(browser: Browser, url: str, kind: str, file: Path) -> None:
    """Write a screenshot of the whole page; `kind` is one of SIZES."""
    width, height = SIZES[kind]
    theme: Literal["dark", "light"] = "dark" if kind == "dark" else "light"
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
    page.goto(url)
    settle(page)
    scroll_through(page)
    page.screenshot(path=file, full_page=True)
    page.close()


@contextmanager
def demo(data: Path) -> Iterator[str]:
    """Run a demo until its first problem has opened; give the address of its viewer."""
    command = [sys.executable, "-m", "ragtide.stream", "demo", "--seed", "7", "--data", str(data)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1].rstrip("/")
        deadline = time.monotonic() + _FIRST_PROBLEM_S
        while not any(one["kind"] == "opened" for one in events(url)):
            if time.monotonic() > deadline or process.poll() is not None:
                raise TimeoutError(f"no problem opened within {_FIRST_PROBLEM_S} s")
            time.sleep(1)
        time.sleep(_GOES_ON_S)
        yield url
    finally:
        process.terminate()
        process.communicate()


def events(url: str) -> list[dict[str, str]]:
    """The viewer's latest events; none while it starts."""
    try:
        found: list[dict[str, str]] = requests.get(f"{url}/api/activity", timeout=10).json().get("events", [])
    except requests.ConnectionError:
        return []
    return found


def main() -> None:
    """Write a file per dashboard and kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as data, demo(Path(data)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS), headless=True)
        for board in requests.get(f"{url}/api/dashboards", timeout=60).json()["dashboards"]:
            for kind in SIZES:
                file = folder / f"{board['uid'].removeprefix('ragtide-')}-{kind}.png"
                photograph(browser, f"{url}/d/{board['uid']}?from=now-5m&to=now&refresh=", kind, file)
                sys.stdout.write(f"{file}\n")
        browser.close()


if __name__ == "__main__":
    main()
