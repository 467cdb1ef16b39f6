"""IP addresses of machines: four octets, or IPv6 groups."""

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from ragtide.evaluators.leaks.byte_text import ByteText, Span, stands_alone
from ragtide.evaluators.leaks.detector import Detector
from ragtide.evaluators.leaks.folding import VERSION
from ragtide.evaluators.leaks.patterns import compile_pattern

_LONG_GROUP = 3  # digits; eight groups of two are the bytes of something else
_DIGIT = 9
_LONGEST = 45  # characters of an IPv6 address that ends in an IPv4 one
_FOUR = r"[0-9]+(?:\.[0-9]+)+"
# Every IPv6 address in use begins with four hexadecimal digits; without that rule a slice such as 1::2 is one.
_SIX = r"\b(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}\b|[0-9A-Fa-f]{4}:[0-9A-Fa-f.:]*[0-9A-Fa-f:]"
_BEFORE = 48  # characters in which the last such word tells what four numbers are
_SMALL = 25  # first numbers below are a version's or a section's more often than an address's
# In the languages of the labels, as spelt without accents, and the mark of other scripts.
_VERSION = r"(?:[a-z]*version|\b(?:vers|verz|wersj)[a-z]{0,7}|\bverze|\bsurum|\bekdosh|\bphien ban)"
_VERSION_WORDS = (
    rf"{_VERSION}s?\b|{VERSION}|[a-z]*(?:release|firmware|build)s?\b|"
    r"\b(?:chrome|chromium|oracle|sdk|upgraded|updated|ausgabe|vydani|izdanie|prosivk[a-z]{1,2}|"
    r"(?:aktualis|aktualiz|zaktualiz|actualiz|atualiz|aggiorn|uppdater|oppdater|opdater|paivit|frissit|guncel|obnovl|"
    r"onovl)[a-z]{1,8}|bijgewerkt|mise? a jour)\b"
)
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
    rf"(?i)(?:[a-z]/|[=~^<>]= ?|[<>] |[~^\xa7]|(?:{_VERSION}|{VERSION}|(?:\b|_)(?:v|ver|rv|rev|revision|build|patch|"
    r"driver|kernel|edge|"
    r"package|section|chapter|clause|paragraph|rule|figure|fig|table|oid|item|article|annex|abschnitt|kapitel|punkt|"
    r"artikel|"
    r"sezione|capitolo|seccion|capitulo|punto|chapitre|sectie|hoofdstuk|rozdzial))[\"']?(?: no|"
    r" number)?[ :.#=(\"']{0,3}|\xa7 )$"
)
# 10.x is the private network of homes and offices, too: an address behind somebody's thing, a device or a verb.
_HOME = 10
_OWNED = (
    r"(?i:\b(?:my|your|his|her|our|their|the|this|that|an?|[dms]eine?|ihre?|unsere?|der|die|das|mi|tu|su|el|la|un|una|"
    r"mon|ma|votre|notre|le|une|mio|mia|il|meu|minha|o|mijn|onze|de|het|mitt?n?|moja?|muj)|'s) [a-z]{2,16}[ :]{1,2}$"
)
_EVERYDAY = (
    r"(?i)\b(?:printer|scanner|laptop|notebook|desktop|(?:work)?station|computer|komputer|pc|mac(?:book)?|machine|maschine|"
    r"device|phone|telefon|telefono|telephone|iphone|ipad|handy|tablet|camera|kamera|tv|nas|box|thermostat|raspberry|"
    r"modem|switch|rechner|drucker|gerat|ordinateur|portable|imprimante|ordenador|portatil|impresora|stampante|"
    r"impressora|computador|drukarka|tiskarna|skrivare|printeren|tulostin|kone|nyomtato|yazici|bilgisayar|"
    r"kompjuter|noutbuk|open|visit|type|enter|try|check|reach|browse|connect|login|use|call)[ :=]{1,3}$"
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
    if octets[0] == _HOME and _is_at_home(before, shape.data[end : end + _AFTER]):
        return octets[3] != 0
    named = compile_pattern(_NAMED).search(before)
    word = named[1].decode("latin-1").lower() if named else ""
    return (not word or word in _LEADING or word.endswith(_LED)) and max(octets) > _DIGIT and octets[3] != 0


def _is_at_home(before: bytes, after: bytes) -> bool:
    """Whether the words before lead to a machine, and none behind says that it was a version."""
    near = compile_pattern(_OWNED).search(before) or compile_pattern(_EVERYDAY).search(before)
    return near is not None and compile_pattern(rf"(?i){_VERSION_WORDS}").search(after) is None


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
