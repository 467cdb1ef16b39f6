"""What strangers sent does nothing to a terminal."""

import pytest

from ragtide.stream.dead_letters.display import as_text, value_lines


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"one\nline\ttext", "one\\nline\\ttext"),
        ("größe 東京 🙂".encode(), "größe 東京 🙂"),
        (b"\x1b]0;title\x07\r\x00\x7f", "\\x1b]0;title\\x07\\r\\x00\\x7f"),
        (b"\xc2\x9b31m", "\\x9b31m"),  # CSI in one sign
        ("a\u202eb\u200bc\u2028d".encode(), "a\\u202eb\\u200bc\\u2028d"),
        (b"\xff\xed\xa0\x80", "\\xff\\xed\\xa0\\x80"),
        (b"", ""),
    ],
)
def test_what_steers_or_cannot_be_seen_is_escaped(value: bytes, shown: str) -> None:
    assert as_text(value, 100) == shown


def test_what_is_left_out_is_counted() -> None:
    assert as_text(b"x" * 1234 + b"y" * 5000, 1234) == "x" * 1234 + " [5,000 more bytes]"
    assert as_text("é".encode() * 2, 3) == "é\\xc3 [1 more bytes]"
    assert value_lines(b"x\ny\nz", 3) == ["| x", "| y", "[2 more bytes]"]


def test_no_line_of_a_value_passes_for_one_of_the_command() -> None:
    value = b'{\n  "a": 1\n}\n  header x: forged\xe2\x80\xa8  key: forged\x85'
    lines = value_lines(value, 100)
    assert lines == ["| {", '|   "a": 1', "| }", "|   header x: forged\\u2028  key: forged\\x85"]
