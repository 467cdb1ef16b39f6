"""Log the error of a failing job once, again after an hour, and at once if the error changes.

Every run that failed is in `job_history` and in the metrics; a line for each would bury other errors.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

_REPEAT_S = 3600.0
_NUMBERS = re.compile(r"\d+")  # such as seconds to wait: errors that differ in numbers only are the same


@dataclass(slots=True)
class _FailingJob:
    """Consecutive failed runs, and when each reason was last logged."""

    runs: int = 0
    logged_at: dict[str, float] = field(default_factory=dict)


class JobErrorLog:
    """Errors of jobs by name. A job runs in one thread at a time; `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failing: dict[str, _FailingJob] = {}

    def record_failure(self, job: str, why: str) -> None:
        """Log a failed run, unless the same reason was logged within the hour."""
        found, now = self._failing.setdefault(job, _FailingJob()), self._clock()
        found.runs += 1
        found.logged_at = {reason: at for reason, at in found.logged_at.items() if now - at < _REPEAT_S}
        reason = _NUMBERS.sub("", why)
        if reason in found.logged_at:
            return
        found.logged_at[reason] = now
        in_a_row = f" ({found.runs} consecutive failures)" if found.runs > 1 else ""
        log.error("job %s failed: %s%s", job, why, in_a_row)

    def record_success(self, job: str) -> None:
        """Log the recovery if the job had failed."""
        found = self._failing.pop(job, None)
        if found is not None:
            log.info("job %s succeeded after %d failed runs", job, found.runs)
