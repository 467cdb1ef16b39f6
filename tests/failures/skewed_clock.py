"""`python -m tests.failures.skewed_clock SECONDS worker …`: `ragtide worker` on a machine whose clock is so far ahead.

Moves the clock by which a lane says how far it is: the only one of a worker that gets into tables.
"""

import sys
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self
from unittest.mock import patch

from ragtide.stream.cli import main
from ragtide.stream.worker import lane


class SkewedTime(datetime):
    """As this machine's clock, but for the skew."""

    ahead = timedelta()

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        return cls.fromtimestamp((datetime.now(UTC) + cls.ahead).timestamp(), tz)


if __name__ == "__main__":
    SkewedTime.ahead = timedelta(seconds=float(sys.argv.pop(1)))
    with patch.object(lane, "datetime", SkewedTime):
        main()
