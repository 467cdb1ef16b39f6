"""IP addresses of machines: four octets, or IPv6 groups."""

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from evaluators.leaks.detector import Detector
from evaluators.leaks.formatted import Formatted, Span, stands_alone
from evaluators.leaks.patterns import compiled

_LONG_GROUP = 3  # digits; eight groups of two are the bytes of something else
_LONGEST = 45  # characters of an IPv6 address that ends in an IPv4 one
_FOUR = r"[0-9]+(?:\.[0-9]+)+"
# Every IPv6 address in use begins with four hexadecimal digits; without that rule a slice such as 1::2 is one.
_SIX = r"\b(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}\b|[0-9A-Fa-f]{4}:[0-9A-Fa-f.:]*[0-9A-Fa-f:]"
_BEFORE = 48  # characters in which the last such word tells what four numbers are
_VERSION_WORDS = (
    r"\b(?:versions?|releases?|firmware|chrome|chromium|oracle|sdk|upgrad(?:e|es|ed|ing)|updat(?:e|es|ed|ing))\b"
)
_ADDRESS_WORDS = r"\b(?:ip|ipv4|address|addr|host|server|dns|nameserver|resolver|ping|client|gateway)(?:s|es)?\b"
_WORDS = rf"(?i)({_VERSION_WORDS})|{_ADDRESS_WORDS}"
# Right before: Chrome/120.0.6099.71, requests==2.31.0.6, rv:1.9.1.20, section 12.1.3.4.
_PINNED = (
    r"(?i)(?:[a-z]/|[=~^<>]=|[~^]|\b(?:v|ver|rv|rev|revision|build|patch|driver|kernel|edge|package|section|chapter|clause|"
    r"paragraph|rule|figure|fig|table|oid|item)(?: no| number)?[ :.#]{0,2})$"
)


def find(shape: Formatted) -> Iterator[Span]:
    """Addresses that can name a machine of somebody's: no loopback, netmask or network.

    Four octets of one digit each, or behind a word such as "version", are a version's or a section's number, unless a
    word says that they are an address.
    """
    for match in compiled(_FOUR).finditer(shape.data):
        start, end = match.span()
        if end - start <= 15 and stands_alone(shape.text, start, end) and _is_host(shape, start, end):
            yield Span(start, end)
    for match in compiled(_SIX).finditer(shape.data):
        start, end = match.span()
        candidate = shape.text[start:end]
        if candidate.endswith(":") and not candidate.endswith("::"):
            candidate, end = candidate[:-1], end - 1  # "2001:db8::1: timeout"
        if len(candidate) <= _LONGEST and stands_alone(shape.text, start, end, joints=":") and _is_ipv6(candidate):
            yield Span(start, end)


def _is_host(shape: Formatted, start: int, end: int) -> bool:
    try:
        octets = IPv4Address(shape.text[start:end]).packed
    except AddressValueError:
        return False
    if octets[0] in (0, 127, 255) or shape.text[end : end + 2] == "/0":
        return False
    before = shape.data[max(start - _BEFORE, 0) : start]
    if compiled(_PINNED).search(before):
        return False
    are_versions = [match[1] is not None for match in compiled(_WORDS).finditer(before)]
    return not are_versions[-1] if are_versions else max(octets) > 9 and octets[3] != 0


def _is_ipv6(text: str) -> bool:
    if text.endswith("::") or max(map(len, text.split(":"))) < _LONG_GROUP:
        return False
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True


DETECTORS: tuple[Detector, ...] = (
    Detector(
        "ip",
        "an IP address",
        (r"[0-9]\.[0-9]{1,3}\.[0-9]", r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{0,4}:", r"(?:[0-9A-Fa-f]{1,4}:){7}"),
        find,
    ),
)
