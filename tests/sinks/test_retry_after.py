"""The header Retry-After, bounded."""

from email.utils import formatdate

import pytest

from ragtide.sinks.retry_after import retry_after_s

NOW_S = 1_800_000_000.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("999999999999", 86_400.0),
        ("inf", 86_400.0),
        (formatdate(NOW_S + 60, usegmt=True), 60.0),
        (formatdate(NOW_S + 60), 60.0),  # "-0000": no zone
        (formatdate(NOW_S - 60, usegmt=True), 0.0),
        (formatdate(NOW_S + 1e7, usegmt=True), 86_400.0),
        ("Fri, 31 Dec 9999 23:59:59 -2359", 86_400.0),
    ],
)
def test_it_is_seconds_or_a_date_and_at_most_a_day(header: str | None, seconds: float | None) -> None:
    assert retry_after_s(header, NOW_S) == seconds
