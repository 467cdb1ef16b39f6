"""E-mail addresses: local part, "@", a domain with a top level of letters."""

import re
from collections.abc import Iterator

from ragtide.evaluators.leaks.byte_text import ByteText, Span, first_word, last_word
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_LOCAL_LENGTH, _DOMAIN_LENGTH = 64, 253  # RFC 5321
_LOCAL_REVERSED = re.compile(r"[\w.!#$&*+/=?^`{|}~%'-]+")
_DOMAIN = re.compile(r"[\w.-]+")
_LABEL = re.compile(r"[^\W_](?:[\w-]{0,61}[^\W_])?")
_VERSION = re.compile(r"[0-9]+\.[0-9]")  # react@18.2.0-beta.rc
# icon@2x.png, getty@tty1.service, and labels in code.
_ENDINGS = frozenset(
    (
        *("png", "jpg", "jpeg", "gif", "svg", "webp", "service", "socket", "timer", "mount", "target", "js", "ts"),
        *("jsx", "tsx", "css", "json", "yaml", "yml", "xml", "toml", "txt", "java"),
    )
)
_OPENING = "!#$&*+/=?^`{|}~%'-."
_REPOSITORY = frozenset({"git", "svn", "hg"})  # git@host.example: a login, nobody's mailbox
# Before "@": https://user, //user:password
_LOGIN = r"(?:https?|ssh|s?ftps?|wss?|svn|git)(?:\+[a-z]+)?://[^\s/@:]{0,64}$|://[^\s/@:]{0,64}:[^\s/@]{0,64}$"
# Written out for people, not for robots: "jane (at) posteo (punkt) de"; or in a query: "mail=jane%40posteo.de".
_AT = r"[\[({] ?(?:at|arroba|arobase|chiocciola|malpa|snabel-?a|apestaartje|@) ?[\])}]"
_SPOKEN = (  # "ann dot lee at gmail dot com"
    r"(?i)\b[a-z0-9_-]{1,32}(?: (?:dot|punkt|punto|point|"
    r"\.) [a-z0-9_-]{1,32}){0,3} at [a-z0-9-]{1,63}(?: dot [a-z0-9-]{2,24}){1,3}\b"
)
_BEFORE_SPOKEN = 32
_WRITE_TO = r"(?i)\b(?:e?-?mail|reach|write|contact|send|address|adresse|correo|posta)\b"  # "we met at amazon dot com"
_DOT = r"[\[({] ?(?:dot|punkt|punto|ponto|point|kropka|prikk?|piste|tocka|tecka|\.) ?[\])}]"
_SPELT = rf"(?i)([a-z0-9_.+-]{{1,64}})(?: ?{_AT} ?|%40)([a-z0-9-]{{1,63}})(?: ?(?:\.|{_DOT}) ?[a-z0-9-]{{2,63}}){{1,4}}"
# Whom a page means that shows how to write an address so: name (at) company (dot) com.
_NOBODY = r"(?i)(?:your?|user|the|my|first|last)?[._-]?(?:name|e?mail|user|username|address|you|me|someone|somebody)"
_NOWHERE = r"(?i)(?:your|my|the)?-?(?:domain|company|example|provider|site|website|host|server|mail|organi[sz]ation)"


def find(shape: ByteText) -> Iterator[Span]:
    """Addresses as people write them; no quoted local parts, no bare host names."""
    text = shape.text
    at = text.find("@")
    while at >= 0:
        local = _LOCAL_REVERSED.match(text[max(at - _LOCAL_LENGTH, 0) : at][::-1])
        name = _name(last_word(local[0][::-1])) if local else ""
        if name and not name.endswith(".") and ".." not in name:
            domain = _domain(text[at + 1 : at + 1 + _DOMAIN_LENGTH])
            end = at + 1 + len(domain)
            in_url = compile_pattern(_LOGIN).search(shape.data[max(at - _LOCAL_LENGTH, 0) : at])
            if domain and name not in _REPOSITORY and not in_url:
                yield Span(at - len(name), end)
        at = text.find("@", at + 1)


def _name(local: str) -> str:
    """The local part without what stands before it: a mailbox in a query, in quotes or behind a slash."""
    for joint in "=/|&?":
        local = local.rpartition(joint)[2]
    return local.lstrip(_OPENING)


def _domain(text: str) -> str:
    run = _DOMAIN.match(text)
    labels = first_word(run[0]).rstrip(".-_").split(".") if run else []
    while labels and not (labels[-1].isalpha() and len(labels[-1]) > 1) and not labels[-1].lower().startswith("xn--"):
        labels.pop()  # "write to a@b.org.2 days later"
    if len(labels) < 2 or labels[-1].lower() in _ENDINGS or not all(map(_LABEL.fullmatch, labels)):
        return ""
    domain = ".".join(labels)
    return "" if _VERSION.match(domain) else domain


def _find_spelt(shape: ByteText) -> Iterator[Span]:
    """Addresses whose "@" and points are spelt in brackets or as URLs have them, but for those of nobody."""
    for match in compile_pattern(_SPELT).finditer(shape.data):
        nobody = compile_pattern(_NOBODY).fullmatch(match[1]) and compile_pattern(_NOWHERE).fullmatch(match[2])
        if not nobody and match[2][:4].lower() != b"your":
            yield Span(*match.span())
    for match in compile_pattern(_SPOKEN).finditer(shape.data):
        before = shape.data[max(match.start() - _BEFORE_SPOKEN, 0) : match.start()]
        name = match[0].lower().partition(b" at ")[0]
        if not name.isalpha() or compile_pattern(_WRITE_TO).search(before):
            yield Span(*match.span())


_NAME = "an e-mail address"
DETECTORS: tuple[Detector, ...] = (
    Detector("email", _NAME, (r"@",), find),
    Detector("email", _NAME, (rf"(?i){_AT}|%40| at [a-z0-9-]{{1,63}} dot ",), _find_spelt),
)
