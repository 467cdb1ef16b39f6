"""The header Retry-After: seconds, or a date."""

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_RETRY_AFTER_S = 86_400.0


def retry_after_s(header: str | None, now_s: float) -> float | None:
    """Return the seconds to wait, from 0 to a day. None without the header, or if it cannot be read.

    `now_s` is in seconds since 1970. A date without a zone is in UTC.
    """
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            at = parsedate_to_datetime(header)
            at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
            seconds = (at - datetime.fromtimestamp(now_s, UTC)).total_seconds()
        except (TypeError, ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
