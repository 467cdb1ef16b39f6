"""A circuit breaker: an endpoint that fails again and again is left alone for a while."""


class Breaker:
    """Opens after so many failures in a row. After a while one call may try; if it succeeds, the breaker closes."""

    def __init__(self, failures: int, open_s: float) -> None:
        self._most = failures
        self._open_s = open_s
        self._failures = 0
        self._open_until_s = 0.0

    def allows(self, now_s: float) -> bool:
        """Whether a call may be sent. While the breaker is open, one is allowed after each period."""
        if self._failures < self._most:
            return True
        if now_s < self._open_until_s:
            return False
        self._open_until_s = now_s + self._open_s
        return True

    def succeeded(self) -> None:
        """Close the breaker."""
        self._failures = 0

    def failed(self, now_s: float) -> None:
        """Count a failure."""
        self._failures += 1
        if self._failures >= self._most:
            self._open_until_s = now_s + self._open_s
