"""Whether an HTML page shows anything, without rendering, in linear time."""

import re

_TAG = re.compile("</?([a-z][a-z0-9]*)")
_VISIBLE_TAGS = frozenset(
    ("audio", "button", "canvas", "embed", "iframe", "img", "input", "object", "script", "select", "svg", "video")
)
_INVISIBLE_TAGS = frozenset(("style", "template", "title"))
_BLANKS = re.compile("&(?:nbsp|#160|#xa0);?")


def is_blank(html: str) -> bool:
    """Whether the page has no text and nothing visible (a picture, a control, a script).

    As in a browser, a tag, comment or style sheet without an end hides what follows.
    """
    html = html.lower()
    at = 0
    while (start := html.find("<", at)) >= 0:
        if _has_text(html[at:start]):
            return False
        tag = _TAG.match(html, start)
        if tag is None and html[start + 1 : start + 2] not in ("!", "?", "/"):
            return False  # "<" itself is text
        if tag is not None and tag[1] in _VISIBLE_TAGS:
            return False
        end = _end(html, start, tag)
        if end < 0:
            return True
        at = end
    return not _has_text(html[at:])


def _end(html: str, start: int, tag: re.Match[str] | None) -> int:
    """Return the end of the markup at `start`. Negative if it has none."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 4)
        return end + 3 if end >= 0 else end
    if tag is not None and tag[1] in _INVISIBLE_TAGS and html[start + 1] != "/":
        return html.find(f"</{tag[1]}", tag.end())
    return html.find(">", start) + 1 or -1


def _has_text(text: str) -> bool:
    return bool(_BLANKS.sub("", text).strip())
