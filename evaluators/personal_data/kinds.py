"""The kinds of personal data, and which of them a text can hold at all: one pass over it for all kinds."""

from functools import lru_cache
from typing import Any, Literal

from evaluators.personal_data.formatted import Formatted

Kind = Literal["iban", "card", "ssn", "ip", "email", "phone"]
KINDS: tuple[Kind, ...] = ("iban", "card", "ssn", "ip", "email", "phone")  # the surest first: it takes the digits
NAMES: dict[Kind, str] = {
    "iban": "an IBAN",
    "card": "a payment card number",
    "ssn": "a social security number",
    "ip": "an IP address",
    "email": "an e-mail address",
    "phone": "a telephone number",
}

# What every text with that kind matches, as short as it can be; the finders do the rest.
_GATES: tuple[tuple[Kind, str], ...] = (
    ("iban", r"[A-Z][A-Z][0-9][0-9] ?[A-Z0-9]"),
    ("card", r"[0-9]{4}[ -]?[0-9]{4}"),
    ("card", r"[0-9]{4}[ -][0-9]{6}"),
    ("ssn", r"[0-9]{3}[ -][0-9]{2}[ -][0-9]"),
    ("ip", r"[0-9]\.[0-9]{1,3}\.[0-9]"),
    ("ip", r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{0,4}:"),
    ("email", r"@"),
    ("phone", r"[0-9][0-9().+/ -]{5,}[0-9]"),
)
_CANARY = b"GB82 W 4111 1111 3782 822463 123-45-6 1.2.3 2001:db8: a@b 555 0123"
# re2 answers None both for "nothing" and for "out of memory": with this much it flushes its cache and goes on.
_MEMORY = 64 << 20


@lru_cache(maxsize=1)
def _gate() -> Any:
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY
    options.log_errors = False
    gate = re2.Set.SearchSet(options)
    for _, pattern in _GATES:
        gate.Add(pattern)
    gate.Compile()
    if len(gate.Match(_CANARY) or ()) != len(_GATES):
        raise RuntimeError("re2.Set misses patterns that match; personal data would go unseen")
    return gate


def possible_kinds(shape: Formatted) -> tuple[Kind, ...]:
    """The kinds that the text may hold, in the order of `KINDS`; those left out it does not hold."""
    matched = {_GATES[index][0] for index in _gate().Match(shape.data) or ()}
    return tuple(kind for kind in KINDS if kind in matched)
