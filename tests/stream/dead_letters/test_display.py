"""What strangers sent does nothing to a terminal."""

import pytest

from stream.dead_letters.display import safe_text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"plain\n\ttext", "plain\n\ttext"),
        ("größe 東京 🙂".encode(), "größe 東京 🙂"),
        (b"\x1b]0;title\x07\r\x00\x7f", "\\x1b]0;title\\x07\\r\\x00\\x7f"),
        (b"\xc2\x9b31m", "\\x9b31m"),  # CSI in one sign
        ("a\u202eb\u200bc\u2028d".encode(), "a\\u202eb\\u200bc\\u2028d"),
        (b"\xff\xed\xa0\x80", "\\xff\\xed\\xa0\\x80"),
        (b"", ""),
    ],
)
def test_what_steers_or_cannot_be_seen_is_escaped(value: bytes, shown: str) -> None:
    assert safe_text(value, 100) == shown


def test_what_is_left_out_is_counted() -> None:
    assert safe_text(b"x" * 1234 + b"y" * 5000, 1234) == "x" * 1234 + "\n[5,000 more bytes]"
    assert safe_text("é".encode() * 2, 3) == "é\\xc3\n[1 more bytes]"
