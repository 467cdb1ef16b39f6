"""A message of the demo's traffic."""

from typing import NamedTuple


class Message(NamedTuple):
    """Key and value of a record."""

    key: bytes
    value: bytes
