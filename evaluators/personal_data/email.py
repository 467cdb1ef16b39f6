"""E-mail addresses: local part, "@", a domain with a top level of letters."""

import re
from collections.abc import Iterator

from evaluators.personal_data.formatted import Formatted, Span

_LOCAL_LENGTH, _DOMAIN_LENGTH = 64, 253  # RFC 5321
_LOCAL_REVERSED = re.compile(r"[\w.+%'-]+")
_DOMAIN = re.compile(r"[\w.-]+")
_LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?")
_FILE_ENDINGS = frozenset({"png", "jpg", "jpeg", "gif", "svg", "webp"})  # icon@2x.png


def find(shape: Formatted) -> Iterator[Span]:
    """Addresses as people write them; no quoted local parts, no bare host names."""
    text = shape.text
    at = text.find("@")
    while at >= 0:
        local = _LOCAL_REVERSED.match(text[max(at - _LOCAL_LENGTH, 0) : at][::-1])
        name = local[0][::-1].lstrip(".+%'-") if local else ""
        if name and not name.endswith(".") and ".." not in name:
            domain = _domain(text[at + 1 : at + 1 + _DOMAIN_LENGTH])
            if domain:
                yield Span(at - len(name), at + 1 + len(domain))
        at = text.find("@", at + 1)


def _domain(text: str) -> str:
    run = _DOMAIN.match(text)
    labels = run[0].rstrip(".-_").split(".") if run else []
    while labels and not (labels[-1].isalpha() and len(labels[-1]) > 1):
        labels.pop()  # "write to a@b.org.2 days later"
    if len(labels) < 2 or labels[-1].lower() in _FILE_ENDINGS or not all(map(_LABEL.fullmatch, labels)):
        return ""
    return ".".join(labels)
