"""Time from opening a dashboard of the demo's viewer to all of its first view, in Chromium with an empty cache.

python -m benchmarks.first_view [DASHBOARD ...]     needs extras `local` and `dev` and Chromium; takes some minutes

`page` is the address that the demo prints. `ratio` compares with a page of the same viewer that asks for no data: what
the browser and the viewer's own files take. First with the demo's workers and jobs stopped, then beside them: on few
processors they take what the page would. Exits 1 if the median
of the first page is above 1 s while they are stopped.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import requests
from playwright.sync_api import Browser, sync_playwright

from tests.dashboards.viewer.browser.conftest import BROWSERS, FLAGS, settle
from tests.dashboards.viewer.browser.screenshots import demo

LIMIT_S = 1.0
WITHOUT_DATA = "runbooks"
_STAYS_MS = 300  # nothing new is loading for so long
# Looks at every frame; a page between two waves of requests settles again later.
_WATCH = """{
    let settled = false;
    const look = (now) => {
        const busy = document.querySelector('.board[aria-busy=true], .panel.loading');
        const is = Boolean(document.querySelector('.board') && !busy);
        if (is && !settled) window.settledAt = now;
        settled = is;
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""


def seconds(browser: Browser, url: str) -> float:
    """Time from the navigation until nothing is loading any more, by the page's own clock."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.add_init_script(_WATCH)
    page.goto(url, wait_until="commit")
    settle(page)
    page.wait_for_timeout(_STAYS_MS)
    took: float = page.evaluate("window.settledAt")
    context.close()
    return took / 1000


def main() -> int:
    """Print a line per dashboard."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="DASHBOARD", help="dashboards; all, if none is named")
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as data, demo(Path(data)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS), headless=True)
        boards = requests.get(f"{url}/api/dashboards", timeout=60).json()["dashboards"]
        urls = {"page": url} | {board["uid"].removeprefix("ragtide-"): f"{url}/d/{board['uid']}" for board in boards}
        if unknown := set(given.names) - urls.keys():
            parser.error(f"no such dashboard: {', '.join(sorted(unknown))} (valid: {', '.join(urls)})")
        chosen = {name: urls[name] for name in urls if name == WITHOUT_DATA or not given.names or name in given.names}
        with stopped():
            medians = report("workers and jobs stopped", browser, chosen, given.runs)
        report("beside workers and jobs", browser, chosen, given.runs)
        browser.close()
    return 1 if medians.get("page", 0.0) > LIMIT_S else 0


@contextmanager
def stopped() -> Iterator[None]:
    """Stop the processes that evaluate and judge."""
    found = [one for one in psutil.Process().children(recursive=True) if {"worker", "jobs"} & set(one.cmdline())]
    assert len(found) > 1, "the demo has no such processes"
    for one in found:
        one.suspend()
    try:
        yield
    finally:
        for one in found:
            one.resume()


def report(how: str, browser: Browser, urls: Mapping[str, str], runs: int) -> dict[str, float]:
    """Print a line per dashboard; return the medians in seconds."""
    timings: dict[str, list[float]] = {name: [] for name in urls}
    for _ in range(runs):  # in turn, so that what else the machine does meets all of them
        for name, taken in timings.items():
            taken.append(seconds(browser, urls[name]))
    medians = {name: statistics.median(taken) for name, taken in timings.items()}
    print(f"{how:28} {'median s':>8} {'slowest s':>9} {'ratio':>6}")
    for name, median in medians.items():
        print(f"  {name:26} {median:8.2f} {max(timings[name]):9.2f} {median / medians[WITHOUT_DATA]:6.2f}")
    return medians


if __name__ == "__main__":
    sys.exit(main())
