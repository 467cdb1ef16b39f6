"""IP addresses of machines: four octets, or IPv6 groups."""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any

from evaluators.personal_data.formatted import Formatted, Span, stands_alone

_LONGEST = 45  # characters of an IPv6 address that ends in an IPv4 one


@lru_cache(maxsize=1)
def _patterns() -> tuple[Any, Any]:
    import re2

    # Every IPv6 address in use begins with four hexadecimal digits; without that rule a slice such as 1::2 is one.
    return re2.compile(rb"[0-9]+(?:\.[0-9]+)+"), re2.compile(rb"[0-9A-Fa-f]{4}:[0-9A-Fa-f.:]*[0-9A-Fa-f:]")


def find(shape: Formatted) -> Iterator[Span]:
    """Addresses that can name a machine of somebody's: no loopback, netmask or network.

    Four octets of one digit each are a section's or a version's number, not somebody's address.
    """
    four, six = _patterns()
    for match in four.finditer(shape.data):
        start, end = match.span()
        if end - start <= 15 and stands_alone(shape.text, start, end) and _is_host(shape.text[start:end]):
            yield Span(start, end)
    for match in six.finditer(shape.data):
        start, end = match.span()
        candidate = shape.text[start:end]
        if candidate.endswith(":") and not candidate.endswith("::"):
            candidate, end = candidate[:-1], end - 1  # "2001:db8::1: timeout"
        if len(candidate) <= _LONGEST and stands_alone(shape.text, start, end, joints=":") and _is_ipv6(candidate):
            yield Span(start, end)


def _is_host(text: str) -> bool:
    try:
        address = IPv4Address(text)
    except AddressValueError:
        return False
    octets = address.packed
    return octets[0] not in (0, 127, 255) and octets[3] != 0 and max(octets) > 9


def _is_ipv6(text: str) -> bool:
    if text.endswith("::"):
        return False
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
