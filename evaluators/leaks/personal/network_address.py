"""IP addresses of machines: four octets, or IPv6 groups."""

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.patterns import compile_pattern

_LONG_GROUP = 3  # digits; eight groups of two are the bytes of something else
_DIGIT = 9
_LONGEST = 45  # characters of an IPv6 address that ends in an IPv4 one
_FOUR = r"[0-9]+(?:\.[0-9]+)+"
# Every IPv6 address in use begins with four hexadecimal digits; without that rule a slice such as 1::2 is one.
_SIX = r"\b(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}\b|[0-9A-Fa-f]{4}:[0-9A-Fa-f.:]*[0-9A-Fa-f:]"
_BEFORE = 48  # characters in which the last such word tells what four numbers are
_SMALL = 25  # first numbers below are a version's or a section's more often than an address's
_VERSION_WORDS = r"[a-z]*(?:version|release|firmware|build)s?\b|\b(?:chrome|chromium|oracle|sdk|upgraded|updated)\b"
_ADDRESS_WORDS = (
    r"(?:\b|_)(?:ips?|ipv4|address|addr|host|server|dns|nameserver|resolver|ping|client|gateway|remote|src|dst|source|"
    r"destination|peer|node|proxy|router|forwarded|for|endpoint|subnet|adresse|direccion|indirizzo|endereco|ssh|"
    r"curl)(?:s|es)?"
    r"(?:\b|_)"
)
# Near these a number is an address that has a version's first octet and none of a version's others.
_TRAFFIC_WORDS = (
    r"(?i)\b(?:block|ban|deny|drop|allow|firewall|traceroute|whois|abuse|attack|scan|intrusion|probe|visitor|"
    r"connection|request|session|login|hops?)[a-z]{0,3}\b"
)
_TRAFFIC, _AFTER = 32, 24
_WORDS = rf"(?i)({_VERSION_WORDS})|{_ADDRESS_WORDS}"
# Right before: Chrome/120.0.6099.71, requests==2.31.0.6, rv:1.9.1.20, section 12.1.3.4.
_PINNED = (
    r"(?i)(?:[a-z]/|[=~^<>]= ?|[<>] |[~^\xa7]|(?:\b|_)(?:v|ver|rv|rev|revision|[a-z]*version|build|patch|driver|kernel|"
    r"edge|"
    r"package|section|chapter|clause|paragraph|rule|figure|fig|table|oid|item|article|annex|abschnitt|kapitel|punkt|"
    r"artikel|"
    r"sezione|capitolo|seccion|capitulo|punto|chapitre|sectie|hoofdstuk|rozdzial)[\"']?(?: no|"
    r" number)?[ :.#=(\"']{0,3}|\xa7 )$"
)
# A word right before such a number names what has the version or the section, unless it leads to an address.
_NAMED = r"(?i)([a-z][a-z0-9]*)[ _-]{1,2}$"
_LEADING = frozenset(
    [
        "from",
        "to",
        "at",
        "by",
        "on",
        "in",
        "via",
        "and",
        "or",
        "with",
        "is",
        "are",
        "was",
        "be",
        "as",
        "of",
        "use",
        "using",
        "used",
        "through",
        "against",
        "behind",
        "the",
        "for",
        "than",
        "not",
        "only",
        "von",
        "aus",
        "an",
        "auf",
        "ist",
        "und",
        "oder",
        "de",
        "del",
        "desde",
        "a",
        "en",
        "el",
        "la",
        "es",
        "y",
        "par",
        "est",
        "et",
        "le",
        "depuis",
        "vers",
        "da",
        "dal",
        "e",
        "su",
        "van",
        "op",
        "naar",
        "il",
    ]
)
_LED = ("ed", "ing")  # blocked, pinging


def find(shape: ByteText) -> Iterator[Span]:
    """Addresses that can name a machine of somebody's: no loopback, netmask or network.

    Four small numbers behind a word such as "version" or the name of something, or of one digit each, are a version's
    or a section's, unless a word says that they are an address.
    """
    for match in compile_pattern(_FOUR).finditer(shape.data):
        start, end = match.span()
        if end - start <= 15 and stands_alone(shape.text, start, end) and _is_host(shape, start, end):
            yield Span(start, end)
    for match in compile_pattern(_SIX).finditer(shape.data):
        start, end = match.span()
        candidate = shape.text[start:end]
        if candidate.endswith(":") and not candidate.endswith("::"):
            candidate, end = candidate[:-1], end - 1  # "2001:db8::1: timeout"
        if len(candidate) <= _LONGEST and stands_alone(shape.text, start, end, joints=":") and _is_ipv6(candidate):
            yield Span(start, end)


def _is_host(shape: ByteText, start: int, end: int) -> bool:
    try:
        octets = IPv4Address(shape.text[start:end]).packed
    except AddressValueError:
        return False
    of_network = octets[3] == 0 and shape.text[end : end + 1] == "/"
    if octets[0] in (0, 127, 255) or of_network or shape.text[end : end + 2] == "/0":
        return False
    before = shape.data[max(start - _BEFORE, 0) : start]
    if compile_pattern(_PINNED).search(before) or compile_pattern(r"^\.[A-Za-z]").search(shape.data[end : end + 2]):
        return False
    if octets[0] >= _SMALL:
        return True
    words = list(compile_pattern(_WORDS).finditer(before))
    if words:
        return words[-1][1] is None
    near = before + b" " + shape.data[end : end + _AFTER]
    if max(octets) >= _TRAFFIC and compile_pattern(_TRAFFIC_WORDS).search(near):
        return True
    named = compile_pattern(_NAMED).search(before)
    word = named[1].decode("latin-1").lower() if named else ""
    return (not word or word in _LEADING or word.endswith(_LED)) and max(octets) > _DIGIT and octets[3] != 0


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
