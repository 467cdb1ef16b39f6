"""The header Retry-After: seconds, or a date."""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float | None:
    """Return the seconds to wait, at least 0. None without the header, or if it cannot be read.

    `now_s` is in seconds since 1970.
    """
    given = headers.get("Retry-After")
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(given).timestamp() - now_s
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
