"""Formatted personal data in a text: its kind and position, never its value. Linear in the text's length."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from evaluators.personal_data import bank_account, card, email, network_address, social_security, telephone
from evaluators.personal_data.allowed import Allowed
from evaluators.personal_data.formatted import Formatted, Span, formatted
from evaluators.personal_data.kinds import KINDS, NAMES, Kind, possible_kinds

__all__ = ["ENOUGH", "KINDS", "NAMES", "Allowed", "Hit", "Kind", "Scan", "scan"]

ENOUGH = 20  # places of one kind in one text; more say nothing new

_FINDERS: dict[Kind, Callable[[Formatted], Iterator[Span]]] = {
    "iban": bank_account.find,
    "card": card.find,
    "ssn": social_security.find,
    "ip": network_address.find,
    "email": email.find,
}


@dataclass(frozen=True, slots=True)
class Hit:
    """Personal data of one kind at `start` to `end` (character offsets)."""

    kind: Kind
    start: int
    end: int


class Scan(NamedTuple):
    """What a text holds, by position; `complete` is false where too much in it looks like a telephone number."""

    hits: tuple[Hit, ...]
    complete: bool

    @property
    def leaks(self) -> bool | None:
        """Whether there is personal data in the text; None where nothing was found and not everything looked at."""
        return True if self.hits else False if self.complete else None


def scan(text: str, kinds: Collection[Kind] = KINDS, region: str = "US", allowed: Allowed | None = None) -> Scan:
    """Every place of the `kinds` asked for (the first 20 of each), without those allowed.

    `region` is the country whose telephone numbers are known without a leading "+".
    """
    shape = formatted(text)
    finders = _FINDERS | {"phone": partial(telephone.find, region=region)}
    taken = bytearray(len(text))  # a card's digits are not also a telephone number
    hits: list[Hit] = []
    complete = True
    for kind in possible_kinds(shape):
        if kind not in kinds:
            continue
        found = 0
        try:
            for start, end in finders[kind](shape):
                if 1 in taken[start:end]:
                    continue
                taken[start:end] = b"\x01" * (end - start)
                if allowed is not None and allowed.holds(kind, text[start:end]):
                    continue
                hits.append(Hit(kind, start, end))
                found += 1
                if found == ENOUGH:
                    break
        except telephone.TooMany:
            complete = False
    return Scan(tuple(sorted(hits, key=lambda hit: hit.start)), complete)
