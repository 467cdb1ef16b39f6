"""The dashboard of runbooks: a panel per kind of problem, which alerts link to."""

import re
from collections.abc import Iterator
from importlib import resources

from ragtide.dashboards.layout import frame
from ragtide.dashboards.runbook_links import RUNBOOKS, fill, runbook_path
from ragtide.dashboards.sdk import dashboard, text, text_options
from ragtide.dashboards.settings import DEFAULT_PREFIX

NAME = RUNBOOKS
_INDEX = "README"
_LINK = re.compile(r"\((\w+)\.md\)")
_WIDTH, _HEIGHT = 12, 15


def runbooks() -> dashboard.Dashboard:
    """Build the dashboard: the index, then the pages in its order."""
    says = "What each kind of problem means, where to look first, likely causes, how to stop it and how to tune it."
    view = frame(NAME, "Runbooks", says).refresh("")
    for panel in _panels():
        view = view.with_panel(panel)
    return view.build()


def _pages() -> dict[str, str]:
    """Return each page's Markdown by its name: the index first, then the pages in the order of its links."""
    folder = resources.files("ragtide") / "runbooks"
    index = (folder / f"{_INDEX}.md").read_text(encoding="utf-8")
    names = dict.fromkeys(_LINK.findall(index))
    return {_INDEX: index} | {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in names}


def _panels() -> Iterator[text.Panel]:
    for name, markdown in _pages().items():
        linked = _LINK.sub(lambda found: f"({fill(runbook_path(DEFAULT_PREFIX), found[1])})", markdown)
        yield (
            text.Panel()
            .title("All runbooks" if name == _INDEX else name)
            .mode(text_options.TextMode.MARKDOWN)
            .content(linked)
            .span(_WIDTH)
            .height(_HEIGHT)
        )
