"""Header names in a dead letter: aiokafka sends UTF-8 only, and no byte of a name may be lost.

A name that is not UTF-8 is sent with escapes (`\\xff`). The header `dlq.header_names` has its bytes as hex, by place.
"""

from collections.abc import Iterable

import msgspec

from ragtide.stream.ingest.records import Header, Headers, is_utf8

NAMES = "dlq.header_names"


def header_bytes(name: str) -> bytes:
    """The bytes of a header name as sent."""
    return name.encode("utf-8", "surrogateescape")


def escape_names(headers: Headers) -> list[Header]:
    """Rename headers so that aiokafka can send them."""
    return [
        (name if is_utf8(name) else header_bytes(name).decode("utf-8", "backslashreplace"), value)
        for name, value in headers
    ]


def names_header(headers: Headers) -> list[Header]:
    """The header that `restore_names` needs; none where all names are UTF-8."""
    odd = {at: header_bytes(name).hex() for at, (name, _) in enumerate(headers) if not is_utf8(name)}
    return [(NAMES, msgspec.json.encode(odd))] if odd else []


def restore_names(headers: Headers, ours: Iterable[Header]) -> Headers:
    """Restore the original headers of a dead letter; `ours` are the added ones.

    Raises `ValueError` for an invalid `dlq.header_names`, which anybody can write.
    """
    encoded_names = dict(ours).get(NAMES)
    if encoded_names is None:
        return headers
    found = list(headers)
    try:
        for at, name in msgspec.json.decode(encoded_names, type=dict[int, str]).items():
            found[at] = bytes.fromhex(name).decode("utf-8", "surrogateescape"), found[at][1]
    except (msgspec.MsgspecError, IndexError) as error:
        raise ValueError(f"{NAMES}: {type(error).__name__}") from None
    return found
